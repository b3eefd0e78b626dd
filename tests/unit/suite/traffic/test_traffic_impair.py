"""Impairment on the wire: what is refused before anything changes, what is done, what is put back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from offload.errors import ConfigError, NoDevice, NoPermission, OffloadError, Refused, RigError
from offload.suite.traffic.impair import Chosen, Netem, RandomImpairment, Record, netem, wirebox
from offload.suite.traffic.impairments.place import survey
from tests.unit.suite.traffic.fake_wire import FakeWire, bench

Change = Callable[[FakeWire], Any]
WRONG: dict[str, tuple[Change, type[OffloadError], str]] = {
    "missing": (lambda w: w.ports.pop("w1"), NoDevice, "the wire has no interface 'w1'"),
    "down": (lambda w: w.ports["w1"].update(flags=[]), RigError, "w1 is down: it carries no traffic"),
    "an end": (
        lambda w: w.ports["w0"].update(addr_info=[{"local": "192.0.2.9", "scope": "global"}]),
        Refused,
        "w0 has the address 192.0.2.9: it is an endpoint, not the wire",
    ),
    "MTU": (lambda w: w.ports["w1"].update(mtu=9000), ConfigError, "different MTUs: w0 1500 and w1 9000"),
    "MTU below": (
        lambda w: [port.update(mtu=575) for port in w.ports.values()],
        ConfigError,
        "the wire has an MTU of 575",
    ),
    "two bridges": (lambda w: w.ports["w1"].update(master="br1"), ConfigError, "w0 in br0 and w1 in br1"),
    "one bridge": (lambda w: w.ports["w1"].update(master=""), ConfigError, "w0 in br0 and w1 in none"),
    "no bridge": (lambda w: w.bridge.update(br0="bond"), ConfigError, "w0 and w1 belong to br0, which is no"),
    "more ports": (
        lambda w: w.ports.update(mirror={"flags": ["UP"], "master": "br0"}),
        Refused,
        r"bridge br0 has more ports \(mirror\)",
    ),
    "VLANs": (
        lambda w: w.files.update({"/sys/class/net/br0/bridge/vlan_filtering": "1"}),
        Refused,
        "bridge br0 filters VLANs",
    ),
    "rights": (
        lambda w: w.files.update({"/proc/self/status": "CapEff:\t0000000000002000"}),
        NoPermission,
        "impairments on wire need CAP_NET_ADMIN and CAP_NET_RAW",
    ),
    "LRO": (lambda w: w.ports["w0"].update(lro="on [fixed]"), RigError, r"w0 merges frames \(LRO\)"),
}


def in_wirebox(*rules: Any, wire: Any = None, program: str = "PROGRAM", **more: Any) -> None:
    """Put wirebox into a fake bench and take it out again."""
    with wirebox(more.pop("bench", None) or bench(wire), rules, program=program, **more):
        pass


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_a_cable_is_refused_before_anything_changes(what: str) -> None:
    """Each impossible place gets one sentence, and no command changed anything."""
    change, error, text = WRONG[what]
    wire = FakeWire()
    change(wire)
    with pytest.raises(error, match=text) as caught:
        in_wirebox(wire=wire)
    assert wire.changes() == [] and "\n" not in str(caught.value).split("\n  hint")[0]


def test_the_ends_are_refused_with_a_reason() -> None:
    """Impairment on the DUT's or peer's own port is refused with the kernel's reason."""
    wire = FakeWire()
    for port in ("eth0", "eth1"):
        with pytest.raises(Refused, match=rf"{port} is the (DUT|peer)'s own port.*skb_orphan_partial"):
            with netem(bench(wire), port, Netem(loss=1)):
                pass
        with pytest.raises(Refused, match="own port"):
            in_wirebox(bench=bench(FakeWire("dut" if port == "eth0" else "peer"), ("w0", port)))
    assert wire.did == []


