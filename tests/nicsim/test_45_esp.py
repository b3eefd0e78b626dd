"""Cards whose ESP crypto is bad, and what is asserted of a good one's: it has to fail, and say why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from offload.suite.measure.arms import Moved, NoFigure
from offload.suite.measure.ipsec import carried
from tests.lib import ipsec_card as card
from tests.lib.cores import bed_of
from tests.lib.life import Life, life_of
from tests.lib.rig import Labs, Rig

BAD = {
    "takes any ICV": (card.NOAUTH, card.refuses, "the card took a forgery"),
    "sends in clear under an ICV that fits": (card.LEAKS, card.hides, "left in clear inside ESP"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_esp_is_seen(labs: Labs, name: str) -> None:
    """Without a good card's ESP the same checks fail that hold of a good one."""
    rig: Rig = labs.get("nicsim")
    how, check, says = BAD[name]
    checked: Callable[[Rig, Life, dict[str, Any]], None] = check
    with card.offered(rig, how), pytest.raises(AssertionError, match=says):
        checked(rig, life_of(rig), {})


def test_states_that_no_card_took(labs: Labs) -> None:
    """Without ESP crypto in the card `ip` takes states for it all the same, and the arm is no figure."""
    with (
        bed_of(labs.get("nicsim")) as bed,
        pytest.raises(NoFigure, match="the driver silently rejected the state"),
    ):
        with carried(bed, "esp-128-hw", 60) as turn:
            turn.check(Moved(0, 0, 1))
