"""An event of a scenario leaves the port as it was found, whichever of its commands Ctrl-C comes into."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from offload.host.base import Completed
from tests.lib.impair import shapes_path
from tests.lib.scenario import events, setting

RINGS = "Pre-set maximums:\nRX:\t8192\nTX:\t8192\nCurrent hardware settings:\nRX:\t{rx}\nTX:\t{tx}\n"
QUEUES = "Pre-set maximums:\nCombined:\t8\nCurrent hardware settings:\nCombined:\t{combined}\n"
FOUND: dict[str, Any] = {
    "mtu": "1500",
    "up": True,
    "cable": True,
    "-G": {"rx": "1024", "tx": "2048"},
    "-L": {"combined": "8"},
    "-C": {"rx-usecs": "8"},
    "v6": {"2001:db8::1/64"},
    "routes": set(),
    "offload": {"tx": True, "rx": True},
    "connections": 1,
    "sysctl": {"net.ipv4.tcp_sack": "1", "net.ipv4.route.mtu_expires": "600"},
    "tx-tcp-segmentation": "on",
}
LOOKS = ("cat", "-g", "-l", "-c", "-k", "show", "get", "-n")


class Port:
    """A port, its cable and its connections, which do what they are told; Ctrl-C comes at one change.

    `at`: the change, counted from 1, which is made all the same; 0: never. Also the stage of a scenario.
    """

    def __init__(self, at: int) -> None:
        self.state, self.at, self.changes = copy.deepcopy(FOUND), at, 0
        self.name, self.undo = "dut", ExitStack()
        side = SimpleNamespace(host=self, dev="p0", v4="192.0.2.2", v6="2001:db8::2")
        bench = SimpleNamespace(dut=side, peer=side, wire=self, wire_ports=("w0",))
        self.rig = SimpleNamespace(bench=bench, kind="card")
        self.lines: list[Any] = []
        self.card, self.made, self.line, self.ports = (
            ("tx", "rx"),
            [],
            SimpleNamespace(cell=None, old=False),
            set[int](),
        )
        self.offload = SimpleNamespace(set=self.switched)

    def changed(self) -> None:
        """A change was made; the one that Ctrl-C comes into ends it."""
        self.changes += 1
        if self.changes == self.at:
            raise KeyboardInterrupt

    def switched(self, **wanted: bool) -> None:
        self.state["offload"].update(wanted)
        self.changed()

    def opened(self, *_: object, **__: object) -> list[Any]:
        self.state["connections"] += 1
        return [SimpleNamespace(pair="pair", port=self)]

    def close(self, *_: object, **__: object) -> None:
        self.state["connections"] -= 1

    def run(self, argv: list[str], **_: Any) -> Completed:
        """Do what a program does."""
        looks = any(word in argv for word in LOOKS)
        text = self.shown(argv) if looks else ""
        if not looks:
            self.notes(argv)
            self.changed()
        return Completed(tuple(argv), 0, text.encode(), b"", 0.0)

    def shown(self, argv: list[str]) -> str:
        """What a program says that changes nothing."""
        state = self.state
        if argv[0] == "ip" and "route" in argv:
            metric = "metric 7 " if state["routes"] else ""
            return f"{argv[-1]} dev p0 {metric}\n" if "fibmatch" in argv else '[{"dst": "x", "dev": "p0"}]'
        if argv[0] == "ip":
            rows = [
                {"family": "inet6", "scope": "global", "local": a[:-3], "prefixlen": 64} for a in state["v6"]
            ]
            return json.dumps([{"mtu": int(state["mtu"]), "addr_info": rows}])
        if argv[0] == "sysctl":
            return "".join(f"{value}\n" for name, value in state["sysctl"].items() if name in argv)
        texts = {"-g": RINGS.format(**state["-G"]), "-l": QUEUES.format(**state["-L"])}
        texts |= {"/sys/class/net/p0/mtu": f"{state['mtu']}\n", "/sys/class/net/w0/mtu": f"{state['mtu']}\n"}
        texts |= {"-c": f"rx-usecs: {state['-C']['rx-usecs']}\n", "-k": self.features()}
        return texts.get(argv[1], "1\n" if state["up"] and state["cable"] else "0\n")

    def features(self) -> str:
        """As `ethtool -k` shows them."""
        return f"Features for p0:\ntx-tcp-segmentation: {self.state['tx-tcp-segmentation']}\n"

    def notes(self, argv: list[str]) -> None:
        """Do what a program does that changes something."""
        state, words = self.state, argv[3:]
        if argv[0] == "sysctl":
            state["sysctl"].update(word.split("=") for word in argv[2:])
        elif argv[:2] == ["ethtool", "-K"]:
            state.update(zip(words[::2], words[1::2], strict=True))
        elif argv[0] == "ethtool":
            state[argv[1]].update(zip(words[::2], words[1::2], strict=True))
        elif "route" in argv:
            (state["routes"].add if "add" in argv else state["routes"].discard)(tuple(words))
        elif "address" in argv:
            state["v6"].add(next(word for word in argv if "/" in word))
        elif "mtu" in argv:
            state["mtu"] = argv[-1]
        else:
            up = argv[-1] == "up"
            state["cable" if "w0" in argv else "up"] = up
            state["v6"] = state["v6"] if up or "w0" in argv else set()


def small_mtu(port: Any) -> None:
    """Give the whole path a smaller MTU, as a scenario does."""
    port.undo.enter_context(shapes_path.path_mtu(port.rig.bench, 1400))


def no_sack(port: Any) -> None:
    """Change a setting of TCP at both ends."""
    port.undo.enter_context(shapes_path.tcp_settings(port.rig.bench, sack=0))


def no_tso(port: Any) -> None:
    """Switch TSO off."""
    setting.off(port.undo, port.rig.bench.dut, setting.TSO_PARTS)


CHANGES: dict[str, Callable[[Any], Any]] = {
    **events.EVENTS,
    "small-mtu": small_mtu,
    "no-sack": no_sack,
    "no-tso": no_tso,
}


@pytest.fixture(autouse=True)
def made_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connections are the port's: it counts those that are open."""
    monkeypatch.setattr(events, "another_life", lambda rig: rig.bench.dut.host)
    monkeypatch.setattr(events, "opened", Port.opened)
    monkeypatch.setattr(events, "move", lambda lines, directions, bursts: lines[0].port.changed())
    monkeypatch.setattr(events, "close", lambda life, lines: life.close())
    monkeypatch.setattr(events, "wait_until", lambda condition, *_: condition())


