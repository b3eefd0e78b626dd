"""Without a NIC that offloads every byte arrives: by kernel software, or by stunnel without kTLS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from offload.card.counters import tls_stat
from offload.card.profile import Cell
from offload.cmd import wait_until
from offload.host.base import Side
from offload.suite.traffic.drive import Sending, send, sending, take
from tests.lib.flow import proof
from tests.lib.flow.flow import Flow, Traffic
from tests.lib.impair.link import bounce
from tests.lib.rig.rig import Rig

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "stunnel", "openssl")
MIB = 1 << 20
TX, RX = Cell("tx", "1.2", "aes-gcm-128"), Cell("rx", "1.2", "aes-gcm-128")
MODPROBE = "/proc/sys/kernel/modprobe"  # what the kernel runs to load a module that it misses
# as in tests/hw/2_bytes/test_20_wire.py
SIZES = {
    "record": (1, 16383, 1, 16384, 1, 16385, 2, 32767, 32768, 32769, 1),
    "64k": (65535, 1, 65536, 65537, 131071, 131072, 131073),
    "segment": tuple(n * 1448 - 29 + d for n in (1, 2, 3, 11) for d in (-1, 0, 1)),
}


@pytest.mark.promise("fallback.expected")
@pytest.mark.cells("all")
def test_software_carries_every_cell(traffic: Traffic, evidence: dict[str, Any], cell: Cell) -> None:
    """Without a NIC that offloads software carries each version and cipher, intact and for all to see."""
    plan = sending(f"sw {cell}", MIB // 2, 50_000)
    if cell.direction == "tx":
        flow = traffic.sent(cell, plan, family=6)
        proof.intact(flow.far, plan)
    elif cell.version == "1.3":  # OpenSSL before 3.2 has no kTLS receive for TLS 1.3
        flow = traffic.received_by_openssl(cell, plan)
        proof.intact(flow.dut, plan)
        proof.not_by_card(flow, "rx")
        proof.note(evidence, flow, plan, "sw")
        return
    else:
        flow = traffic.received(cell, plan, family=6)
        proof.intact(flow.dut, plan)
    proof.note(evidence, flow, plan, "sw")
    proof.handed_over(flow, cell)
    proof.done_by_software(flow, cell.direction)


@pytest.mark.turns("peer")
@pytest.mark.parametrize("far", ["sw", "user"])
def test_interop_in_both_directions(traffic: Traffic, peer: Side, far: str) -> None:
    """Without a NIC that offloads the kernel's TLS agrees with itself and with OpenSSL's own."""
    before, plan = tls_stat(peer.host)[0] or {}, sending(f"sw interop {far}", MIB // 2)
    there = traffic.sent_to_openssl(TX, plan, ktls=far == "sw")
    back = traffic.received_from_openssl(RX, plan, ktls=far == "sw")
    proof.intact(there.far, plan)
    proof.intact(back.dut, plan)
    moved = {name: n - before.get(name, 0) for name, n in (tls_stat(peer.host)[0] or {}).items()}
    assert moved.get("TlsRxSw", 0) == (2 if far == "sw" else 0), "the peer is not what it should be"


@pytest.mark.turns("size")
@pytest.mark.parametrize("edge", SIZES)
def test_every_size_in_both_directions(traffic: Traffic, edge: str) -> None:
    """Without a NIC that offloads records of every size around the edges arrive."""
    plan = Sending(f"sw sizes {edge}", SIZES[edge])
    flow = traffic.sent(TX, plan)
    proof.intact(flow.far, plan)
    proof.done_by_software(flow, "tx")
    flow = traffic.received_as_written(RX, plan)
    proof.intact(flow.dut, plan)
    proof.done_by_software(flow, "rx")


@pytest.mark.promise("lifecycle.link-down")
def test_sends_on_after_link_down(traffic: Traffic, dut: Side) -> None:
    """Without a NIC that offloads a connection survives a link that goes down and comes back."""
    before, plan = traffic.rig.counters(), sending("sw link down", MIB // 2, 65536, gate=4)
    with traffic.behind_stunnel(take()) as (port, far):
        near = traffic.dut.pump.handoff(traffic.argv(TX, port), send(plan))
        near.at_gate()
        bounce(dut)
        near.go()
        flow = Flow(near.report(), far.report(), traffic.rig.counters() - before)
    proof.intact(flow.far, plan)
    proof.done_by_software(flow, "tx")


@pytest.mark.turns("call")
@pytest.mark.parametrize("how", ["write", "sendfile"])
def test_tickets_cost_no_byte(traffic: Traffic, how: str) -> None:
    """Without a NIC that offloads a TLS 1.3 stream is whole though nobody read its session tickets.

    close() with unread bytes in the queue sends a reset, and the peer then drops what it has not read:
    of 1 MiB 64 to 144 KiB arrived. close_notify, shutdown, read to the end, close is safe.
    """
    plan = sending(f"tickets {how}", MIB, how=how)
    flow = traffic.sent(Cell("tx", "1.3", "aes-gcm-256"), plan)
    proof.intact(flow.far, plan)
    proof.done_by_software(flow, "tx")


@pytest.fixture
def no_tls(rig: Rig) -> Iterator[None]:
    """Kernel TLS taken out of the DUT's kernel, and kept out; both undone after."""
    host = rig.lab.root
    found = host.run(["cat", MODPROBE]).stdout
    host.run(["tee", MODPROBE], input=b"/bin/false\n")
    try:
        if host.run(["test", "-d", "/sys/module/tls"], check=False).rc == 0:
            wait_until(lambda: host.run(["rmmod", "tls"], check=False).rc == 0, 120, "module tls to be free")
        yield
    finally:
        host.run(["tee", MODPROBE], input=found)


def test_without_kernel_tls_the_helper_says_so(traffic: Traffic, no_tls: None) -> None:
    """Without kernel TLS and without a fallback the helper refuses with exit 4 and names the module."""
    line = traffic.dut.pump.handoff(traffic.argv(TX, 9), send(sending("none", 1))).report().handoff
    assert line is not None and (line.ok, line.exit, line.cause) == (False, 4, "ktls")
    assert "modprobe tls" in line.said


@pytest.mark.turns("direction")
@pytest.mark.parametrize("direction", ["tx", "rx"])
def test_without_kernel_tls_stunnel_takes_over(traffic: Traffic, no_tls: None, direction: str) -> None:
    """Without kernel TLS stunnel carries the connection in user space, intact, with one line of warning."""
    plan = sending(f"fallback {direction}", MIB // 2)
    sends, takes = (send(plan), take()) if direction == "tx" else (take(), send(plan))
    with traffic.behind_stunnel(takes) as (port, far):
        argv = traffic.argv(TX, port, want="both", fallback="/usr/bin/stunnel4")
        near = traffic.dut.pump.handoff(argv, sends)
        reports = near.report(120), far.report(120)
    proof.intact(reports[1] if direction == "tx" else reports[0], plan)
    line = reports[0].handoff
    assert line is not None and (line.via, line.tx, line.rx) == ("stunnel", "none", "none")
    assert line.said.count("\n") == 0 and "falling back to stunnel" in line.said
    assert tls_stat(traffic.dut.side.host)[0] is None, "kernel TLS came back while it had to stay away"
