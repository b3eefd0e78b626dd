"""Without a NIC that offloads impairment on the wire costs no byte, and hits the frames it is to hit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from offload.card.profile import Cell
from offload.errors import ConfigError, Refused, RigError
from offload.host.base import Bench, Host
from offload.suite.traffic.drive import Report, Sending, sending
from offload.suite.traffic.impair import PROGRAM, Box, Chosen, Netem, RandomImpairment, Record, netem, wirebox
from tests.lib.flow import proof
from tests.lib.flow.flow import Flow, Traffic

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "stunnel", "openssl", "wire")
TX, RX = Cell("tx", "1.2", "aes-gcm-128"), Cell("rx", "1.2", "aes-gcm-128")
KIB = 1024
DIRECTIONS = ("to-peer", "to-dut", "both")


def carried(traffic: Traffic, cell: Cell, plan: Sending) -> tuple[Flow, Report]:
    """One connection in the direction of the cell: all of it, and the end that received."""
    flow = traffic.sent(cell, plan) if cell == TX else traffic.received(cell, plan)
    return flow, flow.far if cell == TX else flow.dut


def direction(cell: Cell) -> str:
    """The direction on the wire in which the payload of a cell goes."""
    return "to-peer" if cell == TX else "to-dut"


def note(evidence: dict[str, Any], box: Box) -> Record:
    """Keep what the impairment was; nothing may have been lost that it did not take."""
    record = box.record()
    evidence["impairment"] = record.json()
    assert all(
        record.summary[d][n] == 0 for d in ("to-peer", "to-dut") for n in ("missed", "too_big", "failed")
    )
    return record


@pytest.mark.turns("direction")
@pytest.mark.parametrize("cell", [TX, RX], ids=["tx", "rx"])
def test_random_impairment(traffic: Traffic, evidence: dict[str, Any], cell: Cell) -> None:
    """Without a NIC that offloads a stream is whole after loss, reordering and duplicates both ways."""
    plan = sending(f"impair {cell.direction}", 256 * KIB)
    impairment = RandomImpairment(loss=1, reorder=2, duplicate=2, seed=7)
    with wirebox(traffic.rig.bench, [impairment]) as box:
        flow, end = carried(traffic, cell, plan)
    moved = note(evidence, box).summary[direction(cell)]
    proof.intact(end, plan)
    proof.done_by_software(flow, cell.direction)
    assert moved["tcp"] > 150 and moved["dropped"] and moved["delayed"] and moved["duplicated"]


def test_chosen_frames(traffic: Traffic, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads each chosen frame is lost once, the same in every run, and sent again."""
    plan, runs = sending("chosen", 96 * KIB, 16 * KIB), []
    rules = [Chosen(place, n, data=True) for n, place in enumerate(("header", "inside", "tag"), 1)]
    for _ in range(2):
        with wirebox(traffic.rig.bench, [*rules, Chosen("first"), Chosen("last")]) as box:
            _, end = carried(traffic, TX, plan)
        record = note(evidence, box)
        proof.intact(end, plan)
        assert record.summary["gaps"] == 0 and {a.action for a in record.actions} == {"drop"}
        assert all(a.flow.endswith(f":{traffic.rig.port}") and a.time == 1 for a in record.actions)
        # where the frame inside a record begins is up to TCP; the others are about one byte
        runs.append(sorted((a.rule, a.record, a.rule == 2 or a.target) for a in record.actions))
    assert [rule for rule, _, _ in runs[0]] == [1, 2, 3, 4, 5] and runs[0] == runs[1]


