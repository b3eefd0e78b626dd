"""Makes the rows of an array fewer and quicker, and loses no pair that they cross.

The last rows of a greedy array are there for one or two pairs each. In the other rows, many values are
free: some other row has each of their pairs, too. A free value can change, so that its row takes over such
a pair.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from tests.lib.scenario.array.targets import HALVES, Target, crossed, works
from tests.lib.scenario.space import Space

FEW = 18  # pairs that only this row has: with more, it is not worth a try
Row = dict[str, str]


def leaner(space: Space, rows: Sequence[Row], first: int) -> list[Row]:
    """The same pairs in fewer rows, fewer of which are slow. The `first` rows stay what they are."""
    lean = Lean(space, rows, first)
    while lean.fewer():
        pass
    lean.quicker()
    return lean.rows


class Lean:
    """Rows, and how many of them have each pair."""

    def __init__(self, space: Space, rows: Sequence[Row], first: int) -> None:
        self.space, self.first = space, first
        self.rows = [dict(row) for row in rows]
        self._place = {name: at for at, name in enumerate(space.made)}
        self._times = Counter(target for row in self.rows for target in crossed(row))

    def fewer(self) -> bool:
        """Drop each row whose pairs can go to others, the last one first; whether there was one.

        Others change only to values of that row, so a pair that moved stays where it is.
        """
        before = len(self.rows)
        for row in reversed(self.rows[self.first :]):
            own = [target for target in crossed(row) if self._times[target] == 1]
            if len(own) <= FEW and all(self._elsewhere(target, row) for target in own):
                self._times.subtract(crossed(row))
                self.rows = [one for one in self.rows if one is not row]
        return len(self.rows) < before

    def quicker(self) -> None:
        """Give each row a quick value for a slow one that is free."""
        for row in self.rows[self.first :]:
            for name in [one[0] for one in row.items() if one in self.space.slow]:
                quick = [one for one in self.space.made[name] if (name, one) not in self.space.slow]
                turn = sum(map(len, row.values())) % len(quick)  # not always the same one
                any(self._changed(row, name, one) for one in quick[turn:] + quick[:turn])

    def _elsewhere(self, target: Target, row: Row) -> bool:
        """Let another row have a pair, by one value that is free there; whether one has it now."""
        if self._times[target] > 1:
            return True
        *half, one, other = target
        where = HALVES[half[0][1]] if half else tuple(self.space.made["direction"])
        others = [r for r in self.rows[self.first :] if r is not row and r["direction"] in where]
        return any(
            r[here[0]] == here[1] and self._changed(r, *there)
            for r in others
            for here, there in ((one, other), (other, one))
        )

    def _changed(self, row: Row, name: str, value: str) -> bool:
        """Change a value if no pair is lost by it; whether it was changed."""
        if name == "direction" or any(self._times[target] == 1 for target in self._of(row, name)):
            return False
        if not self.space.can({**row, name: value}):
            return False
        self._times.subtract(self._of(row, name))
        row[name] = value
        self._times.update(self._of(row, name))
        return True

    def _of(self, row: Row, name: str) -> Iterator[Target]:
        """The pairs that a value of a row has part in."""
        one = (name, row[name])
        for other in row.items():
            if other[0] != name:
                ordered = (one, other) if self._place[name] < self._place[other[0]] else (other, one)
                yield ordered
                yield from ((half, *ordered) for half in works(row) if other[0] != "direction")
