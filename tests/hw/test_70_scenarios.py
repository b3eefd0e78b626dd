"""This NIC keeps its promises where conditions cross: scenarios of --depth, held to every invariant."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lib.life.life import Contexts
from tests.lib.rig.rig import Rig
from tests.lib.scenario.check import check, strictly
from tests.lib.scenario.space import Scenario, load
from tests.lib.scenario.stand import ended, standing

BEHIND_OPTIONS = "seed=1,direction=rx,ip=v4-options,trouble=lost-header"
pytestmark = pytest.mark.requires("tls", "wire", "wire-tap")


@pytest.fixture(scope="module")
def used() -> Iterator[list[Rig]]:
    """The labs on which scenarios ran: what was opened there at the start is closed at the end."""
    rigs: list[Rig] = []
    yield rigs
    for rig in rigs:
        ended(rig)
        Contexts(rig).forget()


@pytest.mark.promise("conditions.crossed")
@pytest.mark.scenarios
def test_scenario_holds(
    rig: Rig, used: list[Rig], contexts: Contexts, evidence: dict[str, Any], scenario: Scenario
) -> None:
    """This NIC moves every byte whole, encrypted and counted under these conditions together."""
    missing = check(standing(rig, used, contexts), load(rig.profile), scenario, evidence)
    if missing:
        pytest.skip(f"not made: {'; '.join(missing)}")


@pytest.mark.promise("resync.rx")
def test_receive_resynchronizes_behind_ip_options(
    rig: Rig, used: list[Rig], contexts: Contexts, evidence: dict[str, Any]
) -> None:
    """This NIC decrypts again after a lost frame where TCP begins behind options of IPv4."""
    missing = strictly(standing(rig, used, contexts), BEHIND_OPTIONS, evidence)
    assert not missing, f"not made: {'; '.join(missing)}"
