"""The sockets of a scenario: what both ends are told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from tests.lib.scenario.connections import Line
from tests.lib.scenario.setting import SO_TXREHASH, SOL_SOCKET, SOL_TLS, TLS_TX_ZEROCOPY_RO, sockets
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


def said(line: str) -> dict[tuple[bool, int, int], list[object]]:
    """What each option of a scenario's sockets becomes, in order, by end (far or not), level and name."""
    near, far = (SimpleNamespace(at=at) for at in (5, 6))
    one = SimpleNamespace(pair=SimpleNamespace(near=near, far=far))
    found: dict[tuple[bool, int, int], list[object]] = {}
    for end, do, ask in sockets(load().parse(line), [cast(Line, one)]):
        assert do == "option"
        found.setdefault((end is far, ask["level"], ask["name"]), []).append(ask["value"])
    return found


@pytest.mark.parametrize("family", ["v4", "v6"])
def test_an_old_connection_loses_what_the_scenario_before_gave_it(family: str) -> None:
    """Each header of the same version, and zero copy, ends with its own value or a plain one."""
    ips = [ip for ip in load().made["ip"] if ip.startswith(family)]
    assert len(ips) > 2
    for before in ips:
        given = said(f"seed=7,ip={before},call=zerocopy,age=old")
        for ip in ips:
            fresh, old = said(f"seed=7,ip={ip}"), said(f"seed=7,ip={ip},age=old")
            assert old.keys() >= given.keys() and old.keys() >= fresh.keys()
            for option, values in old.items():
                assert values[-1] == fresh[option][-1] if option in fresh else values in ([0], [""])


def test_zero_copy_is_asked_of_old_connections_too() -> None:
    """The call alone is an ordinary sendfile()."""
    for age in ("fresh", "old"):
        assert said(f"seed=7,call=zerocopy,age={age}")[False, SOL_TLS, TLS_TX_ZEROCOPY_RO] == [1]
    assert said("seed=7,age=old")[False, SOL_TLS, TLS_TX_ZEROCOPY_RO] == [0]
