"""What ESP costs this NIC's host compared with kernel TLS: the arms of docs/use/ipsec.md, for the report."""

from __future__ import annotations

from typing import Any

import pytest

from offload.suite.bench.vm import cards
from offload.suite.measure.cost.ipsec import measure, seen
from offload.suite.measure.plan import IPSEC, Setting
from tests.lib.flow.cores import measured, sound
from tests.lib.rig.rig import Rig, in_lab

COUNTED = ("plain", "sw", "hw", "esp-null", "esp-128")
LESS = (("plain", "esp-null"), ("esp-null", "esp-128"), ("plain", "sw"), ("hw", "sw"))


@pytest.mark.once
@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "ipsec")
def test_esp_compared_with_tls(rig: Rig, evidence: dict[str, Any]) -> None:
    """This NIC's host pays for ESP by software what plain TCP does not cost it; on a bench: in cores."""
    if not in_lab(rig.bench):
        evidence["cpu"] = found = measured(rig, IPSEC, Setting("stream", "tx", 1, None))
        sound(found, IPSEC)
        return
    if rig.lab.kind == cards.KIND:
        pytest.skip("ESP is counted beside nicsim's offload only, and this lab's card is cx6sim's")
    series, profile = ".".join(rig.bench.rig["kernel"].split(".")[:2]), rig.profile
    offers = profile.directions()
    evidence["cpu"] = found = seen(
        measure(
            series, arms=COUNTED, parts=("on",), personality=profile.id, offers=offers, say=lambda _: None
        )
    )
    paid = {row["arm"]: row["cost"][0]["per_byte"] for row in found["rows"]}
    assert set(paid) == set(COUNTED) - {entry["arm"] for entry in found["skipped"]}, (paid, found["skipped"])
    for less, more in LESS:
        assert less not in paid or paid[less] < paid[more], (
            f"{less} and {more}, instructions per byte: {paid}"
        )
