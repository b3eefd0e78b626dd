"""The sockets of a scenario: what both ends are told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from tests.lib.scenario.connections import Line
from tests.lib.scenario.setting import SO_TXREHASH, SOL_SOCKET, sockets
from tests.lib.scenario.space import load

PLAIN = load().parse("seed=7")


def test_a_timeout_gives_no_connection_another_queue() -> None:
    """Else TCP's own timeouts change the order on the wire, and a good card is blamed."""
    near, far = (SimpleNamespace(at=at) for at in (5, 6))
    line = SimpleNamespace(pair=SimpleNamespace(near=near, far=far))
    asks = sockets(PLAIN, [cast(Line, line)])
    wanted = {"level": SOL_SOCKET, "name": SO_TXREHASH, "value": 0}
    for end in (near, far):
        assert (end, "option", {"at": [end.at], **wanted}) in asks
