"""This NIC goes on decrypting while frames are lost by chance: how much, at each level of loss."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.profile import Cell
from offload.host.base import Side
from tests.lib.flow import proof
from tests.lib.flow.flow import Traffic
from tests.lib.impair import loss
from tests.lib.impair.impairment import (
    ImpairedRun,
    all_met,
    back_in_step,
    controlled,
    impaired,
    recovery,
    three,
    trouble,
)
from tests.lib.rig.switch import Switch
from tests.lib.wire.records_trace import tracing

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "wire", "records-trace")
RX = Cell("rx", "1.2", "aes-gcm-128")
SWEEP = [pytest.param(n, marks=() if n in (0, 2) else pytest.mark.once) for n in loss.LEVELS]


@pytest.mark.promise("resync.loss")
@pytest.mark.parametrize("percent", SWEEP, ids=lambda percent: f"{percent:g}%")
def test_decrypts_under_random_loss(
    traffic: Traffic,
    offload: Switch,
    peer_offload: Switch,
    dut: Side,
    evidence: dict[str, Any],
    percent: float,
) -> None:
    """This NIC goes on decrypting while this share of the frames is lost, and is in sync when none are."""
    offload.on()
    peer_offload.set(tx=False, rx=False)  # only the DUT's card is asked
    rules, plan = loss.random_loss(percent), three(f"loss {percent:g}", loss.STORM)

    def transfer(noted: dict[str, Any]) -> ImpairedRun:
        with impaired(traffic, noted, rules, strict=False) as box:
            return loss.received_records(traffic, RX, plan, box.clear)

    with controlled(evidence, offload, lambda: trouble(transfer({}).flow, plan, sent=False)):
        with tracing(dut.host) as trace:
            seen = transfer(evidence)
            met = trace.records()
        proof.note(evidence, seen.flow, plan, "hw")
        recovery(evidence, seen, plan)
        proof.handed_over(seen.flow, RX)
        proof.intact(seen.flow.dut, plan)
        all_met(evidence)
        records = loss.full_records(met, plan)
        found = loss.under_loss(evidence, percent, records, seen, plan)
        back_in_step(evidence, seen)
        loss.counted_right(records, seen)
        loss.went_on(found)
