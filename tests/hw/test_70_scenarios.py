"""This NIC keeps its promises where conditions cross: scenarios of --depth, held to every invariant."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lib.life.life import Contexts
from tests.lib.rig.rig import Rig
from tests.lib.scenario.check import check
from tests.lib.scenario.space import Scenario, load
from tests.lib.scenario.stand import Used, standing

pytestmark = pytest.mark.requires("tls", "wire", "wire-tap")


@pytest.mark.promise("conditions.crossed")
@pytest.mark.scenarios
def test_scenario_holds(
    rig: Rig, used: Used, contexts: Contexts, evidence: dict[str, Any], scenario: Scenario
) -> None:
    """This NIC moves every byte whole, encrypted and counted under these conditions together."""
    missing = check(standing(rig, used, contexts, scenario), load(rig.profile), scenario, evidence)
    if missing:
        pytest.skip(f"not made: {'; '.join(missing)}")
