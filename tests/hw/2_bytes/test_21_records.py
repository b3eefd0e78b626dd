"""This NIC puts on the wire exactly the records that a correct software sender would have put there."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.profile import Cell
from offload.host.base import Bench
from offload.suite.traffic.drive import Sending, sending
from offload.suite.wire.words import first_sentence
from tests.lib.flow import proof
from tests.lib.flow.flow import Several, Traffic
from tests.lib.impair.shapes_path import tcp_settings
from tests.lib.rig.switch import Switch
from tests.lib.wire.wire import WireTap

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "stunnel", "wire", "wire-tap")
TX = Cell("tx", "1.2", "aes-gcm-128")
# Writes around the ends of one record (16384) and two, and such that record ends and segment ends meet: MSS
# 1448 at MTU 1500, 1428 with IPv6, 29 bytes around a record's payload. Each is a record of its own.
EDGES = (1, 16383, 1, 16384, 1, 16385, 2, 32767, 32768, 32769, 1)
EDGES += tuple(n * mss - 29 + d for mss in (1448, 1428) for n in (1, 2, 3, 11) for d in (-1, 0, 1))
WHOLE = {size % 16384 for size in EDGES} - {0} | {16384}  # the sizes of the records that must come of them
# Segments of a packet that the stack gives to the card, at least, if there is enough to send. Left alone
# it gives less where the path is slow (tcp_tso_autosize, net/ipv4/tcp_output.c): two on a busy machine.
SEGMENTS = 40


def payload(name: str) -> Several:
    """Every edge and 256 KiB, by write and by sendfile: more than 1 MiB in all."""
    methods = ("write", "sendfile")
    edges = [Sending(f"{name} edges {how}", EDGES, how) for how in methods]
    return Several((*edges, *(sending(f"{name} {how}", 1 << 18, 50_000, how=how) for how in methods)))


@pytest.mark.promise("wire.records")
@pytest.mark.cells("tx")
@pytest.mark.parametrize("family", [4, 6], ids=["v4", "v6"])
def test_records_it_sends(
    traffic: Traffic,
    offload: Switch,
    bench: Bench,
    wire_tap: WireTap,
    evidence: dict[str, Any],
    cell: Cell,
    family: int,
) -> None:
    """This NIC sends the records that software would have sent, each byte: nonce, ciphertext and tag."""
    offload.on()
    plan = payload(f"records {cell} v{family}")
    with tcp_settings(bench, min_tso_segs=SEGMENTS), wire_tap.open() as watch:
        flow = traffic.sent(cell, plan, family=family)
        proof.note(evidence, flow, plan, "hw")
        watch.handed_over(flow, cell)
        seen = watch.proves(
            evidence, "client", plan.total, payload=plan.content()
        )  # it says more than the rest
        proof.intact(flow.far, plan)
        proof.sent_by_card(flow, plan)
        assert {int(size) for size in seen["sizes"]} >= WHOLE, "the records are not those that were written"
        # Finished, in TLS 1.2 the first record that the card encrypts, and the alert that ends the stream
        assert (seen["protected"], seen["closed"]) == (seen["app_records"] + 2, "close_notify")


@pytest.mark.promise("payload.rx")
@pytest.mark.cells("rx")
@pytest.mark.parametrize("family", [4, 6], ids=["v4", "v6"])
def test_records_it_receives(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, evidence: dict[str, Any], cell: Cell, family: int
) -> None:
    """This NIC is given the right records by stunnel, and its own Finished and close_notify are right."""
    offload.on()
    plan = sending(f"records {cell} v{family}", 1 << 19, 50_000)
    with wire_tap.open() as watch:
        flow = traffic.received(cell, plan, family=family)
        proof.note(evidence, flow, plan, "hw")
        watch.handed_over(flow, cell)
        watch.proves(evidence, "server", plan.total, reply=plan.content())  # first: is it the peer's fault?
        own = watch.document()["connections"][0]["from_client"]
        assert (own["protected"], own["authentic_bytes"], own["closed"]) == (2, 16 + 2, "close_notify")
        proof.intact(flow.dut, plan)


@pytest.mark.promise("wire.records")
def test_records_of_connections_at_once(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, evidence: dict[str, Any]
) -> None:
    """This NIC keeps the records of four connections apart that send at the same time."""
    offload.on()
    records, plans = 0, [sending(f"at once {number}", 1 << 17, 20_000 + number) for number in range(4)]
    with wire_tap.open() as watch:
        flows = traffic.sent_at_once(TX, plans)
        for plan, (port, flow) in zip(plans, flows.items(), strict=True):
            seen = watch.proves(evidence, "client", plan.total, payload=plan.content(), port=port)
            proof.intact(flow.far, plan)
            records += seen["app_records"]
        together = watch.document()
        assert (together["outcome"], len(together["connections"])) == ("equal", 4), first_sentence(together)
        evidence["wire"] |= {"records": records, "bytes": sum(plan.total for plan in plans)}
    proof.note(evidence, flow, Several(tuple(plans)), "hw")
