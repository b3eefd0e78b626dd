"""Without a NIC the same scenarios hold: what fails in tests/hw and not here is the card's doing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lib.rig.rig import Rig
from tests.lib.scenario.check import check
from tests.lib.scenario.space import Scenario, load
from tests.lib.scenario.stand import Used, stand_of

pytestmark = pytest.mark.requires("tls", "wire", "wire-tap")


@pytest.mark.promise("conditions.crossed")
@pytest.mark.scenarios
def test_scenario_holds(rig: Rig, used: Used, evidence: dict[str, Any], scenario: Scenario) -> None:
    """Without a NIC software moves every byte whole and encrypted under these conditions together."""
    stand, new = stand_of(rig, used.scenarios)
    if new:
        used.rigs.append(rig)
    stand.refill(scenario)
    missing = check(stand, load(rig.profile), scenario, evidence)
    if missing:
        pytest.skip(f"not made: {'; '.join(missing)}")
