"""This NIC takes records of every shape: sizes, ways to write, numbers; test_70 crosses MTU and options."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest

from offload.card.profile import Cell
from offload.suite.traffic.drive import sending
from offload.suite.traffic.impair import Chosen
from tests.lib.flow import proof, shapes
from tests.lib.flow.flow import Several, Traffic
from tests.lib.flow.shapes import TURN, WHOLE
from tests.lib.impair.impairment import RECOVERY, all_met, impaired
from tests.lib.rig.switch import Switch
from tests.lib.wire.wire import WireTap

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "stunnel", "wire", "wire-tap")
TX, RX = Cell("tx", "1.2", "aes-gcm-128"), Cell("rx", "1.2", "aes-gcm-128")
KIB = 1024
WRAP = 3 * WHOLE + 8192  # bytes of the stream before the sequence number is 0: in the middle of a record
# record numbers three before a carry, and near the last one
NUMBERS = tuple((1 << bits) - 3 for bits in (32, 48)) + ((1 << 64) - 40,)
HEADER_LOST = (
    Chosen("header", 3, data=True, direction="to-dut"),
)  # the frame with that of the fourth record
CARRY = 3 * WHOLE  # where the record is whose number is carried


@pytest.mark.promise("shapes.tx")
def test_sends_by_every_system_call(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, evidence: dict[str, Any]
) -> None:
    """This NIC encrypts what is written, joined, gathered, spliced or sent from a file, in every size."""
    offload.on()
    plan = shapes.methods("methods")
    with wire_tap.open() as watch:
        flow = traffic.sent(TX, plan)
        proof.note(evidence, flow, plan, "hw")
        watch.handed_over(flow, TX)
        seen = watch.proves(evidence, "client", plan.total, payload=plan.content())
        proof.intact(flow.far, plan)
        proof.sent_by_card(flow, plan)
        assert {int(size) for size in seen["sizes"]} == shapes.records(plan), (
            "other records than were written"
        )


@pytest.mark.promise("shapes.tx")
def test_sends_across_tcp_sequence_wrap(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, evidence: dict[str, Any]
) -> None:
    """This NIC encrypts a record in which TCP's sequence number begins again at 0, and again what is lost."""
    offload.on()
    plan = Several((sending("wrap", 96 * KIB),))
    rules = (Chosen("offset", WRAP), Chosen("offset", WRAP - 3000))
    with wire_tap.open() as watch:  # it sees what is lost after
        with impaired(traffic, evidence, rules, strict=False):
            flow = shapes.sent(traffic, TX, plan, TURN - 1 - WRAP)
        proof.note(evidence, flow, plan, "hw")
        watch.handed_over(flow, TX)
        seen = watch.proves(evidence, "client", plan.total, payload=plan.content())
        evidence["wrap"] = asdict(shapes.wrap(watch, traffic.rig.port))
        proof.intact(flow.far, plan)
        all_met(evidence)
        proof.sent_by_card(flow, plan)
        assert seen["retransmissions"] > 1, "nothing was seen to be sent again"


