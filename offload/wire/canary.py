"""Is payload in the clear where it is not compared? docs/wire.md, "What is searched"."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from offload.wire.capture import Reader
from offload.wire.files import Bytes, mapped
from offload.wire.needles import WINDOW, Needles
from offload.wire.packets import Segment, parse
from offload.wire.streams import Capture

BESIDE = WINDOW - 1  # bytes of a payload that a needle beside it may begin or end in


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
            segment = None
            if capture.compares(number):
                segment = parse(data, link, start, captured, original)
            for low, high in regions(data, segment, start, start + captured):
                if (found := needles.first(data[low:high])) is None:
                    continue
                leak = leak or Leak(number, low - start + found.at, found.offset, 0, found.of)
                leak.frames += 1
                break
    return leak


def regions(data: Bytes, segment: Segment | str | None, start: int, end: int) -> Iterator[tuple[int, int]]:
    """The parts of a frame to search: all of it, or what is around a payload that is compared."""
    if not isinstance(segment, Segment):
        yield start, end
        return
    behind = segment.start + segment.captured
    if not segment.plain:
        yield start, segment.start + min(BESIDE, segment.captured)
    if any(data[behind:end]):
        yield max(start, behind - BESIDE), end
