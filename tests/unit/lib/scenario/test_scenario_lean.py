"""Arrays are made leaner: the same pairs in fewer rows, and no slow value that a row does not need."""

from __future__ import annotations

import random
from collections import Counter

import pytest

from offload.card.profile import find
from tests.lib.scenario.array.lean import Lean, leaner
from tests.lib.scenario.array.targets import crossed
from tests.lib.scenario.space import Space, load

FIRST = 3


def drawn(space: Space, count: int) -> list[dict[str, str]]:
    """Rows by chance: many of their pairs are in other rows, too."""
    return [dict(space.draw(seed).values) for seed in range(count)]


@pytest.mark.parametrize("card", ["connectx-6-dx", "chelsio-t6", "funeth"])
@pytest.mark.parametrize("count", [0, 2, FIRST, 30, 300])
def test_leaner_rows_have_every_pair(card: str, count: int) -> None:
    """Each pair in each half stays, the first rows stay as they are, and each row can be made."""
    space = load(find(card))
    rows = drawn(space, count)
    before = [dict(row) for row in rows]
    found = leaner(space, rows, FIRST)
    assert {one for row in found for one in crossed(row)} >= {one for row in rows for one in crossed(row)}
    assert found[:FIRST] == rows[:FIRST] and len(found) <= len(rows) and rows == before
    assert all(space.can(row) and list(row) == list(space.made) for row in found)


def test_pair_that_moved_is_not_displaced_by_the_next() -> None:
    """A row goes only if others have all its pairs in the end, however many of them had to move."""
    space = load(find("connectx-6-dx"))
    for seed in range(8):
        rows = [dict(space.draw(1000 * seed + n).values) for n in range(120)]
        found = leaner(space, rows, 0)
        lost = {one for row in rows for one in crossed(row)} - {one for row in found for one in crossed(row)}
        assert not lost, f"seed {seed}: {lost}"


def test_row_whose_pairs_others_have_goes() -> None:
    """Twice the same rows are no more than once."""
    space = load(find("connectx-6-dx"))
    rows = drawn(space, 20)
    assert len(leaner(space, [*rows, *rows], FIRST)) <= 20


def test_slow_value_stays_only_where_a_pair_needs_it() -> None:
    """Where other rows have each pair of a slow value, the row gets a quick one."""
    space = load(find("connectx-6-dx"))
    found = leaner(space, drawn(space, 400), FIRST)
    times = Counter(one for row in found for one in crossed(row))
    for row in found[FIRST:]:
        for value in space.slow & set(row.items()):
            own = [one for one in crossed(row) if value in one and times[one] == 1]
            assert own or value[0] == "event", f"{value} is free in {row}"


def test_quick_values_are_not_always_the_same() -> None:
    """Each quick value takes its part of the rows that had a slow one."""
    space = load(find("connectx-6-dx"))
    lean = Lean(space, drawn(space, 400), FIRST)
    before = [row["connections"] for row in lean.rows]
    lean.quicker()
    after = Counter(
        row["connections"] for row, old in zip(lean.rows, before, strict=True) if row["connections"] != old
    )
    assert len(after) == 5 and max(after.values()) < 2 * after.total() / 5


def test_rows_that_cannot_be_together_are_not_made() -> None:
    """A pair goes to no row with which its value is not made."""
    space = load(find("connectx-6-dx"))
    rows = drawn(space, 60)
    random.Random(3).shuffle(rows)
    found = leaner(space, rows, 0)
    barred = {frozenset(pair) for pair in space.barred}
    assert not any(frozenset(pair) in barred for row in found for pair in crossed(row))
