"""Is it switched on, and does anything on the device itself take it back?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from offload.card.nic import Match, Nic
from offload.card.profile import DIRECTIONS, FEATURES, WORDS
from offload.doctor.reasons import Notes

DONE = {"tx": "encrypted", "rx": "decrypted"}


def examine(nic: Nic, direction: str, notes: Notes) -> None:
    """Note how the switch of a direction stands, where it is not fixed."""
    feature = nic.feature(direction)
    if feature is None:
        notes.add("D215", f"ethtool -k {nic.dev}", [direction], feature=FEATURES[direction])
    elif feature.active:
        notes.ok(f"{feature.name} is on")
    elif feature.requested and (missing := nic.checksum_missing(direction)):
        notes.add(
            "D302",
            f"ethtool -k {nic.dev}: {feature.name}: {feature}",
            [direction],
            word=WORDS[direction],
            checksum=WORDS[missing],
            feature=feature.name,
            switch=missing,
        )
    else:
        notes.add(
            "D301",
            f"ethtool -k {nic.dev}: {feature.name}: {feature}",
            [direction],
            word=WORDS[direction],
            done=DONE[direction],
            direction=direction,
        )


def around(nic: Nic, row: Mapping[str, Any], found: Match, notes: Notes) -> None:
    """Note other switches of the device that bear on TLS offload; `row` is ip's."""
    if not nic.up:
        notes.add("D303", f"ip link show {nic.dev}: no UP flag", DIRECTIONS)
    if (tso := nic.features.get("tx-tcp-segmentation")) and not tso.active and not tso.fixed:
        notes.add("D304", f"ethtool -k {nic.dev}: tx-tcp-segmentation: {tso}", ["tx"])
    if (lro := nic.features.get("large-receive-offload")) and lro.active:
        notes.add("D305", f"ethtool -k {nic.dev}: large-receive-offload: {lro}", ["rx"])
    if row.get("xdp"):
        notes.add("D403", f"ip -d link show {nic.dev}: xdp", ["rx"])
