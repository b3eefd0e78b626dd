"""This NIC's offload in instructions per byte, counted in a VM in which nothing but they passes the time."""

from __future__ import annotations

from typing import Any

import pytest

from offload.suite.measure.cost.figures import saving
from offload.suite.report.criteria import load as load_criteria
from tests.lib.flow.cost import counted, part, whole
from tests.lib.rig.rig import Rig


@pytest.mark.promise("cpu.cost")
@pytest.mark.once
@pytest.mark.requires("lab", "cost-mode")
def test_saves_instructions(rig: Rig, evidence: dict[str, Any]) -> None:
    """This NIC takes a good part of software's instructions off the sender, the receiver and their host."""
    direction = whole(rig)
    found = part(counted(rig), (direction, 1, "stream"))
    evidence["cpu"] = found
    sides = {"tx": ("sender",), "rx": ("receiver",), "both": ("sender", "receiver", "host")}
    saved = {side: 100 * saving(found, direction, side) for side in sides[direction]}
    evidence["saved_percent"] = {side: round(part, 1) for side, part in saved.items()}
    evidence["instructions_saved_percent"] = round(min(saved.values()), 1)
    wanted = load_criteria().level("cpu.cost", "instructions_saved_percent").min
    assert wanted is not None and min(saved.values()) >= wanted, (
        f"offload saves {evidence['saved_percent']} % of software's instructions, wanted {wanted:g} of each"
    )
