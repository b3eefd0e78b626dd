"""What is known of the suite so far: recorded bad cards, checks that were taken away, the tests there are."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from offload.errors import ConfigError, RigError
from tests.lib.catalogue import rows as catalogue
from tests.lib.catalogue.rows import Row
from tests.nicsim.escape_checks import ROOT, Check
from tests.nicsim.escape_read import Card, Facts, cards, credit

MUTANTS = "escape.json"
# a pytest that collects tests/hw for a card and prints test -> promise
COLLECT = """
import json, sys, pytest
from offload.suite.report.record.testinfo import promise_of
from tests.lib.catalogue.rows import short
class Show:
    def pytest_collection_finish(self, session):
        found = {short(item.nodeid): promise_of(item) or "" for item in session.items}
        print("FOUND" + json.dumps(found))
sys.exit(pytest.main(["-q", "--collect-only", "-p", "no:cacheprovider", "tests/hw"], [Show()]))
"""


@dataclass(frozen=True)
class Said:
    """What a page is made of. `tests`: every test of tests/hw and its promise; `rows`: of the catalogue.

    `less`: check that was taken away -> card -> what caught it then, or nothing; `seconds` that each took.
    """

    kernel: str
    facts: Facts
    count: int
    tests: Mapping[str, str]
    rows: Sequence[Row]
    checks: Sequence[str]
    less: Mapping[str, Mapping[str, str]]
    seconds: Sequence[float]

    @property
    def wanted(self) -> int:
        """How many cards of the catalogue have to fail."""
        return sum(row.end == "failed" for row in self.rows)

    def needed(self) -> list[str]:
        """The checks without which a card escapes."""
        return [check for check, by in self.less.items() if "" in by.values()]

    def redundant(self) -> list[str]:
        """The checks without which every card that they failed on is caught all the same."""
        return [
            c
            for c, by in self.less.items()
            if "" not in by.values() and set(self.facts.deciding[c]) <= set(by)
        ]

    def left(self) -> list[str]:
        """The checks that failed on a card, and were not taken away for each of theirs."""
        known = {*self.needed(), *self.redundant()}
        return [check for check in self.facts.deciding if check not in known]


class Found:
    """Bad cards by id, and what `--mutate` found, which is kept in `folder`; `noted`: its own cards."""

    def __init__(
        self, folder: Path, known: Sequence[Check], found: Iterable[Card], rows: Sequence[str]
    ) -> None:
        self.folder, self.rows, self._known = folder, rows, known
        self.noted = {card.id: card for card in cards(folder, rows)}
        self.cards = {card.id: card for card in found} | self.noted
        path = folder / MUTANTS
        self._less: dict[str, dict[str, list[str | float]]] = (
            json.loads(path.read_text()) if path.exists() else {}
        )

    def asked(self, check: str, card: str) -> bool:
        """Say whether a check has to be taken away for this card: it is one, and was not yet."""
        return check in map(str, self._known) and card not in self._less.get(check, {})

    def note(self, check: str, card: str, by: str, seconds: float) -> None:
        """Keep what caught a card without a check; nothing if it escaped."""
        self._less.setdefault(check, {})[card] = [by, round(seconds, 1)]
        self.folder.mkdir(parents=True, exist_ok=True)
        (self.folder / MUTANTS).write_text(json.dumps(self._less, indent=1) + "\n")

    def said(self, kernel: str) -> Said:
        """All of it. ConfigError if no card was recorded, RigError if tests/hw is not collected."""
        if not self.cards:
            hint = "python -m benchmarks.certifier makes results/certifier-6.1; --mutate makes its own"
            raise ConfigError("there are no events of bad cards", hint)
        facts = credit([self.cards[row] for row in self.rows if row in self.cards], self._known)
        less = {c: {card: str(by) for card, (by, _) in found.items()} for c, found in self._less.items()}
        seconds = [float(took) for found in self._less.values() for _, took in found.values()]
        less = {check: by for check, by in less.items() if check in facts.deciding}
        names = [str(check) for check in self._known]
        return Said(kernel, facts, len(self.cards), collected(), catalogue.load(), names, less, seconds)


def gather(results: Path, folder: Path, known: Sequence[Check]) -> Found:
    """Read what there is: cards of `folder`, others of `results`."""
    rows = [row.id for row in catalogue.load() if row.end == "failed"]
    return Found(folder, known, cards(results, rows), rows)


def collected() -> dict[str, str]:
    """Every test of tests/hw, with its promise. RigError if there are none."""
    done = subprocess.run(
        [sys.executable, "-c", COLLECT], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("FOUND")]
    if not lines:
        raise RigError(f"tests/hw is not collected:\n{done.stdout[-2000:]}")
    found: dict[str, str] = json.loads(lines[0].removeprefix("FOUND"))
    return found
