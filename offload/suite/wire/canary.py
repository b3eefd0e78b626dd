"""Is payload in the clear where it is not compared? docs/reference/wire.md, "Searched bytes"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from offload.suite.wire.capture import Reader
from offload.suite.wire.files import Bytes, mapped
from offload.suite.wire.needles import WINDOW, Needles
from offload.suite.wire.packets import SYN, Segment, parse
from offload.suite.wire.streams import Capture

MARGIN = WINDOW - 1  # bytes of a payload that a needle next to it may begin or end in
EARLY = 1 << 18  # bytes of a direction: all that is in plaintext begins before them


@dataclass
class Leak:
    """The first finding: `at`, its offset in the captured frame; `frames`: how many frames have one."""

    frame: int
    at: int
    payload_offset: int
    frames: int
    of: str


def search(capture: Capture, needles: Needles) -> Leak | None:
    """All that is not compared, frame by frame."""
    leak: Leak | None = None
    with mapped(capture.path) as data:
        for number, link, start, captured, original in Reader(data, str(capture.path)):
            segment, clear = None, False
            if capture.compares(number):
                segment = parse(data, link, start, captured, original)
                clear = isinstance(segment, Segment) and early(capture, number, segment)
            for low, high in regions(data, segment, start, start + captured, clear):
                if (found := needles.first(data[low:high])) is None:
                    continue
                leak = leak or Leak(number, low - start + found.at, found.offset, 0, found.of)
                leak.frames += 1
                break
    return leak


def early(capture: Capture, frame: int, segment: Segment) -> bool:
    """Whether its payload may begin in a record that is not protected."""
    stream, _ = capture.connections[capture.owners[frame - 1]].sides(segment.source)
    place = segment.sequence + bool(segment.flags & SYN) - (stream.base or 0)
    return segment.captured > 0 and place & 0xFFFFFFFF < EARLY


def regions(
    data: Bytes, segment: Segment | str | None, start: int, end: int, clear: bool
) -> Iterator[tuple[int, int]]:
    """The parts of a frame to search: all of it, or what is around a payload that is compared.

    `clear`: the payload may begin in plaintext, and a needle in it may begin in any header.
    """
    if not isinstance(segment, Segment):
        yield start, end
        return
    behind = segment.start + segment.captured
    if clear or not segment.plain:
        low = segment.start - MARGIN if segment.plain else start
        yield low, segment.start + min(MARGIN, segment.captured)
    if any(data[behind:end]):
        yield max(start, behind - MARGIN), end
