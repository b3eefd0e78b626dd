"""Without a NIC that offloads records and segments of every shape are right, and the bench is put back."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import asdict, replace
from socket import IPPROTO_IP
from typing import Any

import pytest

from offload.card.profile import Cell
from offload.errors import ConfigError, NoDevice, OffloadError, Refused
from offload.host.base import Bench, Host, Side
from offload.suite.traffic.drive import sending
from offload.suite.traffic.impair import Chosen
from offload.suite.traffic.ipsec import protected
from offload.suite.traffic.learned import learned
from tests.lib.flow import proof, shapes
from tests.lib.flow.flow import Flow, Several, Traffic
from tests.lib.flow.shapes import TURN, WHOLE
from tests.lib.impair import shapes_path as path
from tests.lib.impair.impairment import impaired
from tests.lib.impair.link import bounce
from tests.lib.life.life import Life
from tests.lib.rig.rig import Rig
from tests.lib.scenario.setting import EF, IP_TOS
from tests.lib.wire.wire import WireTap

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "stunnel", "wire", "wire-tap")
TX, RX = Cell("tx", "1.2", "aes-gcm-128"), Cell("rx", "1.2", "aes-gcm-128")
KIB = 1024
WRAP = 3 * WHOLE + 8192  # as in tests/hw/3_segments/test_32_shapes.py
LOST = (Chosen("offset", WRAP), Chosen("offset", WRAP - 3000))
NUMBERS = ((1 << 32) - 3, (1 << 64) - 40)


def carried(traffic: Traffic, cell: Cell, plan: Several, family: int) -> Flow:
    """Carry a plan in the direction of the cell; every byte has to arrive, by software."""
    if cell == TX:
        flow = traffic.sent(cell, plan, family=family)
    else:
        flow = shapes.received(traffic, cell, plan, family=family)
    proof.intact(flow.far if cell == TX else flow.dut, plan)
    proof.done_by_software(flow, cell.direction)
    return flow


def test_sends_by_every_system_call(traffic: Traffic, wire_tap: WireTap, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads each way to write makes the records that it should, each byte right."""
    plan = shapes.methods("sw methods")
    with wire_tap.open() as watch:
        carried(traffic, TX, plan, 4)
        seen = watch.proves(evidence, "client", plan.total, payload=plan.content())
        assert {int(size) for size in seen["sizes"]} == shapes.records(plan), (
            "other records than were written"
        )


