"""This NIC carries many kernel-TLS channels at once, as a multi-channel migration opens them."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.profile import Cell
from offload.suite.measure.cost.figures import costs, saving
from offload.suite.measure.plan import Setting
from offload.suite.traffic.drive import sending
from offload.suite.wire.words import first_sentence
from tests.lib.flow import proof
from tests.lib.flow.channels import CHANNELS, at_once
from tests.lib.flow.cores import measured, sound
from tests.lib.flow.cost import MANY, counted, part
from tests.lib.flow.flow import Several, Traffic
from tests.lib.rig.rig import Rig, in_lab
from tests.lib.rig.switch import Switch
from tests.lib.wire.wire import WireTap

TX = Cell("tx", "1.2", "aes-gcm-128")
SIZE, WRITE = 96 << 10, 20_000
ARMS = ("user", "sw", "hw", "plain")
SWEEP = [Setting("stream", "tx", n, None) for n in (1, 2, 4, 8)]
SAME = 0.25  # part by which what a channel costs, or saves, may differ from one alone: seen 0.12 with 8


@pytest.mark.once
@pytest.mark.promise("payload.many")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "wire", "wire-tap")
def test_eight_channels_at_once(
    traffic: Traffic, offload: Switch, wire_tap: WireTap, evidence: dict[str, Any]
) -> None:
    """This NIC encrypts eight channels that send together: each whole, in hardware, every record right."""
    offload.on()
    plans = [sending(f"channel {number}", SIZE, WRITE + number) for number in range(CHANNELS)]
    with wire_tap.open() as watch:
        found, records = at_once(traffic, TX, plans), 0
        for plan, (port, flow) in zip(plans, found.flows.items(), strict=True):
            seen = watch.proves(evidence, "client", plan.total, payload=plan.content(), port=port)
            proof.handed_over(flow, TX)
            proof.intact(flow.far, plan)
            records += seen["app_records"]
        together = watch.document()
        assert together["outcome"] == "equal", first_sentence(together)
        assert len(together["connections"]) == CHANNELS
        evidence["wire"] |= {"records": records, "bytes": sum(plan.total for plan in plans)}
    proof.note(evidence, flow, Several(tuple(plans)), "hw")
    assert found.shown == ["hw"] * CHANNELS, f"ss shows transmit of the channels as {found.shown}"
    proof.exactly(flow, TlsTxDevice=CHANNELS, TlsTxSw=0, tx_tls_ctx=CHANNELS, tx_tls_drop_no_sync_data=0)
    done, sent = proof.count(flow, "tx_tls_encrypted_bytes"), sum(plan.total for plan in plans)
    assert done >= sent, f"the card encrypted {done} of {sent} bytes"


@pytest.mark.once
@pytest.mark.promise("cpu.saving")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "cost-mode")
def test_channels_cost(rig: Rig, evidence: dict[str, Any]) -> None:
    """This NIC takes as much off the sender with several channels as with one; on a bench: in cores."""
    if not in_lab(rig.bench):
        evidence["cpu"] = found = measured(rig, ARMS, *SWEEP)
        sound(found, ARMS)
        return
    evidence["cpu"] = found = part(counted(rig), ("tx", 1, "stream"), ("tx", MANY, "stream"))
    alone, many = (saving(found, "tx", "sender", channels=n) for n in (1, MANY))
    evidence["saved_percent"] = {n: round(100 * part, 1) for n, part in ((1, alone), (MANY, many))}
    software = [costs(found, "sw", "tx", channels=n)["sender"][0] for n in (1, MANY)]
    assert abs(software[1] - software[0]) < SAME * software[0], f"software's own cost moved: {software}"
    assert many > 0 and many >= alone * (1 - SAME), f"one channel saves {alone:.2f}, {MANY} save {many:.2f}"
