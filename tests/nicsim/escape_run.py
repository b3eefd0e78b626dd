"""Bad cards against the suite without one of its checks: does another one see them, or do they escape?"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lib import catalogue, suite
from tests.lib.catalogue import Step
from tests.lib.catalogue_run import Stand
from tests.nicsim.escape_checks import ROOT, Check, switched
from tests.nicsim.escape_read import Card, Facts, cards, credit

ROWS = {row.id: row for row in catalogue.load()}


@contextmanager
def tree(known: Sequence[Check]) -> Iterator[Path]:
    """A folder with the tests, whose checks can be switched off; what they test is the installed package."""
    with tempfile.TemporaryDirectory(prefix="ktls-offload-escape-") as name:
        root = Path(name)
        shutil.copyfile(ROOT / "pyproject.toml", root / "pyproject.toml")
        shutil.copytree(ROOT / "tests", root / "tests", ignore=shutil.ignore_patterns("__pycache__", "unit"))
        for file in dict.fromkeys(check.file for check in known):
            mine = [check for check in known if check.file == file]
            (root / file).write_text(switched((root / file).read_text(), mine))
        yield root


class Mutants:
    """One lab and one suite for all checks: each is off for a card that it decided."""

    def __init__(self, stand: Stand, folder: Path, known: Sequence[Check]) -> None:
        self._stand, self._folder, self._known = stand, folder, known

    def card(self, name: str) -> Card | None:
        """Run a card against the whole suite; None if it did not come to its end. RigError."""
        self._stand.do(Step(name, ROWS[name].card, ROWS[name], ROWS[name].tests))
        return next(cards(self._folder, [name]), None)

    def ends(self, card: Card) -> dict[str, str]:
        """Which check (or place outside one) ended each test that caught a card."""
        alone = {r.test: Card(card.id, (r,)) for r in card.results if r.outcome == "fail"}
        return {test: caught(credit([one], self._known)) for test, one in alone.items()}

    def without(self, check: str, card: Card) -> str:
        """What catches a card if this check is off, nothing if it escapes. RigError.

        Where another check ended another test of the card, nothing has to run: that one has not been reached
        by way of this. Else the tests that it ended run again.
        """
        ends = self.ends(card)
        others = [where for where in ends.values() if where != check]
        return others[0] if others else self._again(check, card.id, tuple(ends))

    def _again(self, check: str, card: str, tests: tuple[str, ...]) -> str:
        name = f"{check}--{card}".replace("/", "-").replace(":", "-")
        self._stand.off = check
        try:
            self._stand.do(Step(name, ROWS[card].card, ROWS[card], tests))
        finally:
            self._stand.off = ""
        return caught(credit(list(cards(self._folder, [name])), self._known))


def caught(facts: Facts) -> str:
    """By which check, or at which place outside one, the only card of these facts was caught."""
    return next(iter(facts.deciding), "") or next((line.partition(" at ")[2] for line in facts.elsewhere), "")


@contextmanager
def mutants(kernel: str, lab: str, folder: Path, known: Sequence[Check]) -> Iterator[Mutants]:
    """A lab (`lab`: the name of one that is up; none: it is booted) and a suite in it. RigError."""
    folder.mkdir(parents=True, exist_ok=True)
    before = suite.ROOT
    with tree(known) as root:
        suite.ROOT = root
        try:
            with Stand(kernel, folder, lambda line: None, attach=lab) as stand:
                yield Mutants(stand, folder, known)
        finally:
            suite.ROOT = before
