"""Where a stock kernel puts plaintext on the wire though the card does all right: devices on top of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.host.base import Bench
from offload.suite.traffic.drive import sending
from tests.lib.impair.paths import THEIRS, bonded, path_on_top
from tests.lib.life.life import KIB, Life, Pair
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch
from tests.lib.wire.wire import share, watched

pytestmark = pytest.mark.requires("tls", "wire", "wire-tap")


def test_vlan_on_the_card_undoes_the_encryption(
    life: Life, bench: Bench, rig: Rig, offload: Switch, tmp_path: Path
) -> None:
    """Without this nobody would know that a stock kernel puts plaintext on the wire here, or no longer does.

    The kernel encrypts for the VLAN, since that is not the card (tls_validate_xmit_skb()). The packet keeps
    its socket, comes to the card, is its own there, and AES-GCM once more with the same key and nonce gives
    the plaintext back, with a good tag. No driver can tell. docs/reference/lifecycle.md has the sources.
    """
    offload.on()
    assert bench.wire is not None
    parts = [sending(f"on top {number}", 64 * KIB) for number in range(2)]
    with path_on_top(bench) as direction:
        pair = life.open()[0]
        with watched(rig, {"wire": (bench.wire, bench.wire_ports[0])}, tmp_path) as seen:
            pair.sends(parts[0].seed, parts[0].total)
            direction.take()
            sent = pair.near.begin("send", seed=parts[1].seed, size=parts[1].total)
            there = pair.far.take(parts[1].total)
            pair.near.connections.end(sent)
        life.close([pair], reset=True)
    assert share(parts[0].content(), seen["wire"]) == 0, "the card itself leaks"
    assert share(parts[1].content(), seen["wire"]) > 0.9, "no plaintext: this kernel has been repaired"
    assert (there["bytes"], there["error"]) == (parts[1].total, ""), f"the peer refused it: {there}"
    assert there["sha256"] != parts[1].sha256(), "plaintext on the wire, and yet the right bytes arrived"


def test_bond_that_fails_over_undoes_the_encryption(
    life: Life, bench: Bench, rig: Rig, offload: Switch, tmp_path: Path
) -> None:
    """Without this nobody would know that a bond whose offloading port goes down sends plaintext elsewhere.

    The kernel takes the connection back (tls_device_down()) and encrypts in dev_queue_xmit(): of the bond,
    and, since tls_validate_xmit_skb_sw() looks at no device, of the port below it once more.
    """
    offload.on()
    assert bench.wire is not None
    parts = [sending(f"bond {number}", 64 * KIB) for number in range(2)]
    with bonded(bench, "balance-xor") as bond:
        pair = offloaded(life, rig)
        places = {"card": (bench.wire, bench.wire_ports[0]), "other": (bench.peer.host, bond.other)}
        with watched(rig, places, tmp_path) as seen:
            pair.sends(parts[0].seed, parts[0].total)
            bond.fail_over()
            sent = pair.near.begin("send", seed=parts[1].seed, size=parts[1].total)
            there = pair.far.take(parts[1].total)
            pair.near.connections.answer(sent)
        life.close([pair], reset=True)
    assert share(parts[0].content(), seen["card"]) == 0, "the card itself leaks"
    assert share(parts[1].content(), seen["other"]) > 0.9, "no plaintext: this kernel has been repaired"
    assert there["sha256"] != parts[1].sha256(), "plaintext on the wire, and yet the right bytes arrived"


def offloaded(life: Life, rig: Rig) -> Pair:
    """A connection through the bond that its hash gives to the card's port."""
    for _ in range(20):
        before = rig.counters()
        pair = life.open(host=THEIRS)[0]
        if (rig.counters() - before)["TlsTxDevice"]:
            return pair
        life.close([pair])
    raise AssertionError("of 20 connections through the bond none was offloaded")
