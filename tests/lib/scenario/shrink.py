"""Makes a failing scenario plainer, one condition after the other, while it still fails."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tests.lib.scenario.space import Scenario, Space

TRIES = 12  # runs that shrinking may take: a run of a card that breaks connections waits for bytes

Fails = Callable[[Scenario], str]  # what was wrong, in words; empty if it held


@dataclass(frozen=True)
class Shrunk:
    """The plainest scenario found that still fails, what was wrong there, and how many runs it took."""

    scenario: Scenario
    words: str
    runs: int


def shrink(scenario: Scenario, words: str, fails: Fails, space: Space, tries: int = TRIES) -> Shrunk:
    """Drop condition after condition; what fails no longer without one keeps it."""
    best, runs = Shrunk(scenario, words, 0), 0
    for dimension in space.dimensions:
        plainer = best.scenario.plainer(dimension)
        if plainer == best.scenario or not space.allows(plainer) or runs == tries:
            continue
        runs += 1
        if said := fails(plainer):
            best = Shrunk(plainer, said, runs)
    return Shrunk(best.scenario, best.words, runs)
