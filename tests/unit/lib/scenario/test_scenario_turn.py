"""A turn of which each end hears at once: who does what in which order, and that it comes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any, cast

import pytest

from offload.host.base import Side
from offload.host.local import LocalHost
from tests.lib.life.life import PROGRAM, End, ManyConnections, Pair
from tests.lib.scenario import connections
from tests.lib.scenario.connections import BUFFER, Ask, Burst, Line, Track, turn

HERE = "127.0.0.1"
SHORT, OTHER = Burst("short", (1000,)), Burst("other", (10, 20))
LONG = Burst("long", (16384,) * (BUFFER // 16384 + 1))


@pytest.fixture
def line() -> Iterator[Line]:
    """A connection of two programs of this machine, without TLS."""
    with ExitStack() as undo:
        side = Side(LocalHost(), "lo", HERE, "::1")
        near, far = (ManyConnections(side, str(PROGRAM)) for _ in range(2))
        undo.callback(far.stop)
        undo.callback(near.stop)
        port = far.call("listen", host=HERE)["port"]
        ours = near.call("connect", host=HERE, port=port, count=1)["ports"][0]
        far.call("accept", count=1)
        tracks = {direction: Track(cast(Any, None), 0) for direction in ("tx", "rx")}
        yield Line(Pair(End(near, 0), End(far, 0), ours), tracks, cast(Any, None))


def test_every_burst_comes(line: Line) -> None:
    """Bursts of both directions come whole, in order, whether they fit into the buffers or not."""
    turn(line, {"tx": SHORT, "rx": OTHER})
    turn(line, {"tx": LONG, "rx": LONG})
    turn(line, {"rx": SHORT})
    turn(line, {"tx": OTHER, "rx": SHORT}, apart=True)
    assert line.tracks["tx"].bursts == [SHORT, LONG, OTHER]
    assert line.tracks["rx"].bursts == [OTHER, LONG, SHORT, SHORT]
    assert [records for records, _ in line.calls] == [1, len(LONG.writes), 2]


def test_what_does_not_come_is_reported(line: Line) -> None:
    """A peer that sends no more fails the turn."""
    line.pair.far.call("shut")
    with pytest.raises(AssertionError, match=r"rx short .*0 of 1000 bytes arrived \(eof\)"):
        turn(line, {"tx": OTHER, "rx": SHORT})


@pytest.mark.parametrize(
    ("bursts", "apart", "far"),
    [
        ({"tx": SHORT, "rx": SHORT}, False, ["send", "take"]),
        ({"tx": SHORT, "rx": SHORT}, True, ["take", "send"]),
        ({"tx": LONG, "rx": SHORT}, False, ["take", "send"]),
    ],
)
def test_apart_a_direction_is_whole_before_the_next_begins(
    bursts: dict[str, Burst], apart: bool, far: list[str], line: Line, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Together no end waits for the other. Apart, the far end sends nothing meanwhile: no SACK block."""
    done: list[tuple[End, str]] = []

    def noted(asks: list[Ask]) -> list[int]:
        done.extend((end, do) for end, do, _ in asks)
        return list(range(len(asks)))

    monkeypatch.setattr(connections, "begun", noted)
    monkeypatch.setattr(Line, "whole", lambda *_: None)
    turn(line, bursts, apart=apart)
    assert [do for end, do in done if end is line.pair.near] == ["send", "take"]
    assert [do for end, do in done if end is line.pair.far] == far
