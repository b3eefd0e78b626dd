"""Bad cards against the suite without one of its checks: does another one see them, or do they escape?"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.lib.catalogue import rows as catalogue
from tests.lib.catalogue import suite
from tests.lib.catalogue.rows import Step
from tests.lib.catalogue.run import Stand
from tests.nicsim.escape_checks import ROOT, Check, switched
from tests.nicsim.escape_read import Card, by_line, cards, fired

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
    """One lab and one suite for all checks: each is off for a card that it failed on."""

    def __init__(self, stand: Stand, folder: Path, known: Sequence[Check]) -> None:
        self._stand, self._folder, self._known = stand, folder, known

    def card(self, name: str) -> Card | None:
        """Run a card against the whole suite; None if it did not come to its end. RigError."""
        self._stand.do(Step(name, ROWS[name].card, ROWS[name], ROWS[name].tests))
        return next(cards(self._folder, [name]), None)

    def fired(self, card: Card) -> dict[str, tuple[str, ...]]:
        """Which checks failed in each test that caught a card; none if something else ended it."""
        lines = by_line(self._known)
        return {r.test: fired(r, lines) for r in card.results if r.outcome == "fail"}

    def without(self, check: str, card: Card) -> str:
        """What catches a card if this check is off, nothing if it escapes. RigError.

        Where it did not fail in some test that caught the card, nothing has to run: that test does without
        it. Else all of them run again.
        """
        found = self.fired(card)
        others = [test for test, checks in found.items() if check not in checks]
        if others:
            return next(iter(found[others[0]][-1:]), others[0])
        return self._again(check, card.id, tuple(found))

    def _again(self, check: str, card: str, tests: tuple[str, ...]) -> str:
        name = f"{check}--{card}".replace("/", "-").replace(":", "-")
        self._stand.off = check
        try:
            self._stand.do(Step(name, ROWS[card].card, ROWS[card], tests))
        finally:
            self._stand.off = ""
        return caught(list(cards(self._folder, [name])), self._known)


def caught(found: Sequence[Card], known: Sequence[Check]) -> str:
    """By which check, or at which place outside one, a card was caught; `void` if the rig broke."""
    results, lines = [result for card in found for result in card.results], by_line(known)
    for result in results:
        if result.outcome == "fail":
            place = result.place or ("?",)
            return lines.get(result.place or ("", 0)) or ":".join(map(str, place))
    return "void" if not found or any(result.outcome == "error" for result in results) else ""


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
