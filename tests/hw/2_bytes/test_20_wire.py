"""This NIC moves every byte: by hardware where its profile promises that, by software where not."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.counters import tls_stat
from offload.card.profile import Cell, Profile
from offload.host.base import Side
from offload.suite.traffic.drive import Sending, send, sending, take
from tests.lib.flow import proof
from tests.lib.flow.flow import Flow, Traffic
from tests.lib.impair.link import bounce
from tests.lib.rig.switch import Switch

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "stunnel", "openssl")
MIB = 1 << 20
TX, RX = Cell("tx", "1.2", "aes-gcm-128"), Cell("rx", "1.2", "aes-gcm-128")
KINDS = ("hw", "sw", "user")  # of TLS at the peer: by its card, its kernel, its program


def interop(direction: str, far: str) -> list[pytest.MarkDecorator]:
    """Return what is asked of a cell: the peer's card is not on trial, so what needs one blocks no
    certificate."""
    if far != "hw":
        return [pytest.mark.promise(f"interop.{direction}")]
    theirs = {"tx": "rx", "rx": "tx"}[direction]
    return [
        pytest.mark.promise("interop.card"),
        pytest.mark.direction(direction),
        pytest.mark.requires(f"peer-tls-hw-{theirs}-offload"),
    ]


# One write each: one byte, around one record (16384) and two, around what one GSO packet holds (65536), and
# such that record ends and segment ends meet: MSS 1448 at MTU 1500, 29 bytes around a record's payload.
SIZES = {
    "record": (1, 16383, 1, 16384, 1, 16385, 2, 32767, 32768, 32769, 1),
    "64k": (65535, 1, 65536, 65537, 131071, 131072, 131073),
    "segment": tuple(n * 1448 - 29 + d for n in (1, 2, 3, 11) for d in (-1, 0, 1)),
}
PRIMER = (
    16384,
) * 16  # received first: by its end the card is in sync, so that the sizes are what it decrypts


@pytest.mark.promise("payload.tx")
@pytest.mark.cells("tx")
@pytest.mark.parametrize("family", [4, 6], ids=["v4", "v6"])
def test_sends_to_stunnel(
    traffic: Traffic, offload: Switch, evidence: dict[str, Any], cell: Cell, family: int
) -> None:
    """This NIC encrypts what it sends, and an unmodified stunnel peer passes on every byte."""
    offload.on()
    plan = sending(f"{cell} v{family}", MIB, 50_000, how="sendfile" if family == 6 else "write")
    flow = traffic.sent(cell, plan, family=family)
    proof.note(evidence, flow, plan, "hw")
    proof.handed_over(flow, cell)
    proof.intact(flow.far, plan)
    proof.sent_by_card(flow, plan)


@pytest.mark.promise("payload.rx")
@pytest.mark.cells("rx")
@pytest.mark.parametrize("family", [4, 6], ids=["v4", "v6"])
def test_receives_from_stunnel(
    traffic: Traffic, offload: Switch, evidence: dict[str, Any], cell: Cell, family: int
) -> None:
    """This NIC decrypts what it receives from an unmodified stunnel peer, every byte."""
    offload.on()
    plan = sending(f"{cell} v{family}", MIB, 50_000)
    flow = traffic.received(cell, plan, family=family)
    proof.note(evidence, flow, plan, "hw")
    proof.handed_over(flow, cell)
    proof.intact(flow.dut, plan)
    proof.received_by_card(flow, plan)


@pytest.mark.promise("fallback.expected")
@pytest.mark.cells("unpromised")
def test_unpromised_ciphers_stay_in_software(
    traffic: Traffic, offload: Switch, evidence: dict[str, Any], cell: Cell
) -> None:
    """This NIC does not touch what it does not promise: software takes over, intact and for all to see."""
    offload.on()
    plan = sending(str(cell), MIB // 2)
    if cell.direction == "tx":
        flow = traffic.sent(cell, plan)
        proof.intact(flow.far, plan)
    elif cell.version == "1.3":
        # OpenSSL before 3.2 has no kTLS receive for TLS 1.3: its own code is the software
        flow = traffic.received_by_openssl(cell, plan)
        proof.intact(flow.dut, plan)
        proof.not_by_card(flow, "rx")
        assert proof.count(flow, "TlsTxSw") == 1, "kernel TLS was asked for, and tls_stat does not show it"
        proof.note(evidence, flow, plan, "sw")
        return
    else:
        flow = traffic.received(cell, plan)
        proof.intact(flow.dut, plan)
    proof.note(evidence, flow, plan, "sw")
    proof.handed_over(flow, cell)
    proof.done_by_software(flow, cell.direction)


@pytest.mark.parametrize("far", [pytest.param(kind, marks=interop("tx", kind)) for kind in KINDS])
def test_sends_to_each_kind(
    traffic: Traffic, offload: Switch, peer_offload: Switch, peer: Side, evidence: dict[str, Any], far: str
) -> None:
    """This NIC encrypts for a peer whose card, kernel or program (OpenSSL's own) decrypts."""
    offload.on()
    peer_offload.set(tx=False, rx=far == "hw")
    before, plan = tls_stat(peer.host)[0] or {}, sending(f"interop tx {far}", MIB)
    flow = traffic.sent_to_openssl(TX, plan, ktls=far != "user")
    moved = {name: n - before.get(name, 0) for name, n in (tls_stat(peer.host)[0] or {}).items()}
    proof.note(evidence, flow, plan, "hw")
    proof.handed_over(flow, TX)
    proof.intact(flow.far, plan)
    proof.sent_by_card(flow, plan)
    wanted = {"hw": (1, 0), "sw": (0, 1), "user": (0, 0)}[far]
    assert (moved.get("TlsRxDevice", 0), moved.get("TlsRxSw", 0)) == wanted, (
        "the peer is not what it should be"
    )


@pytest.mark.parametrize("far", [pytest.param(kind, marks=interop("rx", kind)) for kind in KINDS])
def test_receives_from_each_kind(
    traffic: Traffic, offload: Switch, peer_offload: Switch, peer: Side, evidence: dict[str, Any], far: str
) -> None:
    """This NIC decrypts for a peer whose card, kernel or program (OpenSSL's own) encrypts."""
    offload.on()
    peer_offload.set(tx=far == "hw", rx=False)
    before, plan = tls_stat(peer.host)[0] or {}, sending(f"interop rx {far}", MIB)
    flow = traffic.received_from_openssl(RX, plan, ktls=far != "user")
    moved = {name: n - before.get(name, 0) for name, n in (tls_stat(peer.host)[0] or {}).items()}
    proof.note(evidence, flow, plan, "hw")
    proof.handed_over(flow, RX)
    proof.intact(flow.dut, plan)
    proof.received_by_card(flow, plan)
    wanted = {"hw": (1, 0), "sw": (0, 1), "user": (0, 0)}[far]
    assert (moved.get("TlsTxDevice", 0), moved.get("TlsTxSw", 0)) == wanted, (
        "the peer is not what it should be"
    )


@pytest.mark.once
@pytest.mark.parametrize(
    ("cell", "near", "far"),
    [
        pytest.param(cell, near, far, marks=interop(cell.direction, far), id=f"{cell.direction}-{near}-{far}")
        for cell in (TX, RX)
        for near in ("sw", "user")
        for far in KINDS
    ],
)
def test_software_works_alongside(
    traffic: Traffic,
    offload: Switch,
    peer_offload: Switch,
    peer: Side,
    evidence: dict[str, Any],
    cell: Cell,
    near: str,
    far: str,
) -> None:
    """This NIC leaves alone the TLS of a kernel or program above it, with every kind of peer."""
    offload.on()
    ours, theirs = cell.direction, "rx" if cell.direction == "tx" else "tx"
    offload.set(**({ours: False} if near == "sw" else {}))
    peer_offload.set(**{theirs: far == "hw"})
    before, plan = tls_stat(peer.host)[0] or {}, sending(f"beside {cell} {near} {far}", MIB // 2)
    flow = traffic.between_openssl(cell, plan, near=near == "sw", far=far != "user")
    moved = {name: n - before.get(name, 0) for name, n in (tls_stat(peer.host)[0] or {}).items()}
    proof.note(evidence, flow, plan, "sw")
    proof.intact(flow.far if ours == "tx" else flow.dut, plan)
    proof.not_by_card(flow, ours)
    assert proof.count(flow, f"Tls{ours.title()}Sw") == (1 if near == "sw" else 0), "the DUT's end is another"
    shown = tuple(moved.get(f"Tls{theirs.title()}{kind}", 0) for kind in ("Device", "Sw"))
    assert shown == {"hw": (1, 0), "sw": (0, 1), "user": (0, 0)}[far], "the peer is not what it should be"


@pytest.mark.promise("sizes.tx")
@pytest.mark.parametrize("edge", SIZES)
def test_sends_every_size(traffic: Traffic, offload: Switch, evidence: dict[str, Any], edge: str) -> None:
    """This NIC encrypts records of every size around the edges of records, 64 KiB and segments."""
    offload.on()
    plan = Sending(f"sizes tx {edge}", SIZES[edge])
    flow = traffic.sent(TX, plan)
    proof.note(evidence, flow, plan, "hw")
    proof.handed_over(flow, TX)
    proof.intact(flow.far, plan)
    proof.sent_by_card(flow, plan)


@pytest.mark.promise("sizes.rx")
@pytest.mark.parametrize("edge", SIZES)
def test_receives_every_size(
    traffic: Traffic, offload: Switch, peer_offload: Switch, evidence: dict[str, Any], edge: str
) -> None:
    """This NIC decrypts records of every size around the edges of records, 64 KiB and segments."""
    offload.on()
    peer_offload.set(tx=False)  # the sender is software: only the DUT's card is asked
    plan = Sending(f"sizes rx {edge}", PRIMER + SIZES[edge])
    flow = traffic.received_as_written(RX, plan)
    proof.note(evidence, flow, plan, "hw")
    proof.handed_over(flow, RX)
    proof.intact(flow.dut, plan)
    proof.received_by_card(flow, plan)


@pytest.mark.promise("lifecycle.link-down")
def test_sends_on_after_link_down(
    traffic: Traffic, offload: Switch, dut: Side, profile: Profile, evidence: dict[str, Any]
) -> None:
    """This NIC loses no byte of a connection that it encrypts when its link goes down and comes back."""
    offload.on()
    before, plan = traffic.rig.counters(), sending("link down tx", MIB, 65536, gate=8)
    with traffic.behind_stunnel(take()) as (port, far):
        near = traffic.dut.pump.handoff(traffic.argv(TX, port), send(plan))
        near.at_gate()
        bounce(dut)
        near.go()
        flow = Flow(near.report(), far.report(), traffic.rig.counters() - before)
    proof.note(evidence, flow, plan, "hw")
    proof.intact(flow.far, plan)
    assert flow.line.tx == "hw", f"inet_diag showed transmit as {flow.line.tx} before the link went down"
    assert proof.count(flow, "tx_tls_encrypted_bytes") > 0, (
        "the card encrypted nothing before the link went down"
    )


@pytest.mark.promise("lifecycle.link-down")
def test_receives_on_after_link_down(
    traffic: Traffic, offload: Switch, dut: Side, profile: Profile, evidence: dict[str, Any]
) -> None:
    """This NIC loses no byte of a connection that it decrypts when its link goes down and comes back."""
    offload.on()
    before, plan = traffic.rig.counters(), sending("link down rx", MIB, 65536, gate=8)
    with traffic.behind_stunnel(send(plan)) as (port, far):
        near = traffic.dut.pump.handoff(traffic.argv(RX, port, want="both"), take())
        far.at_gate()
        bounce(dut)
        far.go()
        flow = Flow(near.report(), far.report(), traffic.rig.counters() - before)
    proof.note(evidence, flow, plan, "hw" if "rx" in profile.directions() else "sw")
    proof.intact(flow.dut, plan)
    wanted = "hw" if "rx" in profile.directions() else "sw"
    assert flow.line.rx == wanted, f"inet_diag showed receive as {flow.line.rx} before the link went down"
