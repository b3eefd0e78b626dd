"""What moves in a scenario, in order: a start on all connections, trouble and event on one, a calm."""

from __future__ import annotations

import hashlib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from socket import SOL_SOCKET
from typing import Any

from offload.card.counters import Delta
from tests.lib.scenario import events, layout, setting, troubles
from tests.lib.scenario.connections import (
    BUFFER,
    FULL,
    Burst,
    Line,
    move,
    obeyed,
    option,
    sent,
    turn,
)
from tests.lib.scenario.space import Scenario
from tests.lib.scenario.troubles import FORGED, UNTRIED, Troubled

CALM = Burst("calm", (FULL,) * 6)
WIDER = 8  # bursts at most until hundreds of records fit into TCP's window
SO_MAX_PACING_RATE = 47  # include/uapi/asm-generic/socket.h
SLOW, FAST = 4_000, (1 << 31) - 1  # bytes a second
HOLE = Burst("behind a hole", (1000,) * 4)
DIRECTIONS = {"tx": ("tx",), "rx": ("rx",), "both": ("tx", "rx")}


@dataclass
class Notes:
    """What a play leaves for the judge."""

    victim: Line  # the connection that trouble and event are for
    opened: list[Line]  # by the event
    fair: int = 0  # payload of the start to the DUT
    before_event: int = 0  # payload of the DUT until the event
    lossy: tuple[int, int] = (0, 0)  # where in the victim's stream the event may lose frames before the wire
    calm: Delta | None = None  # the counters' way in the calm
    forged: bool = False
    placed: dict[str, tuple[int, int]] = field(default_factory=dict)  # first and last record of the burst
    missed: dict[str, str] = field(default_factory=dict)  # dimension: what was not met
    sent: dict[int, int] = field(default_factory=dict)  # bytes that the DUT's TCP sent in all, by port


