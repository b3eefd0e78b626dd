"""What becomes of an offloaded connection when one of two cards in a bond loses its cable."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from offload.card.profile import Profile
from offload.host.base import Bench
from offload.suite.traffic.drive import sending
from tests.lib.impair.bonded_cards import two_cards
from tests.lib.impair.paths import THEIRS
from tests.lib.life.life import KIB, Life
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch
from tests.lib.wire.wire import share, watched

pytestmark = pytest.mark.requires("tls", "wire", "wire-tap")


def test_bond_of_two_cards_waits_for_its_cable(
    life: Life, bench: Bench, rig: Rig, profile: Profile, offload: Switch, tmp_path: Path
) -> None:
    """Without this nobody would know that an offloaded connection does not fail over, and leaks nothing.

    bond_tls_device_xmit() (bond_main.c 6.1:5594) gives a packet to the card that the connection began on
    and to no other; that one has no cable, so it is lost until the cable is back. New connections go on.
    """
    offload.on()
    assert bench.wire is not None
    parts = [sending(f"two cards {number}", 64 * KIB) for number in range(3)]
    places = {port: (bench.wire, port) for port in bench.wire_ports}
    with two_cards(bench, "balance-xor") as cards, watched(rig, places, tmp_path) as seen:
        before = cards.encrypted(profile)
        pair = life.open(host=THEIRS)[0]
        pair.sends(parts[0].seed, parts[0].total)
        between = cards.encrypted(profile)
        card = max(between, key=lambda one: between[one] - before[one])
        assert between[card] - before[card] > parts[0].total // 2, f"no card encrypted: {before}, {between}"
        cards.pull(card)
        other = life.open(host=THEIRS)[0]
        other.sends(parts[1].seed, parts[1].total)
        moved = cards.encrypted(profile)
        assert moved[card] == between[card], "a new connection went to the card without a cable"
        sent = pair.near.begin("send", seed=parts[2].seed, size=parts[2].total)
        waits = pair.far.begin("take", size=parts[2].total)
        time.sleep(1)
        failed_over = pair.far.connections.answered(waits)
        cards.plug(card)
        there = pair.far.connections.answer(waits)
        pair.near.connections.end(sent)
        life.close([pair, other])
    assert not failed_over, "it failed over: this kernel has learnt it, and lifecycle.md has to say so"
    assert there["sha256"] == parts[2].sha256(), f"the peer has {there}"
    leaked = {port: share(b"".join(p.content() for p in parts), seen[port]) for port in seen}
    assert set(leaked.values()) == {0.0}, f"plaintext on the wire: {leaked}"
