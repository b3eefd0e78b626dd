"""Where the records of a scenario lie: a forged one comes last, so that all that is cut was there before."""

from __future__ import annotations

import pytest

from offload.card.profile import find
from tests.lib.scenario.connections import OVERHEAD, Track
from tests.lib.scenario.layout import CUTS, TAG, cut, placed, spot
from tests.lib.scenario.space import load

SPACE = load(find("connectx-6-dx"))
MSS = 1448


@pytest.mark.parametrize("place", sorted(CUTS))
def test_each_byte_is_cut_after(place: str) -> None:
    """Each byte of a header or tag has its record, and the seed says which one is the last."""
    last = set()
    for seed in range(120):
        bursts = cut(SPACE.parse(f"seed={seed},place={place}"), MSS)
        found = []
        for before, size, _ in bursts:
            edge = -(-(before + OVERHEAD + 1) // MSS) * MSS if place == "header-cut" else None
            tag = before + OVERHEAD + OVERHEAD + size - TAG
            edge = edge if edge is not None else -(-(tag + 1) // MSS) * MSS
            found.append(edge - (before + OVERHEAD if place == "header-cut" else tag))
        assert sorted(found) == list(CUTS[place])
        last.add(found[-1])
    assert len(last) == len(CUTS[place])


@pytest.mark.parametrize("place", sorted(CUTS))
def test_a_forged_record_is_the_last_one_that_is_cut(place: str) -> None:
    """The connection ends where somebody forged: what is cut is before it, not behind."""
    for seed in range(20):
        scenario = SPACE.parse(f"seed={seed},direction=rx,place={place},trouble=forged-tag")
        bursts = placed(scenario, "placed rx", MSS)
        at = spot(scenario, Track(None, 0), bursts)  # type: ignore[arg-type]
        assert at.before == sum(b.total for b in bursts[:-1]) + bursts[-1].writes[0]