@pytest.mark.once
@pytest.mark.promise("shapes.odd")
def test_sends_64_bit_record_numbers(traffic: Traffic, offload: Switch, evidence: dict[str, Any]) -> None:
    """This NIC encrypts under record numbers of 64 bits, through a carry, also what is lost there."""
    offload.on()
    lost = (Chosen("offset", CARRY), Chosen("offset", CARRY + WHOLE // 2))
    parts = (sending("numbers tx", 6 * shapes.RECORD), sending("numbers end", 1000))
    plan, evidence["numbers"] = Several(parts), []
    with impaired(traffic, evidence, lost):
        for number in NUMBERS:
            flow = shapes.numbered(traffic, TX, plan, number)
            proof.note(evidence, flow, plan, "hw")
            proof.intact(flow.far, plan)
            proof.encrypted(flow, plan.total)
            assert proof.count(flow, "tx_tls_ooo") > 0, (
                "the card did not notice that something was sent again"
            )
            evidence["numbers"].append(f"{number:#x}")


@pytest.mark.promise("shapes.tx")
@pytest.mark.parametrize(("how", "changed"), [("zerocopy", False), ("sendfile", True)])
def test_sends_a_file_again(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, evidence: dict[str, Any], how: str, changed: bool
) -> None:
    """This NIC encrypts what was lost of a file again: the file's pages, or a copy though it changed."""
    offload.on()
    plan = shapes.file_again(f"again {how}", how, changed)
    with wire_tap.open() as watch:
        flow = shapes.changed_file(traffic, TX, evidence, plan)
        proof.note(evidence, flow, plan, "hw")
        seen = watch.proves(evidence, "client", plan.total, payload=plan.content())
        proof.intact(flow.far, plan)
        proof.sent_by_card(flow, plan)
        assert seen["retransmissions"] > 0, "nothing was seen to be sent again"


@pytest.mark.promise("shapes.odd")
def test_a_file_that_changes(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, evidence: dict[str, Any]
) -> None:
    """This NIC lets no wrong byte arrive if a file changes under zero-copy sendfile; the hazard is reported.

    A retransmission may hold other plaintext under the same nonce: a hazard of the option (shapes.md)
    with every card, and no failure of this one. The receiver must refuse the record.
    """
    offload.on()
    plan = shapes.file_again("hazard", "zerocopy", True)
    with wire_tap.open() as watch:
        flow = shapes.changed_file(traffic, TX, evidence, plan)
        proof.note(evidence, flow, plan, "hw")
        found = watch.document(payload=plan.content())["connections"][0]["from_client"]
        assert found["retransmissions"] > 0, "nothing was seen to be sent again"
        assert found["first_difference"] is None, "a record was wrong before anything was sent again"
    evidence |= shapes.hazard(found["retransmission"])
    whole = flow.far.taken.bytes == plan.total
    assert whole != evidence["zerocopy_hazard"], "the wire says one thing, and the receiver another"
    assert flow.far.taken.sha256 == shapes.sha256(plan, flow.far.taken.bytes), "wrong bytes were accepted"
    assert proof.count(flow, "tx_tls_encrypted_bytes") > 0 and flow.line.tx == "hw"


@pytest.mark.promise("shapes.rx")
def test_receives_from_every_system_call(
    traffic: Traffic, offload: Switch, peer_offload: Switch, evidence: dict[str, Any]
) -> None:
    """This NIC decrypts records of 1 byte to 16 KiB, however they were written."""
    offload.on()
    peer_offload.set(tx=False)  # the sender is software: only the DUT's card is asked
    parts = shapes.methods("methods rx")
    plan = shapes.begun("methods rx", parts)
    flow = shapes.received(traffic, RX, plan, family=6, turn=len(parts.parts))
    proof.note(evidence, flow, plan, "hw")
    proof.handed_over(flow, RX)
    proof.intact(flow.dut, plan)
    shapes.decrypted(flow, parts.total)


@pytest.mark.promise("shapes.rx")
@pytest.mark.parametrize("lost", ["nothing", "inside", "header"])
def test_receives_across_tcp_sequence_wrap(
    traffic: Traffic,
    offload: Switch,
    peer_offload: Switch,
    wire_tap: WireTap,
    evidence: dict[str, Any],
    lost: str,
) -> None:
    """This NIC decrypts a record in which TCP's sequence number begins again at 0, and after a loss there."""
    offload.on()
    peer_offload.set(tx=False)
    plan = shapes.storm(f"wrap rx {lost}")
    # the frame with the wrap itself, so that the gap is across it; or the header, to be found again after it
    rules = {"inside": (Chosen("offset", WRAP, direction="to-dut"),), "header": HEADER_LOST}
    with wire_tap.open() as watch:
        with impaired(traffic, evidence, rules.get(lost, ()), strict=False):
            flow = shapes.received(traffic, RX, plan, isn=TURN - 1 - WRAP, turn=1)
        proof.note(evidence, flow, plan, "hw")
        evidence["wrap"] = asdict(shapes.wrap(watch, traffic.rig.port))
        proof.intact(flow.dut, plan)
        all_met(evidence)
        shapes.decrypted(flow, plan.parts[-1].total, RECOVERY if lost == "header" else 0)


@pytest.mark.once
@pytest.mark.promise("shapes.rx")
def test_receives_64_bit_record_numbers(
    traffic: Traffic, offload: Switch, peer_offload: Switch, evidence: dict[str, Any]
) -> None:
    """This NIC decrypts under record numbers of 64 bits, through a carry, and after a loss there."""
    offload.on()
    peer_offload.set(tx=False)
    lost = (
        Chosen("offset", CARRY, direction="to-dut"),
    )  # it holds a header: the card must ask for the number
    plan, evidence["numbers"] = shapes.storm("numbers rx"), []
    with impaired(traffic, evidence, lost):
        for number in NUMBERS:
            flow = shapes.numbered(traffic, RX, plan, number)
            proof.note(evidence, flow, plan, "hw")
            proof.intact(flow.dut, plan)
            shapes.decrypted(flow, plan.parts[-1].total, RECOVERY)
            evidence["numbers"].append(f"{number:#x}")
