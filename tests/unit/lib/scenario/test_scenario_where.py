"""A failure with an offset in a stream is told the size of the record in which it lies."""

from __future__ import annotations

import pytest

from tests.lib.life.life import End, Pair
from tests.lib.scenario.connections import OVERHEAD, Burst, Line, tracks
from tests.lib.scenario.space import cell_of
from tests.lib.scenario.verdict.where import in_record


def line(port: int) -> Line:
    """A connection: 100 and 300 bytes were sent, and 7 received."""
    cell, end = cell_of("1.2-aes-gcm-128", "tx"), End(None, 0)  # type: ignore[arg-type]
    made = Line(Pair(end, end, port), tracks("secret", port, cell, 0), cell)
    made.tracks["tx"].bursts = [Burst("a", (100,)), Burst("b", (300,))]
    made.tracks["rx"].bursts = [Burst("c", (7,))]
    return made


END = 400 + 2 * OVERHEAD


@pytest.mark.parametrize(
    ("said", "size"),
    [
        ("connection of port 9: different: at stream offset 0: record 0", "100"),
        (f"connection of port 9: different: at stream offset {99 + OVERHEAD}: tag", "100"),
        (f"connection of port 9: different: at stream offset {100 + OVERHEAD}: nonce", "300"),
        ("port 9: different: server -> client: at stream offset 20: record 0", "7"),
        (f"port 9: different: at stream offset {END}: behind the end", ""),
        ("port 8: different: at stream offset 0: nobody's", ""),
        ("frame 47 of the DUT: a wrong checksum (stream offset 200)", ""),
        ("port 9: contexts were not given back", ""),
    ],
)
def test_an_offset_is_in_a_record(said: str, size: str) -> None:
    """Which connection it is, the port says; of two without a port nobody knows."""
    assert in_record([line(9), line(10)], said) == (f"; in a record of {size} bytes" if size else "")


def test_the_only_connection_needs_no_port() -> None:
    """A frame's failure names no port."""
    said = "frame 47 of the DUT: a wrong checksum (stream offset 200)"
    assert in_record([line(9)], said) == "; in a record of 300 bytes" and not in_record([], said)