def test_receives_from_every_system_call(traffic: Traffic, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads records of 1 byte to 16 KiB arrive, however they were written."""
    plan = shapes.methods("sw methods rx")
    proof.note(evidence, carried(traffic, RX, plan, 6), plan, "sw")


@pytest.mark.turns("mtu")
@pytest.mark.parametrize(("mtu", "family"), [(600, 4), (9000, 6)])
def test_carries_both_directions_at_mtu(
    traffic: Traffic, bench: Bench, wire_tap: WireTap, evidence: dict[str, Any], mtu: int, family: int
) -> None:
    """Without a NIC that offloads both ways are right in frames of this MTU, and the path is put back."""
    plan, found = shapes.frames(f"sw frames {mtu}"), path.path_of(bench, mtu)
    with path.path_mtu(bench, mtu):
        with wire_tap.open() as watch:
            carried(traffic, TX, plan, family)
            watch.proves(evidence, "client", plan.total, payload=plan.content())
        carried(traffic, RX, plan, family)
    assert path.path_of(bench, mtu) == found


def test_crosses_tcp_sequence_wrap(traffic: Traffic, wire_tap: WireTap, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads a record is right in which TCP's number begins again at 0, lost or not."""
    plan = Several((sending("sw wrap", 96 * KIB),))
    rules = (*LOST, *(replace(rule, direction="to-dut") for rule in LOST))
    with impaired(traffic, evidence, rules):
        with wire_tap.open() as watch:
            flow = shapes.sent(traffic, TX, plan, TURN - 1 - WRAP)
            watch.proves(evidence, "client", plan.total, payload=plan.content())
            evidence["wrap"] = asdict(shapes.wrap(watch, traffic.rig.port))
            proof.intact(flow.far, plan)
            proof.done_by_software(flow, "tx")
        flow = shapes.received(traffic, RX, plan, isn=TURN - 1 - WRAP)
    proof.intact(flow.dut, plan)
    proof.done_by_software(flow, "rx")


@pytest.mark.turns("number")
@pytest.mark.parametrize("cell", [TX, RX], ids=["tx", "rx"])
def test_carries_64_bit_record_numbers(traffic: Traffic, evidence: dict[str, Any], cell: Cell) -> None:
    """Without a NIC that offloads record numbers of 64 bits are carried, and software is seen to do it."""
    plan = Several((sending("sw numbers", 96 * KIB), sending("sw numbers end", 1000)))
    for number in NUMBERS:
        flow = shapes.numbered(traffic, cell, plan, number)
        proof.intact(flow.far if cell == TX else flow.dut, plan)
        assert (proof.count(flow, "TlsTxSw"), proof.count(flow, "TlsRxSw")) == (1, 1)
        proof.not_by_card(flow, cell.direction)
    evidence["numbers"] = [f"{number:#x}" for number in NUMBERS]


def test_a_file_that_changes(traffic: Traffic, wire_tap: WireTap, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads zero-copy sendfile is taken and does nothing: no harm in a changed file."""
    plan = shapes.file_again("sw hazard", "zerocopy", True)
    with wire_tap.open() as watch:
        flow = shapes.changed_file(traffic, TX, evidence, plan)
        seen = watch.proves(evidence, "client", plan.total, payload=plan.content())
        proof.intact(flow.far, plan)
        proof.done_by_software(flow, "tx")
        assert seen["retransmissions"] > 0, "nothing was seen to be sent again"
    evidence["zerocopy_hazard"] = False


def test_refuses_another_path(bench: Bench) -> None:
    """Without a NIC that offloads an MTU that the path cannot have is refused before anything changes."""
    missing = replace(bench, dut=replace(bench.dut, dev="veth7"))
    cases: list[tuple[Bench, int, type[OffloadError], str]] = [
        (bench, 67, ConfigError, "MTU 67 is below the minimum of vw0 on wire"),
        (bench, 65536, ConfigError, "MTU 65536 is above the maximum of vw0 on wire"),
        (missing, 600, NoDevice, "dut has no interface 'veth7'"),
        (replace(bench, wire=None), 600, Refused, "this bench's wire has no capture point"),
    ]
    found = path.path_of(bench, 1500)
    for other, mtu, error, words in cases:
        with pytest.raises(error, match=words) as caught, path.path_mtu(other, mtu):
            pass
        assert len(str(caught.value).splitlines()) == 2, "one sentence and one hint"
    assert path.path_of(bench, 1500) == found


def test_puts_back_what_it_set(bench: Bench) -> None:
    """Without a NIC that offloads settings of TCP come back after a failure too; unknown ones are refused."""
    found = [side.host.run(["sysctl", "net.ipv4.tcp_sack"]).text for side in (bench.dut, bench.peer)]
    with pytest.raises(ZeroDivisionError), path.tcp_settings(bench, sack=0, ecn=1):
        assert "= 0" in bench.peer.host.run(["sysctl", "net.ipv4.tcp_sack"]).text
        raise ZeroDivisionError
    with pytest.raises(ConfigError, match="net.ipv4.tcp_none"), path.tcp_settings(bench, sack=0, none=1):
        pass
    assert [side.host.run(["sysctl", "net.ipv4.tcp_sack"]).text for side in (bench.dut, bench.peer)] == found


def too_long(host: Host) -> int:
    """Packets that a host's kernel did not send, as the path was too small for them (FragFails)."""
    rows = [line.split() for line in host.read("/proc/net/snmp").decode().splitlines() if line[:3] == "Ip:"]
    return int(rows[1][rows[0].index("FragFails")])


@pytest.mark.once
@pytest.mark.parametrize("smaller", ["mtu", "esp"])
def test_a_smaller_path_is_forgotten(rig: Rig, life: Life, smaller: str, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads an open connection meets a smaller path, and no kernel knows it later."""
    dut, peer = rig.bench.dut, rig.bench.peer
    (pair,) = life.plain()
    pair.moves(f"before {smaller}", 16 * KIB)
    before = too_long(dut.host)
    with path.path_mtu(rig.bench, 600) if smaller == "mtu" else protected(dut, peer, "gcm-128"):
        # the DUT's TCP forgets its route, and goes by the old size of its segments until it sends
        pair.near.call("option", level=IPPROTO_IP, name=IP_TOS, value=EF)
        pair.moves(f"in {smaller}", 16 * KIB)
    life.close([pair])
    evidence["too_long"] = too_long(dut.host) - before
    assert evidence["too_long"] > 0, "no packet met the smaller path: this says nothing"
    assert [learned(*way) for way in ((dut.host, peer.v4), (peer.host, dut.v4))] == [0, 0]


@pytest.mark.once
@pytest.mark.parametrize("lost", ["link", "mtu"])
def test_routes_by_a_gateway_come_back(bench: Bench, lost: str) -> None:
    """Without a NIC that offloads who is behind a gateway is reached after the port was down, or small."""
    dut, peer = bench.dut, bench.peer
    ways = [("-4", "198.51.100.0/24", peer.v4), ("-6", "2001:db8:51::/48", peer.v6)]
    with ExitStack() as undo:
        for family, to, via in ways:
            words = [to, "via", via, "dev", dut.dev]
            undo.callback(dut.host.run, ["ip", family, "route", "del", *words], check=False)
            dut.host.run(["ip", family, "route", "add", *words])
        before = routes(dut)
        assert {"198.51.100.0/24", "2001:db8:51::/48"} <= {*" ".join(before).split()}
        if lost == "link":
            bounce(dut)
        else:
            with path.path_mtu(bench, 600):
                assert routes(dut) != before, "the kernel took nothing: this says nothing"
        assert routes(dut) == before


def routes(side: Side) -> list[str]:
    """What a port leads to, in both families; not what the kernel makes late by itself."""
    shown = [side.host.run(["ip", family, "route", "show", "dev", side.dev]).text for family in ("-4", "-6")]
    return sorted(line for text in shown for line in text.splitlines() if not line.startswith("fe80:"))
