"""Is payload in the clear where it should not be? docs/wire.md, "Canaries"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from offload.wire.capture import Reader
from offload.wire.files import mapped
from offload.wire.packets import Segment, parse
from offload.wire.streams import Capture

WINDOW = 16
DIFFERENT = 6


@dataclass
class Leak:
    """The first finding: `at`, its offset in the captured frame; `frames`: how many frames have one."""

    frame: int
    at: int
    payload_offset: int
    frames: int = 1


def needles(payload: bytes) -> dict[bytes, int]:
    """Windows of the payload, and where each is first; `telling` says which of them count."""
    step = WINDOW * max(1, -(-len(payload) // (1 << 24)))
    last = (len(payload) - WINDOW) // step * step
    return {payload[at : at + WINDOW]: at for at in range(last, -1, -step)}


def telling(window: bytes) -> bool:
    """Whether a window has enough different bytes not to be there by chance."""
    return len(set(window)) >= DIFFERENT


def search(capture: Capture, payload: bytes) -> Leak | None:
    """All that is not compared, frame by frame; headers before a TCP payload are not searched."""
    wanted: dict[bytes, int] = {}
    leak: Leak | None = None
    listed = [c.listed for c in capture.connections]
    with mapped(capture.path) as data:
        for number, link, start, captured, original in Reader(data, str(capture.path)):
            owner = capture.owners[number - 1] if number <= len(capture.owners) else -1
            segment = parse(data, link, start, captured, original) if owner >= 0 else None
            for low, high in regions(segment, owner >= 0 and listed[owner], start, start + captured):
                if high - low < WINDOW:
                    continue
                wanted = wanted or needles(payload)
                if (found := first(data[low:high], wanted)) is None:
                    continue
                if leak is None:
                    leak = Leak(number, low - start + found[0], found[1], 0)
                leak.frames += 1
                break
    return leak


def regions(segment: Segment | str | None, listed: bool, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a frame to search: all, or its payload if that is not compared and what is behind IP."""
    if not isinstance(segment, Segment):
        yield start, end
        return
    behind = segment.start + segment.captured
    if not listed:
        yield segment.start, behind
    yield behind, end


def first(data: bytes, wanted: dict[bytes, int]) -> tuple[int, int] | None:
    """(offset, payload offset) of the first needle."""
    windows = [data[at : at + WINDOW] for at in range(len(data) - WINDOW + 1)]
    if wanted.keys().isdisjoint(windows):
        return None
    hits = ((at, wanted[w]) for at, w in enumerate(windows) if w in wanted and telling(w))
    return next(hits, None)
