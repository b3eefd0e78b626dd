"""Impairment that met no frame is the rig's doing, unless the card reordered what TCP sent."""

from __future__ import annotations

from typing import Any

import pytest

from offload.errors import RigError
from tests.lib.impair.impairment import all_met


def impairment(missed: list[str], **gaps: int) -> dict[str, Any]:
    """What a test keeps of its impairment."""
    summary = {direction.replace("_", "-"): {"tcp": 9, "gaps": count} for direction, count in gaps.items()}
    return {"impairment": {"missed": missed, "summary": summary}}


def test_impairment_that_met_its_frames_is_good() -> None:
    """Frames in another order fail nothing here: the proof says what they are."""
    all_met(impairment([], to_peer=3))


def test_a_rule_that_met_nothing_is_a_broken_rig() -> None:
    """Impairment that was never there says nothing of a card; nor does what the peer sent."""
    for gaps in ({}, {"to_peer": 0}, {"to_peer": 0, "to_dut": 7}):
        with pytest.raises(RigError, match="met no frame: a>b header 9 drop"):
            all_met(impairment(["a>b header 9 drop"], **gaps))


def test_a_card_that_reorders_is_blamed() -> None:
    """A card that sends frames in another order fails: it hides the records from the wire."""
    with pytest.raises(AssertionError, match="3 frames left the DUT before bytes that TCP sent first"):
        all_met(impairment(["a>b header 9 drop"], to_peer=3))
