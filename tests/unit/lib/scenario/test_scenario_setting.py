"""The sockets of a scenario: what both ends are told, with connections that only note it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from tests.lib.scenario.connections import Line
from tests.lib.scenario.setting import SO_TXREHASH, SOL_SOCKET, sockets
from tests.lib.scenario.space import load

PLAIN = load().parse("seed=7")


class Connections:
    """One end's program: it notes the options that it is told to set."""

    def __init__(self) -> None:
        """Nothing was said."""
        self.options: list[tuple[list[int], int, int, Any]] = []

    def call(self, do: str, *, at: list[int], level: int, name: int, value: Any) -> None:
        """Note an option."""
        assert do == "option"
        self.options.append((at, level, name, value))


def test_a_timeout_gives_no_connection_another_queue() -> None:
    """Else TCP's own timeouts change the order on the wire, and a good card is blamed."""
    near, far = Connections(), Connections()
    ends = [SimpleNamespace(connections=one, at=5) for one in (near, far)]
    line = SimpleNamespace(pair=SimpleNamespace(near=ends[0], far=ends[1]))
    sockets(PLAIN, [cast(Line, line)])
    for end in (near, far):
        assert ([5], SOL_SOCKET, SO_TXREHASH, 0) in end.options
