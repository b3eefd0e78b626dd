"""What an array has to cross: pairs of conditions, the same in each half of a card, and triples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import combinations, product

from tests.lib.scenario.model import Condition
from tests.lib.scenario.space import Space

HALF = "half"  # a dimension of targets only: the half of the card that sends, or the one that receives
HALVES = {"tx": ("both", "tx"), "rx": ("both", "rx")}  # the directions in which each half works
Target = tuple[Condition, ...]  # a half or none, then two or three conditions in the order of the dimensions


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
            if direction_of(space, half, {one[0]: one[1], other[0]: other[1]}):
                found[(HALF, half), one, other] = None
    return found


def direction_of(space: Space, half: str, row: Mapping[str, str]) -> str:
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


def works(row: Mapping[str, str]) -> list[Condition]:
    """The halves of the card that work in a row, as far as its direction is known."""
    return [(HALF, half) for half, directions in HALVES.items() if row.get("direction") in directions]


def crossed(row: Mapping[str, str]) -> Iterator[Target]:
    """The pairs of a row, and those without a direction once more for each half that works."""
    yield from combinations(row.items(), 2)
    without = [one for one in row.items() if one[0] != "direction"]
    for half in works(row):
        yield from ((half, *pair) for pair in combinations(without, 2))
