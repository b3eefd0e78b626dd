"""Cards whose ESP crypto is bad, and what is asserted of a good one's: it has to fail, and say why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from offload.suite.measure.arms import Moved, NoFigure
from offload.suite.measure.ipsec import carried
from tests.lib.flow.cores import testbed_of
from tests.lib.life.life import Life, life_of
from tests.lib.rig.rig import Labs, Rig
from tests.lib.wire import ipsec_card as card

BAD = {
    "takes any ICV": (card.NOAUTH, card.refuses, "the card took a forgery"),
    "sends in clear under an ICV that fits": (card.LEAKS, card.hides, "left in plaintext inside ESP"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_esp_fails_the_checks(labs: Labs, name: str) -> None:
    """Without a good card's ESP the same checks fail that hold of a good one."""
    rig: Rig = labs.get("nicsim")
    how, check, says = BAD[name]
    checked: Callable[[Rig, Life, dict[str, Any]], None] = check
    with card.offered(rig, how), pytest.raises(AssertionError, match=says):
        checked(rig, life_of(rig), {})


def test_states_that_no_card_took(labs: Labs) -> None:
    """Without ESP crypto in the card `ip` takes states for it all the same, and the arm is no figure."""
    with (
        testbed_of(labs.get("nicsim")) as testbed,
        pytest.raises(NoFigure, match="the driver silently rejected the state"),
    ):
        with carried(testbed, "esp-128-hw", 60) as turn:
            turn.check(Moved(0, 0, 1))