def test_a_wire_is_two_ports_of_somebody() -> None:
    """A bench without wire, with one port, or the same one twice is refused."""
    with pytest.raises(Refused, match="this bench's wire has no capture point"):
        in_wirebox(bench=bench(None, ()))
    for ports in (("w0",), ("w0", "w0"), ()):
        with pytest.raises(ConfigError, match="the wire has . ports"):
            in_wirebox(bench=bench(FakeWire(), ports))
    with pytest.raises(ConfigError, match="'w7' is not a port of the wire") as caught:
        with netem(bench(FakeWire()), "w7", Netem(loss=1)):
            pass
    assert "there are: w0, w1" in str(caught.value)


def test_impairment_that_cannot_meet_the_offload_is_refused() -> None:
    """Impairment only on what a transmit-only card receives is refused; on both it is not."""
    for rule in (
        Chosen("first", direction="to-dut"),
        RandomImpairment(loss=1, direction="to-dut"),
        "b>a last drop",
    ):
        wire = FakeWire()
        with pytest.raises(
            Refused, match="what the DUT receives say nothing about a card that offloads tx only"
        ):
            in_wirebox(rule, wire=wire, offloads=("tx",))
        assert wire.did == []
        in_wirebox(rule, wire=wire, offloads=("tx", "rx"))
    in_wirebox(RandomImpairment(loss=1), Chosen("first"), wire=FakeWire(), offloads=("tx",))
    for text in ("  b>a last drop", " impair  b>a loss 1%", "impair\tb>a loss 1%"):
        with pytest.raises(Refused):
            in_wirebox(text, wire=FakeWire(), offloads=("tx",))


def test_impairment_added_later_is_refused_as_well() -> None:
    """A rule that comes while frames are carried is held to what the card offloads."""
    wire = FakeWire()
    with wirebox(bench(wire), program="PROGRAM", offloads=("tx",)) as box:
        with pytest.raises(Refused, match="offloads tx only"):
            box.add(Chosen("first", direction="to-dut"))
        assert box.add(Chosen("first")) == 1
    assert box.record().rules == ("a>b first drop",) and box.record().start == ()


@pytest.mark.parametrize("join", [False, True])
def test_wirebox_joins_older_connections_if_asked(join: bool) -> None:
    """Without that it follows a connection from its SYN only."""
    wire = FakeWire()
    with wirebox(bench(wire), program="PROGRAM", join=join):
        assert ("--join" in wire.did[-1].split()) is join


@pytest.mark.parametrize(("port", "offloads"), [("w0", "tx"), ("w1", "rx")])
def test_netem_that_cannot_meet_the_offload_is_refused(port: str, offloads: str) -> None:
    """netem on the way that a card does not offload is refused; on the other way it is not."""
    wire = FakeWire()
    with pytest.raises(Refused, match=f"say nothing about a card that offloads {offloads} only"):
        with netem(bench(wire), port, Netem(loss=1), offloads=(offloads,)):
            pass
    assert wire.did == []
    with netem(bench(wire), "w1" if port == "w0" else "w0", Netem(loss=1), offloads=(offloads,)):
        pass
    with netem(bench(wire), port, Netem(loss=1), offloads=("tx", "rx")):
        pass


def test_wrong_rules_change_nothing() -> None:
    """A rule that wirebox does not know, or two in one, is refused while all is as it was."""
    for rule in ("nonsense", "a>b first drop\nclear", "  "):
        wire = FakeWire()
        with pytest.raises(ConfigError, match="nonsense|not a rule"):
            in_wirebox(rule, wire=wire)
        assert wire.changes() == []
    with pytest.raises(RigError, match="missing does not run on wire"):
        in_wirebox(wire=wire, program="missing")
    assert wire.changes() == []


