"""This NIC's driver closes its rings and opens them again while connections live: each stays what it is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.lib.life.life import Contexts
from tests.lib.rig.rig import Rig
from tests.lib.scenario.check import check_line
from tests.lib.scenario.stand import ended, stand_of

pytestmark = pytest.mark.requires("tls", "wire", "wire-tap")


@pytest.fixture(scope="module")
def used() -> Iterator[list[Rig]]:
    """The labs on which connections were opened to become old: they are closed at the end."""
    rigs: list[Rig] = []
    yield rigs
    for rig in rigs:
        ended(rig)
        Contexts(rig).forget()


@pytest.mark.promise("conditions.crossed")
@pytest.mark.parametrize("event", ["toggle", "mtu", "rings", "channels"])
def test_port_changes_under_live_connections(
    rig: Rig, used: list[Rig], contexts: Contexts, evidence: dict[str, Any], event: str
) -> None:
    """This NIC moves every byte whole while ethtool -K, -G or -L, or the MTU, changes its port and back."""
    stand, new = stand_of(rig)
    if new:  # its old connections are there from now on, and no test's leak
        used.append(rig)
        contexts.forget()
        contexts.begin()
    directions = rig.profile.directions()
    direction = "both" if len(directions) == 2 else directions[0]
    missing = check_line(stand, f"seed=1,event={event},direction={direction},connections=2", evidence)
    if missing:
        pytest.skip(f"not made: {'; '.join(missing)}")