def test_same_seed_same_decisions(traffic: Traffic, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads a record of the impairment is enough to make the same impairment again."""
    plan, runs = sending("seed", 128 * KIB), []
    rules: tuple[Any, ...] = (RandomImpairment(loss=1, duplicate=5, seed=99, direction="to-peer"),)
    for _ in range(2):
        with wirebox(traffic.rig.bench, rules) as box:
            _, end = carried(traffic, TX, plan)
        proof.intact(end, plan)
        runs.append(note(evidence, box))
        rules = Record.of(runs[0].json()).rules
    both = min(run.summary["to-peer"]["tcp"] for run in runs)
    done = [[(a.number, a.action) for a in run.actions if a.number <= both] for run in runs]
    assert done[0] == done[1] and len(done[0]) > 3


def test_attacker_is_refused(traffic: Traffic, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads a bit flipped under a right checksum ends in a refused record."""
    plan = sending("attacker", 64 * KIB, 16 * KIB)
    with wirebox(traffic.rig.bench, [Chosen("inside", 2, "flip", data=True, direction="to-dut")]) as box:
        flow, end = carried(traffic, RX, plan)
    (action,) = note(evidence, box).actions
    assert (action.action, action.repaired, action.record) == ("flip", True, action.record)
    assert end.taken.bytes < plan.total and "EBADMSG" in end.error, (end.error, end.taken.bytes)
    assert proof.count(flow, "TlsDecryptError") >= 1


def test_noise_is_dropped_and_sent_again(traffic: Traffic, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads a bit flipped by noise costs a retransmission and nothing else."""
    plan = sending("noise", 64 * KIB, 16 * KIB)
    with wirebox(traffic.rig.bench, [Chosen("frame", 20, "flip", repaired=False, direction="to-dut")]) as box:
        flow, end = carried(traffic, RX, plan)
    (action,) = note(evidence, box).actions
    assert (action.action, action.repaired) == ("flip", False)
    proof.intact(end, plan)
    assert flow.moved.get("TlsDecryptError", 0) == 0


def test_netem_on_the_wire(traffic: Traffic, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads netem on a wire port costs no byte, and the qdisc found comes back."""
    wire, port = traffic.rig.bench.wire, traffic.rig.bench.wire_ports[1]
    found = wire.run(["tc", "qdisc", "show", "dev", port]).text
    plan = sending("netem", 128 * KIB)
    with netem(traffic.rig.bench, port, Netem(delay=1, loss=1, seed=5)) as working:
        _, end = carried(traffic, TX, plan)
        evidence["impairment"] = working.json()
    proof.intact(end, plan)
    assert evidence["impairment"]["packets"] > 0
    assert wire.run(["tc", "qdisc", "show", "dev", port]).text == found


def wire_state(bench: Bench) -> list[str]:
    """Features of the wire ports, and all that `bridge` shows of them."""
    assert bench.wire is not None
    shown = [bench.wire.run(["ethtool", "-k", port]).text for port in bench.wire_ports]
    return [*shown, bench.wire.run(["bridge", "-d", "link"]).text]


@pytest.fixture
def odd_wire(bench: Bench) -> Iterator[Host]:
    """A wire whose ports have settings of their own; as found again after the test."""
    host, (first, second) = bench.wire, bench.wire_ports
    assert host is not None
    found = wire_state(bench)
    host.run(["ethtool", "-K", first, "gro", "on"])
    host.run(["bridge", "link", "set", "dev", second, "learning", "off", "cost", "7"])
    yield host
    host.run(["ethtool", "-K", first, "gro", "off"])
    host.run(["bridge", "link", "set", "dev", second, "learning", "on", "cost", "2"])
    assert wire_state(bench) == found


@pytest.mark.turns("end")
@pytest.mark.parametrize("how", ["ended", "killed"])
def test_nothing_is_left_changed(bench: Bench, odd_wire: Host, how: str) -> None:
    """Without a NIC that offloads the wire is after as it was found, also when wirebox was killed."""
    before = wire_state(bench)
    with pytest.raises(RigError, match="wirebox ended") if how == "killed" else nullcontext():
        with wirebox(bench) as box:
            assert wire_state(bench) != before
            if how == "killed":
                odd_wire.run(["kill", "-9", str(box.pid)])
    assert wire_state(bench) == before


def test_impairment_at_an_end_is_refused(bench: Bench) -> None:
    """Without a NIC that offloads impairment on the DUT's own port is refused with a reason."""
    found = bench.dut.host.run(["tc", "qdisc", "show"]).text
    with pytest.raises(Refused, match="skb_orphan_partial"), netem(bench, bench.dut.dev, Netem(loss=1)):
        pass
    assert bench.dut.host.run(["tc", "qdisc", "show"]).text == found
    with pytest.raises(ConfigError, match="'heeder' is not a place"), wirebox(bench, ["a>b heeder 3 drop"]):
        pass


def test_every_rule_is_understood(bench: Bench) -> None:
    """Without a NIC that offloads wirebox understands every rule that can be put together."""
    records = [Chosen(p, 7, data=d) for p in ("header", "inside", "tag") for d in (False, True)]
    places = [*records, Chosen("first"), Chosen("last"), Chosen("offset", 1 << 40), Chosen("frame", 0)]
    rules = [
        replace(p, action=a, times=2, port=443)
        for p in places
        for a in ("drop", "delay", "duplicate", "flip")
    ]
    rules += [
        Chosen("tag", 1, "flip", at=at, bit=7, repaired=fixed) for at in (-9, 9) for fixed in (False, True)
    ]
    impairment = [
        RandomImpairment(100, 0.0001, 0.5, 99.9999, 1000, 1 << 63, d, 1000, r)
        for d in DIRECTIONS
        for r in (False, True)
    ]
    lines = [f"{rule.text}\n" for rule in (*rules, *impairment)]
    for at in range(0, len(lines), 30):  # wirebox takes 32
        bench.dut.host.run([PROGRAM, "--check"], input="".join(lines[at : at + 30]).encode())
