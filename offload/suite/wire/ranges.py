"""Which bytes beyond a hole are held? The out-of-order part of one direction of a connection."""

from __future__ import annotations

from bisect import bisect_right, insort
from typing import NamedTuple

MAX_RANGES = 65536


class Overlap(NamedTuple):
    """Bytes of the stream, and others that came later for the same offsets."""

    offset: int
    old: bytes
    new: bytes


class Ranges:
    """Disjoint pieces by stream offset; touching pieces make one range, which is what `count` counts."""

    def __init__(self) -> None:
        self.starts: list[int] = []
        self.pieces: dict[int, bytes] = {}
        self.count = 0

    def _end(self, start: int) -> int:
        return start + len(self.pieces[start])

    def full_for(self, offset: int, size: int) -> bool:
        """Whether these bytes would need one range more than is allowed."""
        if self.count < MAX_RANGES:
            return False
        at = bisect_right(self.starts, offset)
        touches_left = at > 0 and self._end(self.starts[at - 1]) >= offset
        touches_right = at < len(self.starts) and self.starts[at] <= offset + size
        return not touches_left and not touches_right

    def add(self, offset: int, data: bytes) -> list[Overlap]:
        """Hold the new bytes. Those that were there stay, and are returned together with the later ones."""
        overlaps, fresh = [], []
        end, at = offset + len(data), offset
        first = max(bisect_right(self.starts, offset) - 1, 0)
        for index in range(first, len(self.starts)):
            start = self.starts[index]
            if start >= end:
                break
            stop = self._end(start)
            low, high = max(at, start), min(end, stop)
            if low >= high:
                continue
            if at < low:
                fresh.append((at, data[at - offset : low - offset]))
            old = self.pieces[start][low - start : high - start]
            overlaps.append(Overlap(low, old, data[low - offset : high - offset]))
            at = high
        if at < end:
            fresh.append((at, data[at - offset :]))
        for start, piece in fresh:
            self._hold(start, piece)
        return overlaps

    def _hold(self, start: int, piece: bytes) -> None:
        at = bisect_right(self.starts, start)
        joins_left = at > 0 and self._end(self.starts[at - 1]) == start
        joins_right = at < len(self.starts) and self.starts[at] == start + len(piece)
        insort(self.starts, start)
        self.pieces[start] = piece
        self.count += 1 - joins_left - joins_right

    def take(self, offset: int) -> list[bytes]:
        """Give up the range that begins at this offset: its pieces, in order; empty if there is none."""
        taken = []
        for start in self.starts:
            if start != offset:
                break
            taken.append(self.pieces.pop(start))
            offset += len(taken[-1])
        del self.starts[: len(taken)]
        self.count -= bool(taken)
        return taken
