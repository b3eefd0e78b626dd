"""What the kernel does to a card when a route moves to a device on top of it: it is not the card's doing."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.host.base import Bench
from offload.traffic.drive import sending
from tests.lib.life import KIB, Life
from tests.lib.switch import Switch
from tests.lib.ways import watched, way_on_top
from tests.lib.wire import share

pytestmark = pytest.mark.requires("tls", "wire", "eyes")


def test_vlan_on_the_card_undoes_the_encryption(
    life: Life, bench: Bench, offload: Switch, tmp_path: Path
) -> None:
    """Without this nobody would know that a stock kernel puts plaintext on the wire here, or no longer does.

    The kernel encrypts for the VLAN, since that is not the card (tls_validate_xmit_skb()). The packet keeps
    its socket, comes to the card, is its own there, and AES-GCM once more with the same key and nonce gives
    the plaintext back, with a good tag. No driver can tell. docs/lifecycle.md has the sources.
    """
    assert bench.wire is not None
    parts = [sending(f"on top {number}", 64 * KIB) for number in range(2)]
    with way_on_top(bench) as way:
        pair = life.open()[0]
        with watched({"wire": (bench.wire, bench.wire_ports[0])}, tmp_path) as seen:
            pair.sends(parts[0].seed, parts[0].total)
            way.take()
            sent = pair.near.begin("send", seed=parts[1].seed, size=parts[1].total)
            there = pair.far.take(parts[1].total)
            pair.near.crowd.end(sent)
        life.close([pair], reset=True)
    assert share(parts[0].content(), seen["wire"]) == 0, "the card itself leaks"
    assert share(parts[1].content(), seen["wire"]) > 0.9, "no plaintext: this kernel has been repaired"
    assert (there["bytes"], there["error"]) == (parts[1].total, ""), f"the peer refused it: {there}"
    assert there["sha256"] != parts[1].sha256(), "plaintext on the wire, and yet the right bytes arrived"
