"""Without a NIC that offloads nothing is lost for good, late or twice: software meets the same impairment."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.profile import Cell
from offload.suite.traffic.drive import sending
from tests.lib.flow import proof
from tests.lib.flow.flow import Traffic
from tests.lib.impair.impairment import AGAIN, CAME, INSIDE, SENT, impaired, sent
from tests.lib.wire.wire import WireTap

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "stunnel", "wire", "wire-tap")
TX, RX = Cell("tx", "1.2", "aes-gcm-128"), Cell("rx", "1.2", "aes-gcm-128")
KIB = 1024
# What was received has nothing to recover after each frame: three of them on one connection.
IMPAIRMENTS = {"places": tuple(rule for place in INSIDE for rule in CAME[place])}
IMPAIRMENTS |= {name: rules for name, rules in CAME.items() if name not in INSIDE}


@pytest.mark.promise("resync.tx")
@pytest.mark.parametrize("name", SENT)
def test_retransmits_the_same_records(
    traffic: Traffic, wire_tap: WireTap, evidence: dict[str, Any], name: str
) -> None:
    """Without a NIC that offloads what is sent again is the same on the wire, and every byte arrives."""
    plan = sending(f"sent {name}", 256 * KIB)
    with wire_tap.open() as watch:
        with impaired(traffic, evidence, SENT[name]):
            flow = sent(traffic, TX, plan)
        proof.note(evidence, flow, plan, "sw")
        proof.handed_over(flow, TX)
        seen = watch.proves(evidence, "client", plan.total, payload=plan.content())
        proof.intact(flow.far, plan)
        proof.done_by_software(flow, "tx")
        assert name not in AGAIN or seen["retransmissions"] > 0, "nothing was seen to be sent again"


@pytest.mark.promise("resync.rx")
@pytest.mark.parametrize("name", IMPAIRMENTS)
def test_receive_resynchronizes(
    traffic: Traffic, wire_tap: WireTap, evidence: dict[str, Any], name: str
) -> None:
    """Without a NIC that offloads every record is authentic after frames were lost, late or repeated."""
    plan = sending(f"came {name}", 320 * KIB)
    with wire_tap.open() as watch:
        with impaired(traffic, evidence, IMPAIRMENTS[name]):
            flow = traffic.received(RX, plan)
        proof.note(evidence, flow, plan, "sw")
        proof.handed_over(flow, RX)
        if name != "noise":  # the tap is on the DUT's side of it, and has what TCP then refuses
            watch.proves(evidence, "server", plan.total, reply=plan.content())
        proof.intact(flow.dut, plan)
        proof.done_by_software(flow, "rx")
        assert proof.count(flow, "TlsDecryptError") == 0, "the kernel met records that are not authentic"
