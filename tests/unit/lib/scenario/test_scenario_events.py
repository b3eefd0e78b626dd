"""Rings, queues and MTU of a port: which figures a scenario gives it, and gives back."""

from __future__ import annotations

import json
from contextlib import ExitStack, closing
from types import SimpleNamespace
from typing import Any

import pytest

from offload.host.base import Completed
from tests.lib.scenario import events
from tests.lib.scenario.connections import plain

RINGS = """Ring parameters for p0:
Pre-set maximums:
RX:\t\t8192
RX Mini:\tn/a
TX:\t\t8192
Current hardware settings:
RX:\t\t1024
RX Mini:\tn/a
TX:\t\t2048
"""
CHANNELS = """Channel parameters for p0:
Pre-set maximums:
RX:\t\tn/a
TX:\t\tn/a
Other:\t\tn/a
Combined:\t8
Current hardware settings:
RX:\t\tn/a
TX:\t\tn/a
Other:\t\tn/a
Combined:\t8
"""


def stage(text: str, rc: int = 0) -> tuple[Any, list[str]]:
    """A port of which ethtool says this, and what it was told."""
    commands: list[str] = []

    def run(argv: list[str], **_: Any) -> Completed:
        line = " ".join(argv)
        shows = argv[1] in ("-g", "-l")
        if not shows:
            commands.append(line)
        said = b"1\n" if argv[0] == "cat" else text.encode() if shows else b""
        return Completed(tuple(argv), 0 if shows else rc, said, b"", 0.0)

    dut = SimpleNamespace(host=SimpleNamespace(run=run, name="dut"), dev="p0")
    return SimpleNamespace(rig=SimpleNamespace(bench=SimpleNamespace(dut=dut))), commands


def test_rings_are_halved_and_given_back() -> None:
    """Both rings change by one command and come back by one."""
    port, commands = stage(RINGS)
    assert events.rings(port) == ""
    carrier = "cat /sys/class/net/p0/carrier"
    assert commands == ["ethtool -G p0 rx 512 tx 1024", "ethtool -G p0 rx 1024 tx 2048", carrier]
    port, commands = stage(RINGS.replace("RX:\t\t8192", "RX:\t\tn/a"))
    assert events.rings(port) == "" and commands[0] == "ethtool -G p0 tx 1024", "no other size is known of RX"


@pytest.mark.parametrize(
    ("most", "old", "wanted"), [(9000, False, [640, 600]), (600, False, [560, 600]), (9000, True, [560, 600])]
)
def test_mtu_becomes_larger_and_comes_back(
    monkeypatch: pytest.MonkeyPatch, most: int, old: bool, wanted: list[int]
) -> None:
    """A smaller one teaches the kernel a path MTU: it forgets that. An old connection would use a larger one
    at once, in frames that the wire cannot carry. Good cards failed by both on 30 November 2026.
    """
    given: list[int] = []
    port = SimpleNamespace(mtu=600, least=68, most=most, addresses=())
    monkeypatch.setattr(events.path, "port_of", lambda *_: port)
    monkeypatch.setattr(events.path, "give", lambda _, size: given.append(size))
    forgets = SimpleNamespace(close=lambda: given.append(0))
    monkeypatch.setattr(events, "forgotten", lambda *_: closing(forgets))
    dut = SimpleNamespace(host=None, dev="p0")
    with ExitStack() as undo:
        rig = SimpleNamespace(bench=SimpleNamespace(dut=dut, peer=None))
        lines = [SimpleNamespace(old=False), SimpleNamespace(old=old)]
        events.mtu(SimpleNamespace(rig=rig, undo=undo, line=lines[0], lines=lines))  # type: ignore[arg-type]
        assert given == wanted
    assert given == [*wanted, *([0] if wanted[0] < 600 else [])], "it forgets when the scenario ends"


def test_queues_become_one_less_and_come_back() -> None:
    """A port with all its queues loses one; one that has fewer gets one more."""
    port, commands = stage(CHANNELS)
    assert events.channels(port) == ""
    assert commands[:2] == ["ethtool -L p0 combined 7", "ethtool -L p0 combined 8"]
    port, commands = stage(CHANNELS[::-1].replace("8\t:denibmoC", "2\t:denibmoC", 1)[::-1])
    assert events.channels(port) == "" and commands[0] == "ethtool -L p0 combined 3"


@pytest.mark.parametrize(
    "text", ["", RINGS.replace("1024", "n/a").replace("2048", "n/a"), CHANNELS.replace("8", "1")]
)
def test_a_port_without_figures_is_not_made(text: str) -> None:
    """A port that shows no rings or one queue is told so, and nothing is changed."""
    port, commands = stage(text)
    assert events.rings(port) == "the rings of the port have one size"
    assert events.channels(port) == "the port has one queue" and not commands


