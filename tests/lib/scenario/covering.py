"""Which scenarios a depth runs: as few as cross all pairs of conditions, and all triples where they matter.

Each row is the best of some that are filled greedily from a target that is still open, so the rows of a depth
are the first ones of the next. (A library for covering arrays makes as many rows, and in no such order.)
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import StrEnum
from functools import cache
from heapq import merge
from itertools import combinations, product

from offload.card.profile import Profile
from tests.lib.scenario.model import Condition
from tests.lib.scenario.space import Scenario, Space, load

TRIES = 24  # rows that are filled for one that is taken; with fewer the arrays are a few rows longer
FIRST = 8  # scenarios of the quick depth: about a minute of a lab
HALF = "half"  # a dimension of targets only: the half of the card that sends, or the one that receives
HALVES = {"tx": ("both", "tx"), "rx": ("both", "rx")}  # the directions in which each half works
SURE = (("trouble", "forged-tag"), ("trouble", "forged-body"), ("event", "carrier"))  # in every depth
Target = tuple[Condition, ...]  # a half or none, then two or three conditions in the order of the dimensions


class Depth(StrEnum):
    """How much is crossed: some pairs, all pairs for each half of the card, these and the triples."""

    QUICK = "quick"
    STANDARD = "standard"
    DEEP = "deep"


@cache
def array(depth: str, profile: Profile | None = None) -> tuple[Scenario, ...]:
    """The scenarios of a depth on a card, the same in every run; those of a lesser depth come first."""
    space, wanted = load(profile), Depth(depth)
    rows = Rows(space.brisk())
    rows.cross(pairs(rows.space), most=FIRST)
    if wanted is not Depth.QUICK:
        rows.space = space
        rows.cross(halves(space))
        rows.cross(pairs(space))
    if wanted is Depth.DEEP:
        rows.cross(triples(space))
    return tuple(Scenario(_seed(row), tuple(row.items())) for row in rows.found)


def spread(rows: Sequence[Scenario], slow: Set[Condition]) -> tuple[Scenario, ...]:
    """The same rows in the order in which they run: those with slow values evenly between the others.

    A slow row mostly waits. The other labs of the run have the processors meanwhile.
    """
    groups: tuple[list[Scenario], list[Scenario]] = ([], [])
    for row in rows:
        groups[slow.isdisjoint(row.values)].append(row)
    places = ([((n + 0.5) / len(group), row) for n, row in enumerate(group)] for group in groups)
    return tuple(row for _, row in merge(*places, key=lambda place: place[0]))


def pairs(space: Space) -> dict[Target, None]:
    """Every pair of conditions that the suite makes."""
    return _makeable(space, combinations(space.made, 2))


def halves(space: Space) -> dict[Target, None]:
    """Every pair without a direction, once for each half of the card that can meet it.

    The halves share little: a pair that only received records have met says nothing of those that are sent.
    """
    found: dict[Target, None] = {}
    for one, other in pairs(space):
        for half in HALVES if one[0] != "direction" else ():
            if _direction(space, half, {one[0]: one[1], other[0]: other[1]}):
                found[(HALF, half), one, other] = None
    return found


def _direction(space: Space, half: str, row: Mapping[str, str]) -> str:
    """A direction in which a half works under these conditions, both if possible; empty if there is none."""
    there = [one for one in HALVES[half] if one in space.made["direction"]]
    return next((one for one in there if space.can({**row, "direction": one})), "")


def triples(space: Space) -> dict[Target, None]:
    """Every triple that it makes, of the dimensions that conditions.yaml names."""
    return _makeable(space, space.triples)


def _makeable(space: Space, groups: Iterable[Iterable[str]]) -> dict[Target, None]:
    """Every combination of values of these dimensions that some scenario has; a dict keeps the order."""
    order = list(space.made)
    found: dict[Target, None] = {}
    for group in groups:
        names = sorted(group, key=order.index)
        for values in product(*(space.made[name] for name in names)):
            target = tuple(zip(names, values, strict=True))
            if space.can(dict(target)):
                found[target] = None
    return found


class Rows:
    """The rows so far, and the targets that none of them has yet."""

    def __init__(self, space: Space) -> None:
        self.space = space
        self.found: list[dict[str, str]] = []
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
            row["direction"] = _direction(self.space, target[0][1], row)
        return row

    def _best(self, name: str, row: dict[str, str], dice: random.Random) -> str:
        """The value that closes most open pairs with a row, of those that leave a whole scenario."""
        values = dice.sample(self.space.made[name], len(self.space.made[name]))
        values.sort(key=lambda value: self._closes((name, value), row), reverse=True)
        return next(value for value in values if self.space.can({**row, name: value}))

    def _closes(self, one: Condition, row: Mapping[str, str]) -> int:
        """How many open pairs a condition makes with those of a row, in each half."""
        found = [self.partners.get(end, set()) for end in ((one,), *((half, one) for half in _works(row)))]
        return sum(len(others.intersection(row.items())) for others in found)

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
        yield from combinations(row.items(), 2)
        without = [one for one in row.items() if one[0] != "direction"]
        for half in _works(row):
            yield from ((half, *pair) for pair in combinations(without, 2))
        order = list(row)
        for group in self.space.triples:
            yield tuple((name, row[name]) for name in sorted(group, key=order.index))


def _works(row: Mapping[str, str]) -> list[Condition]:
    """The halves of the card that work in a row, as far as its direction is known."""
    return [(HALF, half) for half, directions in HALVES.items() if row.get("direction") in directions]


def _seed(row: Mapping[str, str]) -> int:
    """A seed that hangs on the conditions alone, so that a scenario is the same in every depth."""
    return zlib.crc32(",".join(f"{name}={value}" for name, value in row.items()).encode())