def test_wirebox_takes_the_place_of_the_bridge_and_gives_it_back() -> None:
    """Ports, merging and bridge settings are after as they were before, and rules went in."""
    wire = FakeWire()
    with wirebox(bench(wire), [Chosen("tag", 3)], seed=5, program="PROGRAM") as box:
        assert wire.did[-1] == "PROGRAM w0 w1 --seed 5 --bridge br0"
        assert [p["gro"] for p in wire.ports.values()] == [False, False]
        assert box.add(RandomImpairment(loss=1)) == 2
        with pytest.raises(ConfigError, match="no such word, in 'wrong'"):
            box.add("wrong")
        assert wire.process is not None
        wire.process.said.append(ACTION)
        assert box.acted(1).direction == "to-peer" and box.summary == {}
    assert {(p["gro"], p["master"]) for p in wire.ports.values()} == {(True, "br0")}
    assert wire.files["/sys/class/net/w0/brport/learning"] == "0"
    record = box.record()
    assert record.rules == ("a>b tag 3 drop", RandomImpairment(loss=1).text) and record.seed == 5
    assert record.start == ("a>b tag 3 drop",)
    assert record.summary["to-peer"] == {"tcp": 3, "missed": 0} and len(record.actions) == 1
    assert Record.of(record.json()) == record


ACTION = {
    "rule": 1,
    "frame": 4,
    "direction": "a>b",
    "flow": "192.0.2.1:1>192.0.2.2:2",
    "offset": 10,
    "length": 5,
    "record": None,
    "action": "drop",
    "later": "left out",
}


def test_a_wire_without_bridge_stays_without() -> None:
    """Ports that are in no bridge are in none after."""
    wire = FakeWire()
    for port in wire.ports.values():
        port.update(master="", gro=False)
    in_wirebox(wire=wire)
    assert wire.changes() == ["PROGRAM w0 w1 --seed 1"]


@pytest.mark.parametrize("how", ["never ran", "died", "in the body", "did not fit"])
def test_a_broken_wirebox_leaves_a_whole_wire(how: str) -> None:
    """A wirebox that dies, or forgets the bridge, is a broken rig, and the wire is put back."""
    wire = FakeWire()
    wire.dies, wire.forgets = how == "never ran", True
    with pytest.raises(KeyError if how == "in the body" else RigError):
        with wirebox(bench(wire), program="PROGRAM"):
            assert wire.process is not None
            if how == "died":
                wire.process.alive = False
            elif how == "did not fit":
                wire.process.said.append({"error": "a frame of 9000 bytes exceeds the MTU of the other port"})
            else:
                raise KeyError(how)
    assert {(p["gro"], p["master"]) for p in wire.ports.values()} == {(True, "br0")}


def test_a_record_that_is_none_is_refused() -> None:
    good = Record(1, ("a>b first drop",), (), {}).json()
    wrong: tuple[dict[str, object], ...] = ({"schema": 2}, {"rules": [1]}, {"seed": "x"}, {"actions": [{}]})
    for change in (*wrong, {"actions": 3}, {"begun": 2}, {"begun": -1}, {"begun": "x"}):
        with pytest.raises(ConfigError, match="this is not an impairment record"):
            Record.of({**good, **change})
    with pytest.raises(ConfigError):
        Record.of({})
    assert Record.of(good).rules == ("a>b first drop",)


def test_an_older_record_began_with_what_came_before_it_cleared_up() -> None:
    """A record that does not say how many rules it began with is read by its `clear`."""
    found = Record(1, ("a>b first drop", "clear", "a>b last drop"), (), {}).json()
    del found["begun"]
    assert Record.of(found).start == ("a>b first drop",)


def test_a_wire_that_is_known_is_not_asked_again() -> None:
    """With what `survey` said, nothing is looked up before; all is put back to that after."""
    wire = FakeWire()
    found = survey(bench(wire))
    wire.did.clear()
    in_wirebox(wire=wire, found=found)
    assert not [line for line in wire.did if "address show" in line or "--check" in line or "-k" in line]
    assert survey(bench(wire)) == found
    with pytest.raises(ConfigError, match="no such word"):
        in_wirebox("wrong", wire=wire, found=found)
