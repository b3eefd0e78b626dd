"""This NIC recovers from what networks do: lost, late and repeated segments, chosen or by chance."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.profile import Cell
from offload.suite.traffic.drive import sending
from tests.lib.flow import proof
from tests.lib.flow.flow import Flow, Traffic
from tests.lib.impair import cut_tags
from tests.lib.impair.impairment import (
    CAME,
    SENT,
    ImpairedRun,
    all_met,
    back_in_step,
    controlled,
    impaired,
    received,
    recovery,
    sent,
    sent_again,
    three,
    trouble,
)
from tests.lib.life.life import Life
from tests.lib.rig.switch import Switch
from tests.lib.wire.wire import WireTap

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "stunnel", "wire")
TX, RX = Cell("tx", "1.2", "aes-gcm-128"), Cell("rx", "1.2", "aes-gcm-128")
KIB = 1024


@pytest.mark.promise("resync.tx")
@pytest.mark.parametrize("name", SENT)
def test_retransmits_the_same_records(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, evidence: dict[str, Any], name: str
) -> None:
    """This NIC encrypts retransmissions to the same bytes, and what follows as before."""
    offload.on()
    plan, rules = sending(f"sent {name}", (1024 if name == "2%" else 256) * KIB), SENT[name]

    def transfer(noted: dict[str, Any]) -> Flow:
        with impaired(traffic, noted, rules, strict=False):
            return sent(traffic, TX, plan)

    with (
        controlled(evidence, offload, lambda: trouble(transfer({}), plan, sent=True)),
        wire_tap.open(above=True) as watch,
    ):
        flow = transfer(evidence)
        proof.note(evidence, flow, plan, "hw")
        watch.handed_over(flow, TX)
        seen = watch.proves(evidence, "client", plan.total, payload=plan.content())  # says more than the rest
        proof.intact(flow.far, plan)
        all_met(evidence)
        watch.lets_through()
        proof.sent_by_card(flow, plan)
        sent_again(evidence, flow, seen, name)


@pytest.mark.promise("resync.tx")
@pytest.mark.requires("wire-tap")
def test_sends_again_what_ends_inside_a_tag(
    traffic: Traffic,
    life: Life,
    offload: Switch,
    peer_offload: Switch,
    wire_tap: WireTap,
    evidence: dict[str, Any],
) -> None:
    """This NIC encrypts retransmissions that end inside a tag, after each byte of it, to the same bytes."""
    offload.on()
    peer_offload.set(tx=False, rx=False)

    def transfer(noted: dict[str, Any]) -> cut_tags.Run:
        with impaired(traffic, noted, (), strict=False) as box:
            return cut_tags.sent(traffic, life, TX, box)

    with (
        controlled(evidence, offload, lambda: transfer({}).trouble),
        wire_tap.open(above=True) as watch,
    ):
        run = transfer(evidence)
        proof.note(evidence, run.sent.flow, run.sent.plan, "hw")
        seen = run.proves(watch.stop()["wire"], evidence)
        assert not run.trouble, run.trouble
        all_met(evidence)
        watch.lets_through()
        evidence["cut_tags"] = cut_tags.again(run, watch.segments("wire"))
        proof.encrypted(run.sent.flow, run.sent.plan.total)
        sent_again(evidence, run.sent.flow, seen, "records")


@pytest.mark.promise("resync.rx")
@pytest.mark.parametrize("name", CAME)
def test_receive_resynchronizes(
    traffic: Traffic, offload: Switch, evidence: dict[str, Any], name: str
) -> None:
    """This NIC decrypts again after frames that were lost, late or repeated on their way to it."""
    offload.on()
    rules, plan = CAME[name], three(f"came {name}", (640 if name == "2%" else 320) * KIB)

    def transfer(noted: dict[str, Any]) -> ImpairedRun:
        with impaired(traffic, noted, rules, strict=False) as box:
            return received(traffic, RX, plan, box.clear if name == "2%" else lambda: None)

    with controlled(evidence, offload, lambda: trouble(transfer({}).flow, plan, sent=False)):
        seen = transfer(evidence)
        proof.note(evidence, seen.flow, plan, "hw")
        recovery(evidence, seen, plan)
        proof.handed_over(seen.flow, RX)
        proof.intact(seen.flow.dut, plan)
        all_met(evidence)
        back_in_step(evidence, seen)
