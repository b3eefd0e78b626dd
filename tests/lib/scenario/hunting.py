"""A hunt: random scenarios, one after the other, on a lab that is booted again when it dies."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any, Protocol

from offload.errors import OffloadError, RigError
from tests.lib.scenario.space import Scenario
from tests.lib.scenario.verdict.blame import NotTheCards

DEAD = 3  # labs that die in a row before a scenario has ended: then nothing can be hunted here
HELD, FAILED, NOT_MADE, DIED = "held", "failed", "not made", "lab died"
SOFTWARE = "software"  # fails as well: it is not the card


@dataclass(frozen=True)
class Outcome:
    """What became of a scenario; `words`: what is wrong, or what was not met."""

    scenario: Scenario
    word: str
    seconds: float
    words: str = ""
    evidence: dict[str, Any] = field(default_factory=dict)

    @property
    def shrunk(self) -> str:
        """The line of the plainest scenario that still fails."""
        return str(self.evidence.get("scenario", {}).get("shrunk") or self.scenario.line())


class Ground(Protocol):
    """A lab on which scenarios run (hunt.py has the real one)."""

    def play(self, scenario: Scenario, evidence: dict[str, Any]) -> tuple[str, ...]:
        """Run one: what was not met. AssertionError if it fails, RigError if the lab broke."""

    def keep(self, outcome: Outcome) -> None:
        """Put away what the lab still knows of a failure."""


class Book(Protocol):
    """Where outcomes are kept and told."""

    def enter(self, outcome: Outcome) -> None:
        """Keep one."""

    def say(self, line: str) -> None:
        """Tell a line."""


class Hunt:
    """Runs scenarios until the time is over. KeyboardInterrupt passes through, with nothing found lost."""

    def __init__(
        self,
        labs: Callable[[], AbstractContextManager[Ground]],
        book: Book,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._labs, self._book, self._clock = labs, book, clock
        self._again: Scenario | None = None  # that did not end: it is the first one of the next lab
        self._died: Scenario | None = None  # under which the lab was lost
        self._lost = 0

    def run(self, scenarios: Iterable[Scenario], seconds: float) -> None:
        """Run them one after the other. RigError if no lab stays up."""
        ends, rest = self._clock() + seconds, iter(scenarios)
        while self._on_a_lab(self._until(rest, ends)):
            if self._lost == DEAD:
                raise RigError(f"{DEAD} labs died in a row", "the lines above say why")

    def _until(self, scenarios: Iterator[Scenario], ends: float) -> Iterator[Scenario]:
        """The scenario that did not end on the last lab, then new ones, until the time is over."""
        while self._clock() < ends:
            one = self._again or next(scenarios, None)
            if one is None:
                return
            self._again = one
            yield one

    def _on_a_lab(self, scenarios: Iterator[Scenario]) -> bool:
        """Run them on one lab; True if it must be booted again."""
        first = next(scenarios, None)
        if first is None:
            return False
        try:
            with self._labs() as ground:
                return not all(self._one(ground, scenario) for scenario in chain([first], scenarios))
        except OffloadError as exc:
            self._lost += 1
            self._book.say(f"no lab: {exc}")
            return True

    def _one(self, ground: Ground, scenario: Scenario) -> bool:
        """Run one; False if the lab must be booted again."""
        began = self._clock()
        evidence: dict[str, Any] = {}

        def ended(word: str, words: str = "") -> Outcome:
            return Outcome(scenario, word, self._clock() - began, words, evidence)

        try:
            missing = ground.play(scenario, evidence)
            outcome = ended(NOT_MADE if missing else HELD, "; ".join(missing))
        except AssertionError as exc:
            outcome = ended(FAILED, str(exc) or "an assertion")
        except NotTheCards as exc:
            outcome = ended(SOFTWARE, str(exc))
        except OffloadError as exc:
            return self._lab_lost(ground, ended(DIED, f"{exc}"))
        except KeyboardInterrupt:
            if words := evidence.get("scenario", {}).get("first_failure"):
                self._failed(ground, ended(FAILED, f"{words} (ended before it was shrunk)"))
            raise
        self._again, self._died, self._lost = None, None, 0
        if outcome.word == FAILED:
            self._failed(ground, outcome)
        else:
            self._book.enter(outcome)
        return True

    def _failed(self, ground: Ground, outcome: Outcome) -> None:
        self._book.enter(outcome)
        with suppress(OffloadError):
            ground.keep(outcome)

    def _lab_lost(self, ground: Ground, outcome: Outcome) -> bool:
        """Note under what it was lost: by chance, or what failed before, or twice under the same scenario."""
        self._lost += 1
        first = outcome.evidence.get("scenario", {}).get("first_failure")
        if first or self._died == outcome.scenario:
            words = f"{first}; then the lab was lost" if first else "the lab was lost under it twice"
            found = replace(outcome, word=FAILED, words=f"{words}: {outcome.words}")
            self._again, self._died, self._lost = None, None, 0
            self._failed(ground, found)
        else:
            self._died = outcome.scenario
            self._book.enter(outcome)
        return False
