"""Without a NIC files are the kernel's software's: a film by nginx, and sendfile that is not to copy."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.profile import Cell
from offload.suite.traffic.drive import sending
from tests.lib.flow import film, proof
from tests.lib.flow.channels import at_once
from tests.lib.flow.flow import Several, Traffic
from tests.lib.rig.rig import Rig

TX = Cell("tx", "1.2", "aes-gcm-128")


@pytest.mark.once
@pytest.mark.promise("payload.tx")
@pytest.mark.requires("tls", "openssl", "nginx-server")
def test_serves_a_film(rig: Rig, evidence: dict[str, Any]) -> None:
    """Without a NIC nginx's film goes whole to several clients at once, encrypted by the kernel."""
    with film.served(rig) as (shop, size):
        asked, before = film.asked(size), rig.counters()
        seen, shown = film.watched(rig, shop, asked)
        moved = rig.counters() - before
    evidence.update(clients=len(asked), bytes=2 * size * len(asked), segment_bytes=size)
    assert seen == [[want.seen() for want in client] for client in asked], f"clients saw {seen}"
    assert shown == ["sw"] * len(asked), f"ss shows nginx's sockets as {shown}"
    assert moved["TlsTxSw"] == len(asked) and not moved.get("TlsTxDevice", 0), moved.nonzero("Tls")


@pytest.mark.once
@pytest.mark.promise("payload.tx")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel")
def test_sends_files_though_not_to_copy(traffic: Traffic, evidence: dict[str, Any]) -> None:
    """Without a NIC sendfile that was asked not to copy sends the same bytes, by software."""
    plans = [sending(f"sw film {n}", 160 << 10, 64 << 10, how="zerocopy", offset=4097 + n) for n in range(3)]
    found = at_once(traffic, TX, plans)
    for plan, flow in zip(plans, found.flows.values(), strict=True):
        proof.intact(flow.far, plan)
    proof.note(evidence, flow, Several(tuple(plans)), "sw")
    assert {shown.split()[0] for shown in found.shown} == {"sw"}, f"ss shows the sockets as {found.shown}"
    proof.exactly(flow, TlsTxSw=len(plans))
    proof.not_by_card(flow, "tx")
