"""This NIC encrypts and decrypts right from the first record on, seen without a handshake that could break.

Both ends are given keys that the test knows; the peer's TLS is software. A failure names cipher,
address family and size of the record, not by the alert of a peer that could make nothing of it.
"""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest

from offload.card.profile import Cell
from offload.suite.traffic.drive import Part, Report
from tests.lib.flow import proof
from tests.lib.flow.flow import Flow, Several, Traffic
from tests.lib.life import many_connections
from tests.lib.life.life import Life
from tests.lib.rig.switch import Switch
from tests.lib.wire import raw
from tests.lib.wire.raw import Sent
from tests.lib.wire.wire import WireTap

pytestmark = pytest.mark.requires("tls")


def moved_over_v6(traffic: Traffic, life: Life, direction: str, plan: Several) -> Sent:
    """The same as `raw.moved` over IPv6, with AES-128: by ends that the test holds."""
    before, secret = traffic.rig.counters(), secrets.token_hex(16)
    pair = life.plain(host=traffic.peer.side.v6)[0]
    for end, client in ((pair.far, False), (pair.near, True)):
        end.connections.call("secure", at=[end.at], client=client, secret=secret, tls="1.2")
    source, sink = (pair.near, pair.far) if direction == "tx" else (pair.far, pair.near)
    asked = [
        source.begin("send", seed=part.seed, size=part.total, write=part.sizes[0]) for part in plan.parts
    ]
    seen = sink.take(plan.total)
    if not seen["error"]:
        for number in asked:
            source.connections.end(number)
        source.alert()
    life.close([pair])
    there = Report(Part(0, ""), Part(seen["bytes"], seen["sha256"]), 0.0, seen["error"], seen["closed"], None)
    flow = Flow(there, there, traffic.rig.counters() - before)
    keys = raw.keys_of(
        b"".join(many_connections.key(secret, pair.port, side, "1.2", 0) for side in ("up", "down"))
    )
    return Sent(flow, direction, pair.port, keys, plan, 6)


def encrypted(traffic: Traffic, evidence: dict[str, Any], sent: Sent, capture: Path) -> None:
    """The records are right on the wire, then at the peer, and the card says that it made them."""
    proof.note(evidence, sent.flow, sent.plan, "hw")
    with raw.named(traffic, sent):
        raw.proves(capture, evidence, sent)
        proof.intact(sent.flow.far, sent.plan)
        proof.encrypted(sent.flow, sent.plan.total)


def decrypted(traffic: Traffic, evidence: dict[str, Any], sent: Sent) -> None:
    """The payload is right at the DUT, and the card says that it decrypted the records."""
    proof.note(evidence, sent.flow, sent.plan, "hw")
    with raw.named(traffic, sent):
        proof.intact(sent.flow.dut, sent.plan)
        raw.decrypted(sent)


# no stunnel is at the far end: `cell=None`, so that this alone never proves a cell of the truth table
@pytest.mark.promise("payload.tx", cell=None)
@pytest.mark.requires("wire", "wire-tap")
@pytest.mark.cells("tx")
def test_sends_under_known_keys(
    traffic: Traffic,
    offload: Switch,
    peer_offload: Switch,
    wire_tap: WireTap,
    evidence: dict[str, Any],
    cell: Cell,
) -> None:
    """This NIC encrypts records of 1 byte to 16 KiB with this cipher, the first as well as the last."""
    offload.on()
    peer_offload.set(tx=False, rx=False)
    with wire_tap.open() as watch:
        sent = raw.moved(traffic, cell, raw.payload(f"raw {cell}"))
        encrypted(traffic, evidence, sent, watch.stop()["wire"])


@pytest.mark.promise("payload.tx", cell=None)
@pytest.mark.requires("wire", "wire-tap")
def test_sends_over_ipv6(
    traffic: Traffic,
    offload: Switch,
    peer_offload: Switch,
    life: Life,
    wire_tap: WireTap,
    evidence: dict[str, Any],
) -> None:
    """This NIC encrypts records of 1 byte to 16 KiB over IPv6."""
    offload.on()
    peer_offload.set(tx=False, rx=False)
    with wire_tap.open() as watch:
        sent = moved_over_v6(traffic, life, "tx", raw.payload("raw tx v6"))
        encrypted(traffic, evidence, sent, watch.stop()["wire"])


@pytest.mark.promise("payload.rx", cell=None)
@pytest.mark.cells("rx")
def test_receives_under_known_keys(
    traffic: Traffic, offload: Switch, peer_offload: Switch, evidence: dict[str, Any], cell: Cell
) -> None:
    """This NIC decrypts records of 1 byte to 16 KiB with this cipher."""
    offload.on()
    peer_offload.set(tx=False, rx=False)
    decrypted(traffic, evidence, raw.moved(traffic, cell, raw.longer(f"raw {cell}")))


@pytest.mark.promise("payload.rx", cell=None)
def test_receives_over_ipv6(
    traffic: Traffic, offload: Switch, peer_offload: Switch, life: Life, evidence: dict[str, Any]
) -> None:
    """This NIC decrypts records of 1 byte to 16 KiB over IPv6."""
    offload.on()
    peer_offload.set(tx=False, rx=False)
    decrypted(traffic, evidence, moved_over_v6(traffic, life, "rx", raw.longer("raw rx v6")))