class Play:
    """Runs a scenario on connections that are open. AssertionError as soon as something arrives wrong."""

    def __init__(
        self,
        stage: events.Stage,
        scenario: Scenario,
        lines: Sequence[Line],
        wire: Troubled | None,
    ) -> None:
        self.stage, self.scenario, self.lines, self.wire = stage, scenario, lines, wire
        self.victim = stage.line
        self.directions = DIRECTIONS[scenario["direction"]]
        self.notes = Notes(self.victim, stage.made)

    def run(self) -> None:
        """Run it to the end."""
        self._all("start")
        self.notes.fair = sum(len(line.tracks["rx"].content()) for line in self.lines)
        first, second = self._event, self._trouble
        if not self.scenario["trouble"].startswith(FORGED) and self.scenario.seed % 2:
            first, second = second, first
        first()
        second()
        if self.wire is not None:
            for words in self.wire.missed():
                self.notes.missed["trouble"] = words
            self.wire.box.clear()
        self._calm()
        alive = [line for line in self.lines if not (self.notes.forged and line is self.victim)]
        self.notes.sent = {
            line.port: all_ - line.before for line, all_ in zip(alive, sent(alive), strict=True)
        }

    def _all(self, name: str) -> None:
        """One burst on every connection, in turns."""
        lines = [line for line in self.lines if not (self.notes.forged and line is self.victim)]
        many = len(self.lines) > layout.MANY
        bursts = [
            layout.small(self.scenario, f"{name} {n}")
            if many and line is not self.victim
            else layout.ordinary(self.scenario, f"{name} {n}", len(self.lines))
            for n, line in enumerate(lines)
        ]
        if lines:
            move(lines, self.directions, bursts)

    def _event(self) -> None:
        """The event of the scenario while bytes move."""
        self.notes.before_event = sum(len(line.tracks["tx"].content()) for line in self.lines)
        event, track = self.scenario["event"], self.victim.tracks["tx"]
        begin = track.wire
        if event != "none" and (
            words := events.between(self.stage, event, self.directions, self.scenario.seed)
        ):
            self.notes.missed["event"] = words
        if setting.losing(self.scenario):
            self.notes.lossy = begin, track.wire

    def _trouble(self) -> None:
        """The bursts that lie as the scenario says, and the trouble in them."""
        if self.scenario["place"] == "hundreds-in-tso":
            self._widen()
        bursts = {direction: self._placed(direction) for direction in self.directions}
        if self.scenario["trouble"].startswith(FORGED):
            if self.scenario["trouble"] == layout.RESYNC:
                self._out_of_step()
            self._forged(bursts["rx"])
        elif self.scenario["tcp"] == "sack-live":
            self._behind_a_hole(bursts)
        else:
            for direction in self.directions:
                self._rules(direction, bursts[direction])
            self._sent(bursts)

    def _sent(self, bursts: Mapping[str, Sequence[Burst]]) -> None:
        """Send bursts in order, both directions at once where that is possible."""
        rows = itertools.zip_longest(*bursts.values())
        turns = [{d: one for d, one in zip(bursts, row, strict=True) if one} for row in rows]
        apart = self._struck(bursts) if len(bursts) > 1 else set()
        for number, now in enumerate(turns):
            if self.scenario["place"] in layout.CUTS:
                turn(self.victim, now, apart=number in apart)
            else:
                self._moved(now)

    def _struck(self, bursts: Mapping[str, Sequence[Burst]]) -> set[int]:
        """The bursts that trouble meets and whose records must be cut at a byte: one direction at a time.

        Behind a hole in what the other end sends, SACK blocks take 12 bytes of each segment, and the cut
        would lie elsewhere.
        """
        if self.scenario["place"] not in layout.CUTS or self.scenario["trouble"] == "none":
            return set()
        found = (
            troubles.struck(self.scenario, self.victim.tracks[direction], several)
            for direction, several in bursts.items()
        )
        return set(found)

    def _widen(self) -> None:
        """Send until TCP may have hundreds of records in flight at once.

        Once is not enough on a busy host: where delays vary, slow start ends early (HyStart, tcp_cubic.c). On
        an old connection it ended long ago. A lost frame takes up to half of the window, so trouble needs
        twice the room.
        """
        wanted = layout.hundreds(self.scenario) * (1 + (self.scenario["trouble"] != "none"))
        for _ in range(WIDER):
            move([self.victim], ["tx"], [CALM])
            now = self.victim.source("tx").call("mss")
            if now["mss"] * now["window"] >= wanted:
                return

    def _placed(self, direction: str) -> list[Burst]:
        mss = self.victim.source(direction).call("mss")["mss"]
        if self.scenario["tcp"] == "sack-live" and direction == "tx":
            mss -= 12  # one SACK block and two bytes before it (RFC 2018 section 3)
        return layout.placed(self.scenario, f"placed {direction}", mss)

    def _rules(self, direction: str, bursts: Sequence[Burst]) -> None:
        """What the wire must meet in the bursts that come next, and which records they are."""
        first = self.victim.tracks[direction].records
        self.notes.placed[direction] = (first, first + sum(len(burst.writes) for burst in bursts))
        if self.wire is not None and bursts and self.scenario["trouble"] != "none":
            for rule, times in troubles.rules(self.scenario, self.victim, direction, bursts):
                self.wire.add(rule, times)

    def _moved(self, bursts: Mapping[str, Burst]) -> None:
        """Send them, both ends at the same time if they fit into the buffers."""
        together = max(burst.total for burst in bursts.values()) <= BUFFER
        for directions in [list(bursts)] if together else [[direction] for direction in bursts]:
            with self._held_back(directions):
                asked = {
                    direction: self.victim.send(direction, bursts[direction]) for direction in directions
                }
                if "tx" in directions:
                    self.victim.pair.near.connections.answer(asked["tx"])
            took = {
                direction: self.victim.sink(direction).begin("take", size=bursts[direction].total)
                for direction in directions
            }
            for direction in directions:
                self.victim.whole(direction, bursts[direction], asked[direction], took[direction])

    @contextmanager
    def _held_back(self, directions: Sequence[str]) -> Iterator[None]:
        """Hold the DUT's packets back while it writes, where hundreds of records must lie in one.

        The long record before them leaves at once, and the next packet as much later as this pace demands.
        """
        paced = self.scenario["place"] == "hundreds-in-tso" and "tx" in directions
        if paced:
            obeyed([option([self.victim], SOL_SOCKET, SO_MAX_PACING_RATE, SLOW)])
        yield
        if paced:
            obeyed([option([self.victim], SOL_SOCKET, SO_MAX_PACING_RATE, FAST)])

    def _behind_a_hole(self, bursts: Mapping[str, Sequence[Burst]]) -> None:
        """Send while a segment to the DUT is missing: each data packet says by SACK what came behind it."""
        assert self.wire is not None
        number = self.wire.add(troubles.hole(self.victim), 1)
        asked = self.victim.send("rx", HOLE)
        self.wire.box.acted(number)
        self._rules("tx", bursts["tx"])
        self._sent({"tx": bursts["tx"]})
        self._later()
        took = self.victim.sink("rx").begin("take", size=HOLE.total)
        self.victim.whole("rx", HOLE, asked, took)
        self._rules("rx", bursts.get("rx", []))
        self._sent({"rx": bursts.get("rx", [])})

    def _later(self) -> None:
        """What the wire had to meet has been sent: let the hole be filled."""
        assert self.wire is not None
        for words in self.wire.missed():
            self.notes.missed["trouble"] = words
        self.wire.box.clear()

    def _out_of_step(self) -> None:
        """Lose the header of a record, and wait until all has come: the card has lost its place, and asks."""
        assert self.wire is not None
        burst = Burst(f"{self.scenario.seed} out of step", tuple(layout.records(self.scenario)))
        lost = self.scenario.having("trouble", "lost-header")
        for rule, times in troubles.rules(lost, self.victim, "rx", [burst]):
            self.wire.add(rule, times)
        self._moved({"rx": burst})

    def _forged(self, bursts: Sequence[Burst]) -> None:
        """Assert that the DUT takes what comes before the altered record, nothing of it, and says why."""
        rest = layout.spot(self.scenario, self.victim.tracks["rx"], bursts).before
        self._rules("rx", bursts)
        self.notes.forged = True
        before = list(itertools.takewhile(lambda n: n <= rest, itertools.accumulate(b.total for b in bursts)))
        self._sent({"rx": bursts[: len(before)]})
        for burst in bursts[len(before) : len(before) + 1]:
            self.victim.send("rx", burst)
            seen = self.victim.sink("rx").take(burst.total)
            says = "EINVAL" if self.scenario["trouble"] == UNTRIED else "EBADMSG"
            refused(seen, burst, rest - (before[-1] if before else 0), says)

    def _calm(self) -> None:
        """Recovery, then a calm whose bytes are counted; then every connection once more."""
        if not self.notes.forged:
            move([self.victim], self.directions, [CALM])
            before = self.stage.rig.counters()
            move([self.victim], self.directions, [CALM])
            self.notes.calm = self.stage.rig.counters() - before
        if len(self.lines) > 1:
            self._all("end")


def refused(seen: Mapping[str, Any], burst: Burst, whole: int, says: str) -> None:
    """The receiver took this many bytes of a burst, right ones, and said by this error that what follows is
    not authentic."""
    more = seen["bytes"] - whole
    assert more <= 0, f"{more} bytes of an altered record, or behind it, were delivered"
    assert seen["error"] == says, f"the receiver ended with {seen['error'] or 'no error'}"
    right = hashlib.sha256(burst.content()[: seen["bytes"]]).hexdigest()
    assert not more and seen["sha256"] == right, f"{-more} of {whole} bytes before the altered record lack"
