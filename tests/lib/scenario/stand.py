"""What scenarios run on: two ends, switches, and connections that are opened before the first and stay."""

from __future__ import annotations

import itertools
import json
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from offload.host.base import Side
from tests.lib.impair import shapes_path as path
from tests.lib.life.life import Contexts, Life, life_of
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch
from tests.lib.scenario.connections import Line, obeyed, opened
from tests.lib.scenario.setting import SETTINGS, buffers, version
from tests.lib.scenario.space import Scenario, cell_of, load

OLD = 2  # connections of each kind
Kind = tuple[str, int, bool]  # what nobody changes later: cell, version of IP, without TCP options
KEPT = "scenario_stand"  # where a rig has its stand


@dataclass
class Stand:
    """One lab's, for all scenarios that run there, one after the other.

    `card`: the directions that the card must do. `old`: connections that were opened before the first
    scenario, by what they are; `software`: the directions in which an event has made them software's since.
    `keep`: where the captures of the last scenario that failed go. `readings`: what the card may take for a
    packet's bytes, by direction, as far as the scenarios have shown. `dropped`: packets that the ports'
    queues have dropped.
    """

    rig: Rig
    life: Life
    offload: Switch
    peer: Switch
    card: tuple[str, ...]
    old: dict[Kind, list[Line]] = field(default_factory=dict)
    software: set[str] = field(default_factory=set)
    readings: dict[str, frozenset[str]] = field(default_factory=dict)
    dropped: int = 0
    keep: Path | None = None

    def begin(self) -> None:
        """Switch the card on and the peer's off, and open what is to become old."""
        if self.card:
            self.offload.on()
            self.peer.set(**dict.fromkeys(self.card, False))
        self.lost_above()
        self.renew()

    def lost_above(self) -> int:
        """Packets that the queues of both ports dropped, above the cards, since it was last asked."""
        bench, before = self.rig.bench, self.dropped
        self.dropped = sum(dropped(side) for side in (bench.dut, bench.peer))
        return max(self.dropped - before, 0)  # a port with other queues counts anew

    def renew(self) -> None:
        """Open the old connections again: what a failed scenario left of them says nothing of the next
        one."""
        self._close()
        self.software = set()
        made = load(self.rig.profile).made
        for bare in [False, True][: 1 + ("bare" in made["tcp"])]:
            with ExitStack() as undo:
                if bare:
                    undo.enter_context(path.tcp_settings(self.rig.bench, **SETTINGS["bare"]))
                for cell, family in itertools.product(made["cell"], sorted(set(map(version, made["ip"])))):
                    lines = opened(self.life, OLD, cell_of(cell, "tx"), family=family)
                    self.old[cell, family, bare] = lines
                    for line in lines:
                        line.old = True
        obeyed(buffers(list(itertools.chain(*self.old.values()))))

    def aged(self, scenario: Scenario) -> list[Line]:
        """The old connections for a scenario."""
        return self.old[scenario["cell"], version(scenario["ip"]), scenario["tcp"] == "bare"]

    def _close(self) -> None:
        """Close the old connections."""
        self.life.close([line.pair for lines in self.old.values() for line in lines], reset=True)
        self.old = {}

    def end(self) -> None:
        """Close them, and put the switches back."""
        self._close()
        self.peer.restore()
        self.offload.restore()


def dropped(side: Side) -> int:
    """Packets that the queueing disciplines of a port have dropped; none where tc cannot tell."""
    done = side.host.run(["tc", "-s", "-j", "qdisc", "show", "dev", side.dev], check=False)
    if done.rc != 0:
        return 0
    return sum(int(row.get("drops", 0)) for row in json.loads(done.text or "[]"))


def stand_of(rig: Rig) -> tuple[Stand, bool]:
    """The stand of a lab, and whether it was made now: in a test's body, as switches may fail."""
    kept = vars(rig)
    if KEPT in kept:
        return kept[KEPT], False
    card = rig.profile.directions() if rig.kind != "veth" else ()
    stand = Stand(rig, life_of(rig), Switch(rig.bench.dut, card), Switch(rig.bench.peer), card)
    stand.begin()
    kept[KEPT] = stand
    return stand, True


def standing(rig: Rig, used: list[Rig], contexts: Contexts) -> Stand:
    """The stand of a test's lab; what it opens at its start stays, and is no leak of that test."""
    stand, new = stand_of(rig)
    if new:
        used.append(rig)
        contexts.forget()
        contexts.begin()
    return stand


def ended(rig: Rig) -> None:
    """End the stand of a lab, if it has one."""
    if stand := vars(rig).pop(KEPT, None):
        stand.end()
