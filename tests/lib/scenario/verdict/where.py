"""In a record of which size does a stream go wrong? For the headline of a plain scenario that fails."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Sequence

from tests.lib.scenario.connections import Line
from tests.lib.scenario.layout import begins

PORT, OFFSET = re.compile(r"\bport (\d+)"), re.compile(r"stream offset ([\d,]+)")
BACK = "server -> client"  # the peer sends


def in_record(lines: Sequence[Line], said: str) -> str:
    """Return `; in a record of 16,384 bytes` if the failure has an offset in a known stream, or nothing."""
    port, offset = PORT.search(said), OFFSET.search(said)
    mine = [line for line in lines if not port or line.port == int(port[1])]
    if len(mine) != 1 or not offset:
        return ""
    track = mine[0].tracks["rx" if BACK in said else "tx"]
    sizes = [size for burst in track.bursts for size in burst.writes]
    number = bisect_right(begins(track), int(offset[1].replace(",", ""))) - 1
    return f"; in a record of {sizes[number]:,} bytes" if number < len(sizes) else ""
