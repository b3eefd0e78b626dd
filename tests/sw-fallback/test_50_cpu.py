"""Without a NIC: the arms that need no card, each proved to be what its name says."""

from __future__ import annotations

from typing import Any

import pytest

from offload.errors import Refused
from offload.suite.measure.plan import Setting
from tests.lib.flow.cores import measured, sound
from tests.lib.rig.rig import Rig

pytestmark = pytest.mark.requires("tls", "ktls-handoff", "stunnel")
ARMS = ("user", "sw", "plain")


@pytest.mark.turns("direction")
@pytest.mark.parametrize("direction", ["tx", "rx"])
def test_configurations_without_a_card(rig: Rig, evidence: dict[str, Any], direction: str) -> None:
    """Without a NIC TLS in user space, in the kernel, and none are told apart, and all move bytes."""
    found = measured(rig, ARMS, Setting("stream", direction, 1, None))
    evidence["cpu"] = found
    sound(found, ARMS)


def test_no_figure_without_a_card(rig: Rig) -> None:
    """Without a NIC the offload arms are refused with the reason, never measured in software."""
    with pytest.raises(Refused, match="could not measure anything: stream hw"):
        measured(rig, ("hw", "hw-zc"), Setting("stream", "tx", 1, None))
