"""What a run tells the report of its conditions: all that could be crossed, and what cannot, and why."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from itertools import combinations, product
from typing import Any

from tests.lib.scenario.model import Condition
from tests.lib.scenario.space import DEFAULT, Pair, Space

IMPLIED = "what each of them needs excludes the other"


def declared(space: Space, depth: str, count: int) -> dict[str, Any]:
    """The space for the report (suite/report/crossed.py); `depth` is empty if scenarios were chosen."""
    reasons: dict[str, int] = {}

    def number(why: str) -> int:
        return reasons.setdefault(why, len(reasons))

    rows = {
        "impossible": [[*one, *other, number(why)] for (one, other), why in impossible(space)],
        "no_lab": [[*one, number(why)] for one, why in space.no_lab.items()],
        "not_yet": [[*one, number(why)] for one, why in space.not_yet.items()],
    }
    return {
        "sha256": digest(),
        "depth": depth,
        "scenarios": count,
        "dimensions": {name: list(values) for name, values in space.dimensions.items()},
        "triples": [list(names) for names in space.triples],
        **rows,
        "reasons": list(reasons),
    }


@cache
def digest() -> str:
    """The SHA-256 of conditions.yaml."""
    return hashlib.sha256(DEFAULT.read_bytes()).hexdigest()


def impossible(space: Space) -> Iterator[tuple[Pair, str]]:
    """Every pair of values that a lab has and that no scenario can have together, and why."""
    whole = space.some_day()
    for names in combinations(whole.made, 2):
        for values in product(*(whole.made[name] for name in names)):
            one, other = _ends(names, values)
            if not whole.can(dict((one, other))):
                yield (one, other), space.barred.get((one, other), IMPLIED)


def _ends(names: tuple[str, ...], values: tuple[str, ...]) -> tuple[Condition, Condition]:
    return (names[0], values[0]), (names[1], values[1])
