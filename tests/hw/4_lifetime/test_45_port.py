"""This NIC's driver closes its rings and opens them again while connections live: each stays what it is."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import pytest

from offload.card.profile import Cell
from offload.suite.bench.cards import knobs
from tests.lib.life.life import Contexts, Life
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch
from tests.lib.scenario.check import check_line
from tests.lib.scenario.connections import Burst, move, opened
from tests.lib.scenario.events import EVENTS, Stage
from tests.lib.scenario.stand import Used, standing

pytestmark = pytest.mark.requires("tls", "wire", "wire-tap")
TX = Cell("tx", "1.2", "aes-gcm-128")
LATE = 10  # seconds that the driver takes to release a connection


@pytest.mark.promise("conditions.crossed")
@pytest.mark.parametrize("event", ["toggle", "mtu", "rings", "channels"])
def test_port_changes_under_live_connections(
    rig: Rig, used: Used, contexts: Contexts, evidence: dict[str, Any], event: str
) -> None:
    """This NIC moves every byte whole while ethtool -K, -G or -L, or the MTU, changes its port and back."""
    stand = standing(rig, used, contexts)
    directions = rig.profile.directions()
    direction = "both" if len(directions) == 2 else directions[0]
    missing = check_line(stand, f"seed=1,event={event},direction={direction},connections=2", evidence)
    if missing:
        pytest.skip(f"not made: {'; '.join(missing)}")


def on_card(rig: Rig) -> int:
    """How many contexts the simulated card has now."""
    said = rig.lab.root.run(["grep", "-w", "sim_contexts", f"{knobs.FOLDER}/0/counters"])
    return int(said.text.split()[1])


# of no promise: on a real bench nobody can make the firmware late
@pytest.mark.once
@pytest.mark.requires("lab", "nicsim")
@pytest.mark.parametrize("event", ["rings", "channels"])
def test_port_changes_while_a_release_is_late(
    rig: Rig, life: Life, offload: Switch, evidence: dict[str, Any], event: str
) -> None:
    """This NIC's rings or queues change while its driver releases another connection: one stays whole."""
    offload.on()
    with ExitStack() as undo:
        other = Life(rig)
        undo.callback(other.stop)
        line, (goes,) = opened(life, 1, TX)[0], other.open()
        undo.callback(life.close, [line.pair])
        undo.callback(knobs.turn, rig.lab.root, "0/del_slow=0")
        knobs.turn(rig.lab.root, f"0/del_slow={LATE * 1000}")
        before = on_card(rig)
        closed = goes.near.connections.begin("close", at=[goes.near.at], reset=True)
        move([line], ["tx"], [Burst(f"before {event}", (16384,) * 4)])
        missed = EVENTS[event](Stage(rig, life, offload, (), undo, line, []))
        late = on_card(rig) == before
        move([line], ["tx"], [Burst(f"after {event}", (16384,) * 4)])
        goes.near.connections.end(closed)
        evidence.update(contexts=before, still_held=late)
    if missed or not late:
        pytest.skip(f"not made: {missed or 'the release was over too early'}")
