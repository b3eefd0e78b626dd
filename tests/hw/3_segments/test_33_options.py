"""This NIC recovers where its driver must find TCP behind options of IP."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lib.life.life import Contexts
from tests.lib.rig.rig import Rig
from tests.lib.scenario.check import strictly
from tests.lib.scenario.stand import Used, standing

pytestmark = pytest.mark.requires("tls", "wire", "wire-tap")
BEHIND_OPTIONS = "seed=1,direction=rx,ip=v4-options,trouble=lost-header"


@pytest.mark.promise("resync.rx")
def test_receive_resynchronizes_behind_ip_options(
    rig: Rig, used: Used, contexts: Contexts, evidence: dict[str, Any]
) -> None:
    """This NIC decrypts again after a lost frame where TCP begins behind options of IPv4."""
    missing = strictly(standing(rig, used, contexts), BEHIND_OPTIONS, evidence)
    assert not missing, f"not made: {'; '.join(missing)}"
