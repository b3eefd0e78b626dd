"""The bounds of a scenario's counters: what a card has to have decrypted at least."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.counters import Snapshot
from offload.profile import find
from tests.lib.life import End, Pair
from tests.lib.scenario.connections import Burst, Line, tracks
from tests.lib.scenario.invariants import Facts
from tests.lib.scenario.judge import Seen, bounds
from tests.lib.scenario.play import Told
from tests.lib.scenario.space import cell_of, load

SPACE = load(find("connectx-6-dx"))
START, WHOLE = 4000, 10_000


def seen(words: str) -> Seen:
    """A scenario in which the DUT received: 4000 bytes at the start, 6000 later."""
    scenario = SPACE.parse(f"seed=7,direction=rx{words}")
    cell = cell_of(scenario["cell"], "rx")
    end = End(None, 0)  # type: ignore[arg-type]
    line = Line(Pair(end, end, 9), tracks("secret", 9, cell, 0), cell)
    line.tracks["rx"].bursts = [Burst("start", (START,)), Burst("placed", (WHOLE - START,))]
    facts = Facts(Snapshot("nicsim0", 0.0, {}, {}), {}, {})
    told = Told(line, [], fair=START)
    found = Seen(scenario, [line], told, facts, facts, {"wire": Path("none")}, ("rx",))
    vars(found)["frames"] = []
    return found


@pytest.mark.parametrize("words", ["", ",event=other", ",event=coalesce", ",ip=v6,place=tag-cut"])
def test_in_fair_weather_all_that_came_is_asked_for(words: str) -> None:
    """Without a NIC a card has to decrypt nine tenths of all bytes where nothing goes wrong."""
    assert bounds(seen(words), "rx").least == 9000


@pytest.mark.parametrize("words", [",trouble=lost-tag", ",trouble=noise", ",event=carrier", ",event=mtu"])
def test_after_trouble_only_the_start_is_asked_for(words: str) -> None:
    """Without a NIC a card that lost its place may leave to software what follows."""
    assert bounds(seen(words), "rx").least == 3600
