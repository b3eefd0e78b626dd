"""This NIC encrypts files at the moment they are sent: a film by nginx, and by sendfile without a copy."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.profile import Cell
from offload.suite.measure.cost.figures import costs
from offload.suite.measure.plan import CLIENTS, FILMS, Setting
from offload.suite.traffic.drive import sending
from tests.lib.flow import film, proof
from tests.lib.flow.channels import at_once
from tests.lib.flow.cores import measured, sound
from tests.lib.flow.cost import counted, part
from tests.lib.flow.flow import Several, Traffic
from tests.lib.rig.rig import Rig, in_lab
from tests.lib.rig.switch import Switch

TX = Cell("tx", "1.2", "aes-gcm-128")
ARMS = ("user", "sw", "hw", "hw-zc", "plain")
SWEEP = [Setting("video", "tx", CLIENTS, size) for size in FILMS]


@pytest.mark.once
@pytest.mark.promise("cpu.saving")  # not payload.many: a bench without nginx is no less certified
@pytest.mark.requires("tls", "openssl", "nginx-server")
@pytest.mark.parametrize(
    "how", ["copied", pytest.param("zero-copy", marks=pytest.mark.requires("nginx-without-copy"))]
)
def test_serves_a_film(rig: Rig, offload: Switch, evidence: dict[str, Any], how: str) -> None:
    """This NIC encrypts segments and ranges of a film that nginx sends to several clients at once."""
    offload.on()
    with film.served(rig, zerocopy=how == "zero-copy") as (shop, size):
        asked, before = film.asked(size), rig.counters()
        seen, shown = film.watched(rig, shop, asked)
        moved = rig.counters() - before
    sent = 2 * size * len(asked)
    evidence.update(clients=len(asked), bytes=sent, segment_bytes=size)
    assert seen == [[want.seen() for want in client] for client in asked], f"clients saw {seen}"
    wanted = "hw zc" if how == "zero-copy" else "hw"
    assert shown == [wanted] * len(asked), f"ss shows nginx's sockets as {shown}"
    assert (moved["TlsTxDevice"], moved["TlsTxSw"]) == (len(asked), 0), moved.nonzero("Tls")
    assert moved["tx_tls_encrypted_bytes"] >= sent, f"nginx sent {sent} bytes: {moved.nonzero('tx_tls')}"
    assert moved["tx_tls_drop_no_sync_data"] == 0, moved.nonzero("tx_tls")


@pytest.mark.once
@pytest.mark.promise("payload.many")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel")
def test_sends_files_without_a_copy(traffic: Traffic, offload: Switch, evidence: dict[str, Any]) -> None:
    """This NIC encrypts a file's own pages to three clients at once, from a place where no page begins."""
    offload.on()
    plans = [sending(f"film {n}", 160 << 10, 64 << 10, how="zerocopy", offset=4097 + n) for n in range(3)]
    found = at_once(traffic, TX, plans)
    for plan, flow in zip(plans, found.flows.values(), strict=True):
        proof.handed_over(flow, TX)
        proof.intact(flow.far, plan)
    proof.note(evidence, flow, Several(tuple(plans)), "hw")
    assert found.shown == ["hw zc"] * len(plans), f"ss shows the sockets as {found.shown}"
    proof.exactly(flow, TlsTxDevice=len(plans), TlsTxSw=0, tx_tls_drop_no_sync_data=0)
    done, sent = proof.count(flow, "tx_tls_encrypted_bytes"), sum(plan.total for plan in plans)
    assert done >= sent, f"the card encrypted {done} of {sent} bytes"


@pytest.mark.once
@pytest.mark.promise("cpu.saving")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "cost-mode", "films")
def test_files_cost(rig: Rig, evidence: dict[str, Any]) -> None:
    """This NIC makes files cheaper to send than software does, and no dearer where nothing is copied.

    A copy is few instructions (8 bytes each) and much memory traffic, so that only some kernels show it here.
    """
    if not in_lab(rig.bench):
        evidence["cpu"] = found = measured(rig, ARMS, *SWEEP)
        sound(found, ARMS)
        return
    evidence["cpu"] = found = part(counted(rig), ("tx", 1, "file"))
    sender = {
        arm: costs(found, arm, "tx", load="file")["sender"][0] for arm in ("plain", "sw", "hw", "hw-zc")
    }
    evidence["instructions_per_byte"] = {arm: round(value, 3) for arm, value in sender.items()}
    assert sender["hw"] < 0.75 * sender["sw"] and sender["hw-zc"] < 1.1 * sender["hw"], (
        f"instructions per byte of a file: {sender}"
    )
