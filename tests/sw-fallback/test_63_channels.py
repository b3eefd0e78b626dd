"""Without a NIC many channels at once are the kernel's software's: each whole, each seen as that."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.profile import Cell
from offload.suite.traffic.drive import sending
from tests.lib.flow import proof
from tests.lib.flow.channels import CHANNELS, at_once
from tests.lib.flow.flow import Several, Traffic
from tests.lib.wire.wire import WireTap

TX = Cell("tx", "1.2", "aes-gcm-128")


@pytest.mark.once
@pytest.mark.promise("payload.tx")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "wire", "wire-tap")
def test_eight_channels_at_once(traffic: Traffic, wire_tap: WireTap, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads eight channels that send together are software's: every record right."""
    plans = [sending(f"sw channel {number}", 96 << 10, 20_000 + number) for number in range(CHANNELS)]
    with wire_tap.open() as watch:
        found = at_once(traffic, TX, plans)
        for plan, (port, flow) in zip(plans, found.flows.items(), strict=True):
            watch.proves(evidence, "client", plan.total, payload=plan.content(), port=port)
            proof.intact(flow.far, plan)
        assert len(watch.document()["connections"]) == CHANNELS
    proof.note(evidence, flow, Several(tuple(plans)), "sw")
    assert found.shown == ["sw"] * CHANNELS, f"ss shows transmit of the channels as {found.shown}"
    proof.exactly(flow, TlsTxSw=CHANNELS)
    proof.not_by_card(flow, "tx")
