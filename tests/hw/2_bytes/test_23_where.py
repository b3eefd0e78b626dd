"""This NIC is where the encryption happens: seen from both sides of it, and by altering what goes through."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.profile import Cell
from offload.suite.traffic.drive import sending
from tests.lib.flow import proof
from tests.lib.flow.flow import Flow, Traffic
from tests.lib.impair import tamper
from tests.lib.rig.switch import Switch
from tests.lib.wire.wire import Watch, WireTap, most_decrypted, share

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "stunnel", "wire", "wire-tap", "pedit")
RX = Cell("rx", "1.2", "aes-gcm-128")


@pytest.mark.promise("wire.where")
@pytest.mark.cells("tx")
def test_plaintext_goes_in_and_ciphertext_comes_out(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, evidence: dict[str, Any], cell: Cell
) -> None:
    """This NIC is handed plaintext, as its host port shows, and puts none of it on the wire."""
    offload.on()
    plan = sending(f"where {cell}", 1 << 18, 50_000)
    with wire_tap.open(host=True) as watch:
        flow = traffic.sent(cell, plan)
        proof.note(evidence, flow, plan, "hw")
        watch.handed_over(flow, cell)
        watch.proves(evidence, "client", plan.total, payload=plan.content())
        proof.intact(flow.far, plan)
        before, after = (share(plan.content(), watch.segments(place)) for place in ("host", "wire"))
        evidence["wire"] |= {"proof": "where", "bytes": int(before * plan.total)}
        assert after == 0, f"{after:.1%} of the plaintext is on the wire"
        assert before >= 0.9, f"only {before:.1%} of the plaintext came to the card: who encrypted the rest?"


@pytest.mark.promise("payload.rx")
@pytest.mark.cells("rx")
def test_ciphertext_goes_in_and_plaintext_comes_out(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, evidence: dict[str, Any], cell: Cell
) -> None:
    """This NIC hands plaintext to the host, as its host port shows, of what was ciphertext on the wire."""
    offload.on()
    plan = sending(f"where {cell}", 1 << 19, 50_000)
    with wire_tap.open(host=True) as watch:
        flow = traffic.received(cell, plan)
        proof.note(evidence, flow, plan, "hw")
        watch.handed_over(flow, cell)
        watch.proves(evidence, "server", plan.total, reply=plan.content())
        proof.intact(flow.dut, plan)
        later = plan.content()[proof.RX_START :]  # what comes before may be software's: one natural resync
        before, after = (share(later, watch.segments(place)) for place in ("wire", "host"))
        evidence["wire"] |= {"proof": "where", "bytes": int(after * len(later))}
        assert before == 0, f"{before:.1%} of the plaintext is on the wire"
        assert after >= 0.9, f"only {after:.1%} of the plaintext came from the card: who decrypted the rest?"


def takes_it(watch: Watch, altered: tamper.Altered, flow: Flow, port: int, evidence: dict[str, Any]) -> None:
    """The altered payload arrived, authentic, and stunnel took it."""
    proof.note(evidence, flow, altered.plan, "hw")
    assert flow.line.tx == "hw", f"inet_diag shows transmit as {flow.line.tx}"
    seen = flow.far.taken
    assert seen.sha256 != altered.plan.sha256(), "it arrived as it was sent: not this card encrypted it"
    watch.proves(evidence, "client", altered.total, payload=altered.content(), port=port)
    proof.intact(flow.far, altered)
    evidence["wire"] |= {"proof": "where", "bytes": len(altered.places())}


@pytest.mark.promise("wire.where")
@pytest.mark.cells("tx")
def test_what_is_altered_above_it_arrives_authentic(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, evidence: dict[str, Any], cell: Cell
) -> None:
    """This NIC encrypts what it is given: bytes altered below kernel TLS arrive, and stunnel takes them."""
    offload.on()
    family = 6 if cell.cipher == "aes-gcm-256" else 4
    # What TCP cuts otherwise and sends again, the mangler does not know and lets pass: then the test has made
    # the difference, not the card. The last turn counts, whatever was sent again.
    for left in (2, 1, 0):
        with wire_tap.open() as watch:
            altered, flow, port = tamper.sent_altered(traffic, cell, family=family)
            if left and watch.sent_again("client", port):
                continue
            takes_it(watch, altered, flow, port, evidence)
        return


@pytest.mark.promise("wire.forged")
@pytest.mark.parametrize("size", [tamper.ONE_FRAME, tamper.MANY_FRAMES], ids=["one-frame", "many-frames"])
def test_refuses_a_record_that_was_altered_on_the_wire(
    traffic: Traffic,
    offload: Switch,
    peer_offload: Switch,
    wire_tap: WireTap,
    evidence: dict[str, Any],
    size: int,
) -> None:
    """This NIC refuses a record that was altered on the wire, and counts it as no decrypted one."""
    offload.on()
    peer_offload.set(tx=False, rx=False)  # only the DUT's card is asked
    with wire_tap.open(host=True) as watch:
        flow, port = tamper.received_forged(traffic, RX, size, family=4 if size == tamper.ONE_FRAME else 6)
        proof.note(evidence, flow, tamper.PRIMER, "hw")
        assert flow.line.rx == "hw", f"inet_diag shows receive as {flow.line.rx}"
        tamper.refused(flow)
        places = [[s for s in watch.segments(place) if s.source == port] for place in ("wire", "host")]
        counted, most = proof.count(flow, "rx_tls_decrypted_packets"), most_decrypted(*places)
        assert 0 < counted <= most, f"{counted} packets counted as decrypted, at most {most} were"
