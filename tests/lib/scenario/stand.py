"""What scenarios run on: two ends, switches, and connections that are opened before the first and stay."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from offload.host.base import Side
from tests.lib.life.life import Contexts, Life, life_of
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch
from tests.lib.scenario.connections import Line
from tests.lib.scenario.events import SOFTWARE
from tests.lib.scenario.mtu import Mtu
from tests.lib.scenario.old import Kind, kind, open_kinds, spent
from tests.lib.scenario.space import Scenario

KEPT = "scenario_stand"  # where a rig has its stand


@dataclass
class Stand:
    """One lab's, for all scenarios that run there, one after the other.

    `card`: the directions that the card must do. `wanted`: how many scenarios yet to begin need old
    connections of a kind; `old`: those that there are. `readings`: what the card may take for a packet's
    bytes, by direction, as far as the scenarios have shown. `dropped`: packets that the ports' queues have
    dropped. `keep`: where the captures of the last scenario that failed go.
    """

    rig: Rig
    life: Life
    offload: Switch
    peer: Switch
    card: tuple[str, ...]
    wanted: Counter[Kind] = field(default_factory=Counter)
    old: dict[Kind, list[Line]] = field(default_factory=dict)
    readings: dict[str, frozenset[str]] = field(default_factory=dict)
    dropped: int = 0
    keep: Path | None = None

    def __post_init__(self) -> None:
        """The path has the MTU that it was found with."""
        self.mtu = Mtu(self.rig)

    def begin(self) -> None:
        """Switch the card on and the peer's off, and open what is to become old."""
        if self.card:
            self.offload.on()
            self.peer.set(**dict.fromkeys(self.card, False))
        self.lost_above()
        self.refill()

    def lost_above(self) -> int:
        """Packets that the queues of both ports dropped, above the cards, since it was last asked."""
        bench, before = self.rig.bench, self.dropped
        self.dropped = sum(dropped(side) for side in (bench.dut, bench.peer))
        return max(self.dropped - before, 0)  # a port with other queues counts anew

    def renew(self) -> None:
        """Open the old connections again: what a failed scenario left of them says nothing of the next
        one."""
        kinds = set(self.old)
        self._close([*kinds])
        self._open(kinds)

    def ready(self, scenario: Scenario) -> None:
        """Open the old connections of a scenario if there are none, and give the path its MTU.

        It opens no others: a test that ends with more contexts than it began with has a leak.
        """
        self._open(needed(scenario) - self.old.keys())
        self.mtu.at(scenario["mtu"])

    def aged(self, scenario: Scenario) -> list[Line]:
        """The old connections for a scenario."""
        return self.old[kind(scenario)]

    def done(self, scenario: Scenario) -> None:
        """Note what a scenario's event made software's, and close the old connections that it spent."""
        for line in itertools.chain(*self.old.values()):
            line.software |= set(SOFTWARE.get(scenario["event"], ()))
        if scenario["age"] == "old" and spent(scenario):
            self._close([kind(scenario)])

    def refill(self, scenario: Scenario | None = None) -> bool:
        """Open what the scenarios to come need and is not there, before a test counts; whether it opened any.

        While the path has another MTU, only a scenario that needs some of that has it put back. What no
        scenario needs any more stays closed.
        """
        mine = needed(scenario) if scenario else set[Kind]()
        self.wanted -= Counter(mine)
        if mine <= self.old.keys() and not self.mtu.found:
            return False
        lacking = (mine | self.wanted.keys()) - self.old.keys()
        self._open(lacking)
        return bool(lacking)

    def _open(self, kinds: set[Kind]) -> None:
        """Open connections of these kinds, on the path as it was found."""
        if kinds:
            self.mtu.as_found()
            self.old |= open_kinds(self.life, kinds)

    def _close(self, kinds: Sequence[Kind]) -> None:
        """Close the old connections of these kinds."""
        lines = [line for one in kinds for line in self.old.pop(one, ())]
        if lines:
            self.life.close([line.pair for line in lines], reset=True)

    def end(self) -> None:
        """Close them, and put path and switches back."""
        with ExitStack() as undo:
            for restore in (self.offload.restore, self.peer.restore, self.mtu.as_found):
                undo.callback(restore)
            self._close(list(self.old))


def needed(scenario: Scenario) -> set[Kind]:
    """The kind of old connections that a scenario needs, if it needs any."""
    return {kind(scenario)} if scenario["age"] == "old" else set()


@dataclass
class Used:
    """The labs on which scenarios ran, and those scenarios whose old connections a lab has."""

    scenarios: Sequence[Scenario]
    rigs: list[Rig] = field(default_factory=list)


def dropped(side: Side) -> int:
    """Packets that the queueing disciplines of a port have dropped; none where tc cannot tell."""
    done = side.host.run(["tc", "-s", "-j", "qdisc", "show", "dev", side.dev], check=False)
    if done.rc != 0:
        return 0
    return sum(int(row.get("drops", 0)) for row in json.loads(done.text or "[]"))


def stand_of(rig: Rig, scenarios: Iterable[Scenario] = ()) -> tuple[Stand, bool]:
    """The stand of a lab, and whether it was made now: in a test's body, as switches may fail.

    `scenarios`: what will run there, so that its old connections are older than the first of them.
    """
    kept = vars(rig)
    if KEPT in kept:
        return kept[KEPT], False
    card = rig.profile.directions() if rig.kind != "veth" else ()
    wanted = Counter(itertools.chain.from_iterable(map(needed, scenarios)))
    stand = Stand(rig, life_of(rig), Switch(rig.bench.dut, card), Switch(rig.bench.peer), card, wanted)
    stand.begin()
    kept[KEPT] = stand
    return stand, True


def standing(rig: Rig, used: Used, contexts: Contexts, scenario: Scenario | None = None) -> Stand:
    """The stand of a test's lab, for a scenario; what it opens at its start stays, and is no leak of that
    test."""
    stand, new = stand_of(rig, used.scenarios)
    if new:
        used.rigs.append(rig)
    if stand.refill(scenario) or new:
        contexts.forget()
        contexts.begin()
    return stand


def ended(rig: Rig) -> None:
    """End the stand of a lab, if it has one."""
    if stand := vars(rig).pop(KEPT, None):
        stand.end()
