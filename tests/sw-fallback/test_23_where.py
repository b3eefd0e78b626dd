"""Without a NIC that offloads encryption happens above the host port: same looks, opposite findings."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.profile import Cell
from offload.suite.traffic.drive import sending
from tests.lib.flow import proof
from tests.lib.flow.flow import Traffic
from tests.lib.impair import tamper
from tests.lib.wire.wire import WireTap, share

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "stunnel", "wire", "wire-tap", "pedit")
TX, RX = Cell("tx", "1.2", "aes-gcm-128"), Cell("rx", "1.2", "aes-gcm-128")
TX13 = Cell("tx", "1.3", "aes-gcm-256")


@pytest.mark.promise("wire.where")
@pytest.mark.parametrize("cell", [TX, TX13, RX], ids=["tx-12", "tx-13", "rx-12"])
def test_ciphertext_on_both_sides_of_the_host_port(
    traffic: Traffic, wire_tap: WireTap, evidence: dict[str, Any], cell: Cell
) -> None:
    """Without a NIC that offloads the host port shows what the wire shows: proven ciphertext only."""
    plan = sending(f"sw where {cell}", 1 << 18, 50_000)
    with wire_tap.open(host=True) as watch:
        if cell.direction == "tx":
            flow = traffic.sent(cell, plan)
            watch.proves(evidence, "client", plan.total, payload=plan.content())
            proof.intact(flow.far, plan)
        else:
            flow = traffic.received(cell, plan)
            watch.proves(evidence, "server", plan.total, reply=plan.content())
            proof.intact(flow.dut, plan)
        proof.done_by_software(flow, cell.direction)
        found = [share(plan.content(), watch.segments(place)) for place in ("host", "wire")]
        assert found == [0, 0], f"{found[0]:.1%} plaintext at the host port, {found[1]:.1%} on the wire"
        evidence["wire"] |= {"proof": "where"}


@pytest.mark.promise("wire.where")
@pytest.mark.parametrize(("cell", "family"), [(TX, 4), (TX13, 6)], ids=["12-v4", "13-v6"])
def test_what_is_altered_below_ktls_is_refused(
    traffic: Traffic, wire_tap: WireTap, evidence: dict[str, Any], cell: Cell, family: int
) -> None:
    """Without a NIC that offloads bytes altered below kernel TLS are ciphertext: stunnel refuses them."""
    with wire_tap.open() as watch:
        altered, flow, port = tamper.sent_altered(traffic, cell, family=family)
        proof.handed_over(flow, cell)
        taken, size = flow.far.taken.bytes, altered.targets[0].size
        assert taken == 0, f"{taken} bytes arrived, though the first record of {size} bytes was altered"
        assert "bad record mac" in traffic.said, traffic.said
        document = watch.document(payload=altered.plan.content(), port=port)
        found = document["connections"][0]["from_client"]["first_difference"]
        # in TLS 1.2 Finished has number 0; the first application record is altered from its first byte on
        where = (found["sequence"], found["field"], found["at"])
        assert where == (1 if cell.version == "1.2" else 0, "ciphertext", 0), found


@pytest.mark.promise("wire.forged")
@pytest.mark.parametrize("size", [tamper.ONE_FRAME, tamper.MANY_FRAMES], ids=["one-frame", "many-frames"])
def test_refuses_a_record_that_was_altered_on_the_wire(
    traffic: Traffic, wire_tap: WireTap, size: int
) -> None:
    """Without a NIC that offloads a record that was altered on the wire is refused."""
    flow, _ = tamper.received_forged(traffic, RX, size, family=4 if size == tamper.ONE_FRAME else 6)
    proof.done_by_software(flow, "rx")
    tamper.refused(flow)