def test_what_a_port_refuses_is_reported() -> None:
    """A command that the driver refuses makes the event not made, in its words."""
    port, commands = stage(RINGS, rc=1)
    assert events.rings(port) == "ethtool -G p0 rx 512 tx 1024 ended with 1" and len(commands) == 1


class Routes:
    """A DUT whose routes are made up: what was asked of it, and how it finds the peer."""

    def __init__(self, gateway: str = "", rc: int = 0, metric: str = "7") -> None:
        self.gateway, self.rc, self.metric = gateway, rc, metric
        self.commands: list[str] = []
        self.only = ""
        self.undo = ExitStack()
        dut, peer = SimpleNamespace(host=self, dev="p0"), SimpleNamespace(v4="192.0.2.2", v6="fd00:2::2")
        self.rig = SimpleNamespace(bench=SimpleNamespace(dut=dut, peer=peer))
        self.name = "dut"

    def run(self, argv: list[str], **_: Any) -> Completed:
        """Do what `ip` does."""
        words = argv[argv.index("route") + 1 :]
        if words[0] != "get":
            self.commands.append(" ".join(words))
            return Completed(tuple(argv), self.rc, b"", b"", 0.0)
        if self.only not in words[-1]:
            return Completed(tuple(argv), 2, b"", b"RTNETLINK answers: Network is unreachable", 0.0)
        found = [{"dst": words[-1], "dev": "p0"} | ({"gateway": self.gateway} if self.gateway else {})]
        text = f"{words[-1]} dev p0 scope link metric {self.metric} \n"
        return Completed(
            tuple(argv), 0, (text if "fibmatch" in words else json.dumps(found)).encode(), b"", 0.0
        )


def test_another_route_is_there_until_the_scenario_ends() -> None:
    """Both families get a route of their own through the same port, which is gone later."""
    dut = Routes()
    assert events.route(dut) == ""  # type: ignore[arg-type]
    routes = ["192.0.2.2/32 dev p0 metric 7", "fd00:2::2/128 dev p0 metric 7"]
    assert dut.commands == [f"add {route}" for route in routes]
    dut.undo.close()
    assert dut.commands[2:] == [f"del {route}" for route in routes[::-1]]
    small = Routes()
    small.only = "192.0.2.2"
    assert events.route(small) == "" and small.commands == [f"add {routes[0]}"], "no IPv6 at a small MTU"  # type: ignore[arg-type]
    behind = Routes(gateway="192.0.2.1")
    events.route(behind)  # type: ignore[arg-type]
    assert behind.commands[0] == "add 192.0.2.2/32 via 192.0.2.1 dev p0 metric 7"


def test_a_route_that_is_not_taken_is_not_made() -> None:
    """A route that the kernel refuses or does not choose is told, and nothing is left."""
    refused = Routes(rc=2)
    assert "ip route add 192.0.2.2/32 dev p0 metric 7 ended with 2" in events.route(refused)  # type: ignore[arg-type]
    other = Routes(metric="77")
    assert "the route to 192.0.2.2 is another one" in events.route(other)  # type: ignore[arg-type]
    refused.undo.close()
    assert not any(line.startswith("del") for line in refused.commands)


def test_another_connection_has_a_port_of_its_own() -> None:
    """The kernel gives a port twice if the peer's differs: a good card failed for two of one port."""
    given, closed = [7, 7, 9], list[list[int]]()

    class Plain:
        def plain(self, count: int, *, host: str, options: object) -> list[Any]:
            assert options == ((41, 59, "00"),), "each try is like the first"
            return [SimpleNamespace(port=given.pop(0)) for _ in range(count)]

        def close(self, pairs: list[Any], *, reset: bool) -> None:
            closed.append([pair.port for pair in pairs])

    made: list[Any] = [SimpleNamespace(port=port) for port in (5, 7, 8)]
    nothing: Any = None
    stage: Any = events.Stage(nothing, nothing, nothing, (), ExitStack(), made[0], made[2:], made[1:2])
    taken = stage.ports
    assert taken == {5, 7, 8}
    life: Any = Plain()
    assert [pair.port for pair in plain(life, 1, "192.0.2.1", ((41, 59, "00"),), taken)] == [9]
    assert closed == [[7], [7]]


def test_an_event_avoids_the_ports_of_its_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    """The event `other` says which ports are in use when it opens its connection."""
    asked: list[object] = []

    def opened(*_: object, apart: object) -> list[Any]:
        asked.append(apart)
        return [SimpleNamespace(pair="pair", port=9)]

    for name in ("another_life", "move", "close"):
        monkeypatch.setattr(events, name, lambda *_: SimpleNamespace(close=None))
    monkeypatch.setattr(events, "opened", opened)
    stage: Any = SimpleNamespace(rig=None, line=SimpleNamespace(cell=None), made=[], ports={5, 7})
    events.other(stage)
    assert (asked, [line.port for line in stage.made]) == ([{5, 7}], [9])