@pytest.mark.parametrize("name", CHANGES)
def test_what_a_scenario_changes_comes_back(name: str) -> None:
    """Ctrl-C comes into one command after the other, until none is left."""
    for at in range(1, 20):
        port = Port(at)
        try:
            with port.undo:
                CHANGES[name](port)
        except KeyboardInterrupt:
            assert port.state == FOUND, f"{name}, at change {at}"
            continue
        assert port.state == FOUND and port.changes == at - 1 > 0, name
        return


@pytest.mark.parametrize("name", events.EVENTS)
def test_an_event_whose_port_never_answers_is_undone(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A port that shows no change until the deadline fails the scenario, and stays as it was found."""

    def never(condition: Callable[[], bool], *_: object) -> None:
        raise AssertionError("gave up")

    monkeypatch.setattr(events, "wait_until", never)
    monkeypatch.setattr(shapes_path, "wait_until", never)
    port = Port(0)
    try:
        with port.undo:
            CHANGES[name](port)
    except AssertionError:
        pass
    else:
        assert name not in ("carrier", "rings", "channels", "mtu")
    assert port.state == FOUND


def test_an_event_that_falls_after_the_last_byte_is_undone_and_not_made(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The sender was done before the event was: the words say so, and the port is as it was."""
    monkeypatch.setattr(events, "arrived", lambda *_: None)
    source = SimpleNamespace(answered=lambda _: True, end=lambda _: None)
    line = SimpleNamespace(
        old=False,
        source=lambda _: SimpleNamespace(connections=source),
        sink=lambda _: SimpleNamespace(take=lambda _: {}),
        send=lambda *_: 1,
    )
    port = Port(0)
    port.line = line
    with port.undo:
        missed = events.between(port, "mtu", ["tx"], 7)  # type: ignore[arg-type]
    assert missed == "the sender was done when mtu was" and port.state == FOUND and port.changes > 1
