"""Which scenarios a depth runs: as few as cross all pairs of conditions, and all triples where they matter.

Each row is the best of some that are filled greedily from a target that is still open, so the rows of a depth
are the first ones of the next. (A library for covering arrays keeps no such order.)
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from functools import cache

from offload.card.profile import Profile
from tests.lib.scenario.array.lean import leaner
from tests.lib.scenario.array.targets import (
    HALF,
    Target,
    crossed,
    direction_of,
    halves,
    pairs,
    triples,
    works,
)
from tests.lib.scenario.model import Condition
from tests.lib.scenario.space import Scenario, Space, load

TRIES = 24  # rows that are filled for one that is taken; with fewer the arrays are a few rows longer
FIRST = 8  # scenarios of the quick depth: about a minute of a lab
SURE = (("trouble", "forged-tag"), ("trouble", "forged-body"), ("event", "carrier"))  # in every depth


class Depth(StrEnum):
    """How much is crossed: some pairs, all pairs for each half of the card, these and the triples."""

    QUICK = "quick"
    STANDARD = "standard"
    DEEP = "deep"


@cache
def array(depth: str, profile: Profile | None = None) -> tuple[Scenario, ...]:
    """The scenarios of a depth on a card, the same in every run; those of a lesser depth come first."""
    return tuple(Scenario(_seed(row), tuple(row.items())) for row in _rows(Depth(depth), profile))


@cache
def _rows(depth: Depth, profile: Profile | None) -> list[dict[str, str]]:
    """The rows of a depth: those of the lesser one, and what it crosses more."""
    space = load(profile)
    if depth is Depth.QUICK:
        rows = Rows(space.brisk(), [])
        rows.cross(pairs(rows.space), most=FIRST)
        return rows.found
    if depth is Depth.STANDARD:
        rows = Rows(space, _rows(Depth.QUICK, profile))
        rows.cross(halves(space))
        rows.cross(pairs(space))
        return leaner(space, rows.found, FIRST)
    rows = Rows(space, _rows(Depth.STANDARD, profile))
    rows.cross(triples(space))
    return rows.found


class Rows:
    """The rows so far, and the targets that none of them has yet."""

    def __init__(self, space: Space, found: Sequence[dict[str, str]]) -> None:
        self.space, self.found = space, list(found)
        self.open: dict[Target, None] = {}
        self.partners: dict[Target, set[Condition]] = {}  # open pairs once more, by either end and its half

    def cross(self, targets: Mapping[Target, None], most: int | None = None) -> None:
        """Add rows until every one of these targets is in some row, or there are `most` rows."""
        self.open, self.partners = dict(targets), {}
        for target in targets:
            for end, other in self._ends(target):
                self.partners.setdefault(end, set()).add(other)
        for row in self.found:
            self._close(row)
        while self.open and (most is None or len(self.found) < most):
            dice = random.Random(len(self.found))
            begins = self._begins()
            row = max((self._filled(dice, begins) for _ in range(TRIES)), key=self._gain)
            self.found.append(row)
            self._close(row)

    def _begins(self) -> list[Target]:
        """The open targets; at first those of what every depth must have."""
        lacking = {one for one in SURE if all(row.get(one[0]) != one[1] for row in self.found)}
        return [target for target in self.open if not lacking.isdisjoint(target)] or list(self.open)

    def _filled(self, dice: random.Random, begins: Sequence[Target]) -> dict[str, str]:
        """A row with one of these targets, each other value the one that closes most."""
        row = self._begun(dice.choice(begins))
        rest = [name for name in self.space.made if name not in row]
        dice.shuffle(rest)
        for name in rest:
            row[name] = self._best(name, row, dice)
        return {name: row[name] for name in self.space.made}

    def _begun(self, target: Target) -> dict[str, str]:
        """The conditions of a target; of a half, a direction in which it works."""
        row = dict(one for one in target if one[0] != HALF)
        if target[0][0] == HALF:
            row["direction"] = direction_of(self.space, target[0][1], row)
        return row

    def _best(self, name: str, row: dict[str, str], dice: random.Random) -> str:
        """The value that closes most open pairs with a row, of those that leave a whole scenario."""
        values = dice.sample(self.space.made[name], len(self.space.made[name]))
        there, halves_ = set(row.items()), works(row)
        values.sort(key=lambda value: self._closes((name, value), there, halves_), reverse=True)
        return next(value for value in values if self.space.can({**row, name: value}))

    def _closes(self, one: Condition, there: set[Condition], halves_: Sequence[Condition]) -> int:
        """How many open pairs a condition makes with those that are there, in each half."""
        ends: list[Target] = [(one,), *((half, one) for half in halves_)]
        return sum(len(self.partners[end] & there) for end in ends if end in self.partners)

    def _gain(self, row: Mapping[str, str]) -> int:
        return sum(target in self.open for target in self._targets(row))

    def _close(self, row: Mapping[str, str]) -> None:
        for target in self._targets(row):
            if target in self.open:
                del self.open[target]
                for end, other in self._ends(target):
                    self.partners[end].discard(other)

    def _ends(self, target: Target) -> Iterator[tuple[Target, Condition]]:
        """Both ends of a pair with its half, each beside the other; nothing of a triple."""
        *half, one, other = target
        if not half or half[0][0] == HALF:
            yield (*half, one), other
            yield (*half, other), one

    def _targets(self, row: Mapping[str, str]) -> Iterator[Target]:
        """The pairs of a row, these for each half that works, and the named triples."""
        yield from crossed(row)
        order = list(row)
        for group in self.space.triples:
            yield tuple((name, row[name]) for name in sorted(group, key=order.index))


def _seed(row: Mapping[str, str]) -> int:
    """A seed that hangs on the conditions alone, so that a scenario is the same in every depth."""
    return zlib.crc32(",".join(f"{name}={value}" for name, value in row.items()).encode())
