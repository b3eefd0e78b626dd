"""Makes a failing scenario plainer: half of its conditions at once, then halves of what is left."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import reduce

from tests.lib.scenario.space import Scenario, Space

TRIES = 16  # runs that shrinking may take: a run of a card that breaks connections waits for bytes

Fails = Callable[[Scenario], str]  # what was wrong, in words; empty if it held


@dataclass(frozen=True)
class Shrunk:
    """The plainest scenario found that still fails, what was wrong there, and how many runs it took."""

    scenario: Scenario
    words: str
    runs: int


def shrink(scenario: Scenario, words: str, fails: Fails, space: Space, tries: int = TRIES) -> Shrunk:
    """Drop conditions, many at once; what fails no longer without one keeps it."""
    search = _Search(scenario, words, fails, space, tries)
    search.without([name for name in space.dimensions if scenario[name] != space.plain[name]])
    for name in list(search.barred):  # what needed it may be gone by now
        search.drops([name])
    return Shrunk(search.best, search.words, search.runs)


@dataclass
class _Search:
    """The plainest so far. `held`: what ran and did not fail; `barred`: what something else needed."""

    best: Scenario
    words: str
    fails: Fails
    space: Space
    tries: int
    runs: int = 0
    held: set[Scenario] = field(default_factory=set)
    barred: list[str] = field(default_factory=list)

    def without(self, names: Sequence[str]) -> None:
        """Make these plain, or else the two halves of them one after the other."""
        if names and not self.drops(names) and len(names) > 1:
            half = len(names) // 2
            self.without(names[:half])
            self.without(names[half:])

    def drops(self, names: Sequence[str]) -> bool:
        """Say whether it still fails with these plain; then that is the plainest so far."""
        plainer = reduce(Scenario.plainer, names, self.best)
        if not self.space.allows(plainer):
            self.barred += names if len(names) == 1 else []
            return False
        if plainer in self.held or self.runs == self.tries:
            return False
        self.runs += 1
        if said := self.fails(plainer):
            self.best, self.words = plainer, said
        else:
            self.held.add(plainer)
        return bool(said)
