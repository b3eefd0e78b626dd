"""This NIC's offload in instructions per byte, counted in a VM in which nothing but they passes the time."""

from __future__ import annotations

from typing import Any

import pytest

from offload.errors import RigError
from offload.report.criteria import load as load_criteria
from offload.vm import cost, knobs
from offload.vm.cost_figures import saving
from tests.lib.rig import Rig


@pytest.mark.promise("cpu.cost")
@pytest.mark.once
@pytest.mark.requires("lab")
def test_saves_instructions(rig: Rig, evidence: dict[str, Any]) -> None:
    """This NIC takes a good part of software's instructions off the sender, the receiver and their host."""
    found = counted(rig)
    evidence["cpu"] = found
    sides = {"tx": ("sender",), "rx": ("receiver",), "both": ("sender", "receiver", "host")}
    direction = found["rows"][0]["direction"]
    saved = {side: 100 * saving(found, direction, side) for side in sides[direction]}
    evidence["saved_percent"] = {side: round(part, 1) for side, part in saved.items()}
    evidence["instructions_saved_percent"] = round(min(saved.values()), 1)
    wanted = load_criteria().level("cpu.cost", "instructions_saved_percent").min
    assert wanted is not None and min(saved.values()) >= wanted, (
        f"offload saves {evidence['saved_percent']} % of software's instructions, wanted {wanted:g} of each"
    )


def counted(rig: Rig) -> dict[str, Any]:
    """One boot, software beside offload, of the card that the lab's DUT has, with its faults if any."""
    offers = rig.profile.directions()
    direction = "both" if set(offers) == {"tx", "rx"} else offers[0]
    series = ".".join(rig.bench.rig["kernel"].split(".")[:2])
    faults = " ".join(word for word in knobs.turned(rig.lab.root).split() if word.startswith("0/"))
    try:
        return cost.measure(
            series, boots=1, arms=("sw", "hw"), directions=(direction,), offers=offers,
            personality=rig.profile.id, knobs=faults, say=lambda _: None,
        )  # fmt: skip
    except RigError as exc:
        if not faults:
            raise
        raise AssertionError(f"with {faults} the card does not even carry payload: {exc}") from exc
