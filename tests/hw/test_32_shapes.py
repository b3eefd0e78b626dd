"""This NIC takes records and segments of every shape: sizes, ways to write, MTU, TCP options, numbers."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import pytest

from offload.card.profile import Cell
from offload.host.base import Bench
from offload.suite.traffic.drive import sending
from offload.suite.traffic.impair import Chosen
from tests.lib.flow import proof, shapes
from tests.lib.flow.flow import Flow, Several, Traffic
from tests.lib.flow.shapes import TURN, WHOLE, Received, Syn
from tests.lib.impair import shapes_path as path
from tests.lib.impair.impairment import RECOVERY, all_met, controlled, impaired, trouble
from tests.lib.rig.switch import Switch
from tests.lib.wire.wire import WireTap

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "stunnel", "wire", "wire-tap")
TX, RX = Cell("tx", "1.2", "aes-gcm-128"), Cell("rx", "1.2", "aes-gcm-128")
KIB = 1024
# no option at all, and every one; SYN and its answer offer the same
OPTIONS = {
    "bare": ({"sack": 0, "timestamps": 0, "ecn": 0}, Syn(False, False, False)),
    "all": ({"sack": 1, "timestamps": 1, "ecn": 1}, Syn(True, True, True)),
}
# two frames, the one with the header of the fourth record, and one inside the sixth
SENT_LOST = tuple(Chosen(place, n, data=True) for place, n in (("header", 3), ("inside", 5)))
CAME_LOST = tuple(replace(rule, direction="to-dut") for rule in SENT_LOST)
WRAP = 3 * WHOLE + 8192  # bytes of the stream before the sequence number is 0: in the middle of a record
# record numbers three before a carry, and near the last one
NUMBERS = tuple((1 << bits) - 3 for bits in (32, 48)) + ((1 << 64) - 40,)
CARRY = 3 * WHOLE  # where the record is whose number is carried


@pytest.mark.promise("shapes.tx")
def test_sends_by_every_system_call(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, evidence: dict[str, Any]
) -> None:
    """This NIC encrypts what is written, joined, gathered, spliced or sent from a file, in every size."""
    plan = shapes.ways("ways")
    with wire_tap.open() as watch:
        flow = traffic.sent(TX, plan)
        proof.note(evidence, flow, plan, "hw")
        proof.handed_over(flow, TX)
        seen = watch.proves(evidence, "client", plan.total, payload=plan.content())
        proof.intact(flow.far, plan)
        proof.sent_by_card(flow, plan)
        assert {int(size) for size in seen["sizes"]} == shapes.records(plan), (
            "other records than were written"
        )


@pytest.mark.promise("shapes.tx")
@pytest.mark.parametrize(("mtu", "family"), [(600, 4), (9000, 6)])
def test_sends_at_mtu(
    traffic: Traffic,
    offload: Switch,
    wire_tap: WireTap,
    bench: Bench,
    evidence: dict[str, Any],
    mtu: int,
    family: int,
) -> None:
    """This NIC encrypts many records in a segment, and records of many segments, in frames of this MTU."""
    plan = shapes.frames(f"frames {mtu}")
    with path.path_mtu(bench, mtu), wire_tap.open() as watch:
        flow = traffic.sent(TX, plan, family=family)
        proof.note(evidence, flow, plan, "hw")
        watch.proves(evidence, "client", plan.total, payload=plan.content())
        proof.intact(flow.far, plan)
        proof.sent_by_card(flow, plan)
        cut = shapes.cut(watch, traffic.rig.port)
        evidence["cut"] = asdict(cut)
        packed = (mtu - 80) // (max(shapes.SMALL) + 29)  # small records in a segment, less the headers
        assert cut.records >= packed and cut.segments > WHOLE // mtu, f"that is not what was meant: {cut}"


@pytest.mark.once
@pytest.mark.promise("shapes.tx")
@pytest.mark.parametrize("name", OPTIONS)
def test_sends_with_tcp_options(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, bench: Bench, evidence: dict[str, Any], name: str
) -> None:
    """This NIC encrypts again what was lost, with SACK, timestamps and ECN and without them."""
    plan, (settings, offered) = sending(f"options {name}", 128 * KIB), OPTIONS[name]

    def transfer(noted: dict[str, Any]) -> Flow:
        with impaired(traffic, noted, SENT_LOST, strict=False):
            return traffic.sent(TX, plan)

    with path.tcp_settings(bench, **settings), wire_tap.open() as watch:
        with controlled(evidence, offload, lambda: trouble(transfer({}), plan, sent=True)):
            flow = transfer(evidence)
            proof.note(evidence, flow, plan, "hw")
            seen = watch.proves(evidence, "client", plan.total, payload=plan.content())
            proof.intact(flow.far, plan)
            all_met(evidence)
            proof.sent_by_card(flow, plan)
            assert seen["retransmissions"] > 0, "nothing was seen to be sent again"
            assert set(shapes.syns(watch)) == {offered}, "TCP did not offer what was set"


@pytest.mark.promise("shapes.tx")
def test_sends_across_tcp_sequence_wrap(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, evidence: dict[str, Any]
) -> None:
    """This NIC encrypts a record in which TCP's sequence number begins again at 0, and again what is lost."""
    plan = Several((sending("wrap", 96 * KIB),))
    rules = (Chosen("offset", WRAP), Chosen("offset", WRAP - 3000))
    with wire_tap.open() as watch:  # it sees what is lost after
        with impaired(traffic, evidence, rules, strict=False):
            flow = shapes.sent(traffic, TX, plan, TURN - 1 - WRAP)
        proof.note(evidence, flow, plan, "hw")
        proof.handed_over(flow, TX)
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
    lost = (Chosen("offset", CARRY), Chosen("offset", CARRY + WHOLE // 2))
    parts = (sending("numbers tx", 6 * shapes.RECORD), sending("numbers end", 1000))
    plan, evidence["numbers"] = Several(parts), []
    with impaired(traffic, evidence, lost):
        for number in NUMBERS:
            flow = shapes.numbered(traffic, TX, plan, number)
            proof.note(evidence, flow, plan, "hw")
            proof.intact(flow.far, plan)
            shapes.encrypted(flow, plan.total)
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
    plan = shapes.file_again("hazard", "zerocopy", True)
    with wire_tap.open() as watch:
        flow = shapes.changed_file(traffic, TX, evidence, plan)
        proof.note(evidence, flow, plan, "hw")
        way = watch.document(payload=plan.content())["connections"][0]["from_client"]
        assert way["retransmissions"] > 0, "nothing was seen to be sent again"
        assert way["first_difference"] is None, "a record was wrong before anything was sent again"
    evidence |= shapes.hazard(way["retransmission"])
    whole = flow.far.taken.bytes == plan.total
    assert whole != evidence["zerocopy_hazard"], "the wire says one thing, and the receiver another"
    assert flow.far.taken.sha256 == shapes.sha256(plan, flow.far.taken.bytes), "wrong bytes were accepted"
    assert proof.count(flow, "tx_tls_encrypted_bytes") > 0 and flow.line.tx == "hw"


@pytest.mark.promise("shapes.rx")
def test_receives_from_every_system_call(
    traffic: Traffic, offload: Switch, peer_offload: Switch, evidence: dict[str, Any]
) -> None:
    """This NIC decrypts records of 1 byte to 16 KiB, however they were written."""
    peer_offload.set(tx=False)  # the sender is software: only the DUT's card is asked
    plan = shapes.ways("ways rx")
    flow = shapes.received(traffic, RX, plan, family=6)
    proof.note(evidence, flow, plan, "hw")
    proof.handed_over(flow, RX)
    proof.intact(flow.dut, plan)
    shapes.decrypted(flow, plan.total)


@pytest.mark.promise("shapes.rx")
@pytest.mark.parametrize(("mtu", "family"), [(600, 4), (9000, 6)])
def test_receives_at_mtu(
    traffic: Traffic,
    offload: Switch,
    peer_offload: Switch,
    bench: Bench,
    evidence: dict[str, Any],
    mtu: int,
    family: int,
) -> None:
    """This NIC decrypts many records in a segment, and records of many segments, in frames of this MTU."""
    peer_offload.set(tx=False)
    plan = shapes.frames(f"frames rx {mtu}")
    with path.path_mtu(bench, mtu):
        flow = shapes.received(traffic, RX, plan, family=family)
    proof.note(evidence, flow, plan, "hw")
    proof.intact(flow.dut, plan)
    shapes.decrypted(flow, plan.total)


@pytest.mark.once
@pytest.mark.promise("shapes.rx")
@pytest.mark.parametrize("name", OPTIONS)
def test_receives_with_tcp_options(
    traffic: Traffic, offload: Switch, peer_offload: Switch, bench: Bench, evidence: dict[str, Any], name: str
) -> None:
    """This NIC decrypts again after a loss, with SACK, timestamps and ECN and without them."""
    peer_offload.set(tx=False)
    plan, (settings, _) = shapes.storm(f"options rx {name}"), OPTIONS[name]

    def transfer(noted: dict[str, Any]) -> Received:
        with impaired(traffic, noted, CAME_LOST, strict=False):
            return shapes.received(traffic, RX, plan, turn=True)

    with path.tcp_settings(bench, **settings):
        with controlled(evidence, offload, lambda: trouble(transfer({}), plan, sent=False)):
            flow = transfer(evidence)
            proof.note(evidence, flow, plan, "hw")
            proof.intact(flow.dut, plan)
            all_met(evidence)
            shapes.decrypted(flow, plan.parts[-1].total, RECOVERY)


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
    peer_offload.set(tx=False)
    plan = shapes.storm(f"wrap rx {lost}")
    # the frame with the wrap itself, so that the gap is across it; or the header, to be found again after it
    rules = {"inside": (Chosen("offset", WRAP, direction="to-dut"),), "header": CAME_LOST[:1]}
    with wire_tap.open() as watch:
        with impaired(traffic, evidence, rules.get(lost, ()), strict=False):
            flow = shapes.received(traffic, RX, plan, isn=TURN - 1 - WRAP, turn=True)
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
