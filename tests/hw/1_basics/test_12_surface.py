"""This NIC says of itself what is so: features that follow each switch, and every counter of its profile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from offload.card.counters import Snapshot
from offload.card.nic import features
from offload.card.profile import FEATURES, Profile
from offload.host.base import Side
from tests.lib.life.life import Life
from tests.lib.life.many import opened
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch

TURNS = 6  # the last one is on


@pytest.mark.once
@pytest.mark.promise("enable.honest")
def test_shows_every_counter_of_its_profile(
    counters: Callable[[], Snapshot], offload: Switch, profile: Profile, evidence: dict[str, Any]
) -> None:
    """This NIC shows each counter that its profile requires, and no line that is none."""
    offload.on()
    shown = counters()
    wanted = [name for d in profile.directions() for name in profile.counters.required(d)]
    missing = [name for name in wanted if shown.get(name) is None]
    evidence.update(required=len(wanted), shown=len(shown.driver), missing=missing)
    assert wanted and not missing, f"ethtool -S does not show {', '.join(missing)}"


@pytest.mark.once
@pytest.mark.promise("enable.honest")
@pytest.mark.requires("tls")
def test_follows_every_switch(
    dut: Side, life: Life, rig: Rig, offload: Switch, profile: Profile, evidence: dict[str, Any]
) -> None:
    """This NIC follows the switch each time, is never fixed, and does what it says when it is on again."""
    offload.on()
    ours = profile.directions()
    for turn in range(1, TURNS + 1):
        on = turn % 2 == 0
        offload.set(**dict.fromkeys(ours, on))
        shown = features(dut.host, dut.dev)
        other = {d: f"{one}" for d in ours if (one := shown[FEATURES[d]]).fixed or one.requested != on}
        evidence["turns"] = turn
        assert not other, f"switch {turn} was {'on' if on else 'off'}, and it shows {other}"
    before = rig.counters()
    with opened(life) as (pair,):
        pair.moves("surface")
    moved = rig.counters() - before
    taken = {d: moved[f"Tls{d.title()}Device"] for d in ours}
    evidence["taken"] = taken
    assert set(taken.values()) == {1}, f"shown as on, and of one connection it took {taken}"
