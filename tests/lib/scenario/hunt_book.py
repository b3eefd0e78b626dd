"""What a hunt leaves: a line per scenario, a folder per failure, and the table at its end."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from itertools import combinations
from pathlib import Path
from typing import Any

from tests.lib.scenario.array.covering import pairs
from tests.lib.scenario.hunting import DIED, FAILED, HELD, NOT_MADE, SOFTWARE, Outcome
from tests.lib.scenario.space import Space

LINES, FAILURES = "hunt.jsonl", "failures"
WORDS = 300  # characters of a failure in the terminal; its folder has all of them


class Kept:
    """The folder of a hunt."""

    def __init__(self, folder: Path, space: Space) -> None:
        self.folder, self.space = folder, space
        self.found: list[Outcome] = []
        self._count: Counter[str] = Counter()
        self._met: set[Any] = set()
        self._began = time.monotonic()

    def of(self, outcome: Outcome) -> Path:
        """The folder of a failure."""
        return self.folder / FAILURES / str(outcome.scenario.seed)

    def enter(self, outcome: Outcome) -> None:
        """Keep what became of a scenario, and tell it."""
        self._count[outcome.word] += 1
        row = {"line": outcome.scenario.line(), "outcome": outcome.word, "seconds": round(outcome.seconds, 1)}
        row |= {"words": outcome.words} if outcome.words else {}
        with (self.folder / LINES).open("a") as into:
            into.write(json.dumps(row) + "\n")
        if outcome.word == HELD:
            self._met.update(combinations(outcome.scenario.values, 2))
        if outcome.word == FAILED:
            self.found.append(outcome)
            self._keep(outcome, row)
        self.say(f"{outcome.word:9} {outcome.seconds:5.1f} s  {outcome.scenario.line()}")
        if outcome.words:
            self.say(f"          {outcome.words[:WORDS]}")

    def _keep(self, outcome: Outcome, row: dict[str, Any]) -> None:
        folder = self.of(outcome)
        folder.mkdir(parents=True, exist_ok=True)
        reported = row | {
            "seed": outcome.scenario.seed,
            "shrunk": outcome.shrunk,
            "evidence": outcome.evidence,
        }
        (folder / "failure.json").write_text(json.dumps(reported, indent=1, default=str) + "\n")

    def say(self, line: str) -> None:
        """Tell a line, with the time since the start."""
        gone = int(time.monotonic() - self._began)
        sys.stdout.write(f"[{gone // 3600}:{gone // 60 % 60:02}:{gone % 60:02}] {line}\n")
        sys.stdout.flush()

    def table(self) -> str:
        """All of it at the end: counts, coverage, and each failure once."""
        words = (HELD, FAILED, SOFTWARE, NOT_MADE, DIED)
        makeable = pairs(self.space)
        met = len(self._met & set(makeable))
        lines = ["", *(f"{word:10} {self._count[word]:6}" for word in words if self._count[word])]
        lines.append(f"{'pairs met':10} {met:6} of {len(makeable)} that the suite makes")
        for shrunk, rows in self._alike().items():
            lines.append(f"failed {len(rows)} times: certify --scenario {shrunk}")
            lines.append(f"  {rows[0].words[:WORDS]}")
            lines.append(f"  kept in {', '.join(str(self.of(row)) for row in rows[:5])}")
        return "\n".join([*lines, f"every line is in {self.folder / LINES}"])

    def _alike(self) -> dict[str, list[Outcome]]:
        """The failures, those together that have the same conditions left."""
        found: dict[str, list[Outcome]] = {}
        for one in self.found:
            conditions = one.shrunk.partition(",")[2]
            found.setdefault(conditions, []).append(one)
        return {rows[0].shrunk: rows for rows in found.values()}
