"""Does what was seen of a scenario keep every invariant, and were its conditions met?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.lib.life.many_connections import PIECE
from tests.lib.scenario import frames, layout, setting
from tests.lib.scenario.connections import READS, Line
from tests.lib.scenario.events import SOFTWARE
from tests.lib.scenario.frames import Frame
from tests.lib.scenario.play import CALM, DIRECTIONS, Notes
from tests.lib.scenario.space import Scenario
from tests.lib.scenario.troubles import UNTRIED
from tests.lib.scenario.verdict import invariants
from tests.lib.scenario.verdict.blame import Unseen
from tests.lib.scenario.verdict.invariants import Bounds, Facts
from tests.lib.scenario.wire import Shown, proven, talked
from tests.lib.wire.above import Packet, packets, stayed
from tests.lib.wire.captures import HOST
from tests.lib.wire.records_trace import Share

MANY = {"many-in-frame": 3, "hundreds-in-tso": 200}  # records that begin in one frame, or packet
BEHIND = "v6-extension"  # a card that receives it need not find TCP behind it; all else must hold
DROPS = ("carrier", "link-down", "rings", "channels")  # what waits in a queue is lost in it


@dataclass
class Seen:
    """What a scenario left."""

    scenario: Scenario
    lines: Sequence[Line]
    notes: Notes
    before: Facts
    after: Facts
    files: dict[str, Path]
    hardware: tuple[str, ...]  # directions in which the card does it
    cuts: bool = True  # there is a card that cuts packets (TSO)
    by_card: Share | None = None  # what the kernel took as decrypted by the card, if it says
    no_bytes: frozenset[str] = frozenset()  # directions in which the card counts packets only
    readings: dict[str, frozenset[str]] = field(default_factory=dict)  # of a packet's bytes, by direction
    no_resync: tuple[str, ...] = ()  # conditions in which what is received finds no place again

    @property
    def directions(self) -> tuple[str, ...]:
        """The directions in which payload moved."""
        return DIRECTIONS[self.scenario["direction"]]

    @property
    def software(self) -> frozenset[str]:
        """The directions that a former event has made software's on some of the old connections."""
        return frozenset().union(*(line.software for line in self.lines))

    @property
    def stays(self) -> tuple[str, ...]:
        """The directions in which the card is known to leave to software what once lost its place."""
        known = {f"{name}={value}" for name, value in self.scenario.values}
        return ("rx",) if known.intersection(self.no_resync) else self.unasked

    @property
    def unasked(self) -> tuple[str, ...]:
        """The directions in which no profile says whether the card does anything under these conditions."""
        return ("rx",) if self.scenario["ip"] == BEHIND else ()

    @property
    def old(self) -> bool:
        """Whether the connections are older than the scenario."""
        return self.scenario["age"] == "old"

    @property
    def everyone(self) -> list[Line]:
        """The connections of the scenario and those that its event opened."""
        return [*self.lines, *self.notes.opened]

    @cached_property
    def frames(self) -> list[Frame]:
        """What was on the wire beyond the card."""
        return frames.read(self.files["wire"], frozenset(line.port for line in self.everyone))

    @cached_property
    def handed(self) -> dict[int, list[Packet]]:
        """What TCP handed to the card and says of congestion, by port; nothing where nobody speaks of it."""
        return packets(self.files[HOST]) if self.scenario["trouble"] == "ce-mark" else {}

    @cached_property
    def shown(self) -> dict[int, Shown]:
        """What the wire proves of each connection, by port; Unseen only if no other is wrong."""
        found: dict[int, Shown] = {}
        unseen: list[Unseen] = []
        there = talked(self.files["wire"], {line.port for line in self.everyone})
        for line in self.everyone:
            forged = self.notes.forged and line is self.notes.victim
            directions = ("tx",) if forged else ("tx", "rx")
            try:
                found[line.port] = proven(there, line, directions, old=line.old)
            except Unseen as exc:
                unseen.append(exc)
        if unseen:
            raise unseen[0]
        return found


def rest(seen: Seen) -> None:
    """Headers, counters, contexts, checksums."""
    for line in seen.everyone:
        begin = seen.shown[line.port].base["tx"]
        assert not (said := frames.wrong(seen.frames, line.port, heads(seen, line), begin)), said
    assert not (said := _beyond(seen) or _kept_back(seen)), said
    noise = {direction: int(seen.scenario["trouble"] == "noise") for direction in seen.directions}
    invariants.checksums(seen.before, seen.after, noise)
    moved = seen.after.counters - seen.before.counters
    assert not (unheard := _unheard(seen, "rx")), unheard
    count = sum(not line.old for line in seen.everyone)
    invariants.taken_over(moved, count, seen.hardware)
    untried = seen.scenario["trouble"] == UNTRIED
    invariants.errors(moved, seen.notes.forged, seen.scenario["call"] == "peek", untried)
    if seen.scenario["event"] not in DROPS:
        invariants.placed(moved, _lost(seen, seen.lines))
    if not seen.hardware:
        invariants.untouched(moved)
    for direction in set(seen.directions) & set(seen.hardware):
        allowed = seen.readings.get(direction, invariants.READINGS)
        fits = invariants.counted(moved, direction, bounds(seen, direction), "in all", allowed)
        seen.readings[direction] = fits
    calm(seen)


def heads(seen: Seen, line: Line) -> frames.Headers:
    """What the headers of a connection must be; one that the event opened is plain, and of IPv4."""
    want = setting.headers(seen.scenario)
    want = replace(want, packets=tuple(seen.handed.get(line.port, ())))
    if line not in seen.lines:
        return replace(want, tos=0, options=b"", label=False)
    return replace(want, lossy=seen.notes.lossy) if line is seen.notes.victim else want


def _beyond(seen: Seen) -> str:
    """What the card sent of its own on a connection.

    TCP counts all that it sends, also what it sends again: there is no more of it on the wire. IPv6 numbers
    no packets, so `frames.wrong` does not see there what a card sends more than once.
    """
    for line in (line for line in seen.lines if line.port in seen.notes.sent):
        there, sent = _there(seen, line), seen.notes.sent[line.port]
        if there > sent:
            said = f"{there} bytes of payload left the card, more than once what TCP sent: {sent}"
            return f"port {line.port} of the DUT: {said}"
    return ""


def _kept_back(seen: Seen) -> str:
    """What TCP still needed, and the card did not send; on the victim an event may be why."""
    if HOST not in seen.files:
        return ""
    bases = {line.port: seen.shown[line.port].base["tx"] for line in seen.everyone}
    return stayed(seen.files[HOST], seen.files["wire"], bases, {seen.notes.victim.port: seen.notes.lossy})


def _there(seen: Seen, line: Line, direction: str = "tx") -> int:
    """Payload that the wire showed of a connection of the DUT, as far as it went before the end."""
    ours = [f for f in seen.frames if (f.source if direction == "tx" else f.target) == line.port]
    base, end = seen.shown[line.port].base[direction], layout.begins(line.tracks[direction])[-1]
    return frames.payload(ours, base, end)


def _unread(seen: Seen) -> int:
    """Payload to the DUT that its kernel may not have read as records: each end, and all behind a forgery."""
    found = 0
    for line in seen.everyone:
        broken = seen.notes.forged and line is seen.notes.victim
        all_ = sum(len(frame.payload) for frame in seen.frames if frame.target == line.port)
        found += all_ - (0 if broken else _there(seen, line, "rx"))
    return found


def bounds(seen: Seen, direction: str) -> Bounds:
    """What the card has to have done of a direction at least, and at most."""
    ports = {line.port for line in seen.everyone}
    data = [f for f in seen.frames if f.data and (f.source if direction == "tx" else f.target) in ports]
    sizes, heads = [len(frame.payload) for frame in data] or [0], [frame.head for frame in data] or [0]
    losing = setting.losing(seen.scenario)
    lost = _lost(seen, seen.everyone) if direction == "tx" and losing else 0
    least, most = _least(seen, direction), sum(sizes) + lost
    if direction == "rx" and not losing and seen.by_card and seen.by_card.touched is not None:
        most = min(most, seen.by_card.touched + _unread(seen))
    few, many = -(-least // max(max(sizes), 1)), len(data) + min(len(data), -(-lost // max(min(sizes), 1)))
    return Bounds(least, most, (min(heads), max(heads)), (few, many) if direction in seen.no_bytes else None)


def _lost(seen: Seen, lines: Sequence[Line]) -> int:
    """The most that got lost between card and wire: what TCP sent, and the wire did not show.

    A connection whose TCP was not asked has lost no more than the wire showed of it.
    """
    asked = [line for line in lines if line.port in seen.notes.sent]
    others = {line.port for line in lines} - {line.port for line in asked}
    lost = sum(seen.notes.sent[line.port] - _there(seen, line) for line in asked)
    return lost + sum(len(frame.payload) for frame in seen.frames if frame.source in others)


def _least(seen: Seen, direction: str) -> int:
    """All of what was sent; of what came, what came without impairment, and what the kernel says was done."""
    software = direction in seen.unasked or (direction in (*seen.software, *seen.stays) and seen.old)
    if direction == "rx":
        whole = seen.by_card.whole if seen.by_card else 0
        return max(0 if software else round(invariants.MOST * _fair(seen)), whole)
    if software:
        return 0
    if direction in SOFTWARE.get(seen.scenario["event"], ()):
        return seen.notes.before_event
    return sum(shown.direction("tx")["bytes"] for shown in seen.shown.values())


def _fair(seen: Seen) -> int:
    """Payload to the DUT that came without impairment: all of it, or that of the start if trouble came."""
    quiet = seen.scenario["trouble"] == "none" and seen.scenario["event"] in setting.QUIET
    if not quiet or seen.scenario["tcp"] == "sack-live":  # whose hole is a lost frame
        return seen.notes.fair
    return sum(len(line.tracks["rx"].content()) for line in seen.lines)


def calm(seen: Seen) -> None:
    """Once trouble and event are over, the card does it all again; but what is software's stays so.

    Where its profile says that there is no resync, `_least` alone judges: a scenario without trouble.
    """
    if seen.notes.calm is None:
        return
    for direction in set(seen.directions) & set(seen.hardware):
        gone = (*SOFTWARE.get(seen.scenario["event"], ()), *seen.stays)
        if direction in gone or (seen.old and direction in seen.software):
            continue
        share = invariants.MOST if direction == "rx" else 1
        done = seen.notes.calm.get(invariants.BYTES[direction], 0) or 0
        wanted = round(share * CALM.total)
        assert done >= wanted, (
            f"not resynchronized: {direction} did {done} of {CALM.total} bytes of the calm phase"
        )


def not_met(seen: Seen) -> dict[str, str]:
    """The dimensions whose value was not really met, and what was seen instead."""
    found = dict(seen.notes.missed)
    if (place := seen.scenario["place"]) != "plain" and (words := _place(seen, place)):
        found["place"] = words
    if seen.scenario["number"] != "0" and (words := _number(seen)):
        found["number"] = words
    if seen.scenario["ip"] != "v4" and (words := _header(seen)):
        found["ip"] = words
    if words := _unheard(seen, "tx"):
        found["trouble"] = words
    if seen.scenario["call"] != "write" and (words := _called(seen)):
        found["call"] = words
    if seen.scenario["tcp"] == "sack-live" and not any(
        f.data and f.source == seen.notes.victim.port and frames.SACK in f.kinds for f in seen.frames
    ):
        found["tcp"] = "no data packet of the DUT carried a SACK block"
    return found


def _header(seen: Seen) -> str:
    """Why what the DUT received had not the header that was wanted; of what it sent, see `frames.wrong`."""
    want, port = setting.headers(seen.scenario), seen.notes.victim.port
    for frame in (frame for frame in seen.frames if frame.data and frame.target == port):
        has = (frame.tos & ~frames.ECN, frame.options, bool(frame.label))
        if has != (want.tos, want.options, want.label):
            return f"frame {frame.number} to the DUT has another IP header"
    return ""


def _unheard(seen: Seen, direction: str) -> str:
    """Why a mark was not heard: its receiver must say so."""
    if (
        seen.scenario["trouble"] != "ce-mark"
        or direction not in seen.directions
        or "trouble" in seen.notes.missed
    ):
        return ""
    victim = seen.notes.victim.port
    ends = [f for f in seen.frames if victim in (f.source, f.target)]
    from_dut = [frame for frame in ends if (frame.source == victim) == (direction == "rx")]
    heard = any(frame.flags & frames.ECE and not frame.flags & frames.SYN for frame in from_dut)
    who = "the DUT" if direction == "rx" else "the peer"
    return "" if heard else f"{who} met a congestion mark and did not echo it"


def _called(seen: Seen) -> str:
    """Why the DUT's records did not come by the calls that were wanted."""
    line, call = seen.notes.victim, seen.scenario["call"]
    if call in READS:
        least = [2 if call == "peek" else -(-size // PIECE) for size, _ in line.reads]
        few = any(calls < wanted for (_, calls), wanted in zip(line.reads, least, strict=True))
        said = f"the DUT's calls for the bytes of each burst: {line.reads}"
        return said if few or max(least, default=0) < 2 else ""
    more = call == "more"
    if not line.calls or any(calls < records + more for records, calls in line.calls):
        return f"the DUT's calls for the records of each burst: {line.calls}"
    there, wanted = seen.shown[line.port].direction("tx")["app_records"], line.tracks["tx"].records
    return "" if there == wanted else f"{wanted} records were written and {there} were sent"


def _number(seen: Seen) -> str:
    """Why the number of a record was not carried over."""
    carry = 1 << int(seen.scenario["number"].removeprefix("2^"))
    for direction in seen.directions:
        track = seen.notes.victim.tracks[direction]
        if not track.number < carry < track.number + track.records:
            return f"{direction}: records {track.number} to {track.number + track.records}"
    return ""


def _place(seen: Seen, place: str) -> str:
    """Why the records did not lie as they should have."""
    if place == "hundreds-in-tso" and not seen.cuts:
        return "no card here cuts packets, so TCP makes none of 64 KiB"
    directions = ["tx"] if place == "hundreds-in-tso" else seen.directions
    for direction in directions:
        first, last = seen.notes.placed[direction]
        starts = layout.begins(seen.notes.victim.tracks[direction])[first : last + 1]
        cut = _cuts(seen, direction, HOST if place == "hundreds-in-tso" else "wire")
        if place in layout.CUTS:
            found = layout.where(cut, starts, place)
            if lacking := sorted(set(layout.CUTS[place]) - found):
                return f"{direction}: no segment ended after byte {', '.join(map(str, lacking))}"
        elif (most := _together(cut, starts)) < MANY[place]:
            return f"{direction}: at most {most} records began in one packet, {MANY[place]} were wanted"
    return ""


def _cuts(seen: Seen, direction: str, tap: str) -> set[int]:
    """Where segments of the victim begin in its stream, at a tap."""
    port = seen.notes.victim.port
    here = seen.frames if tap == "wire" else frames.read(seen.files[tap], frozenset({port}))
    source, target = (port, None) if direction == "tx" else (None, port)
    return frames.cuts(here, source, target, seen.shown[port].base[direction])


def _together(cut: set[int], starts: list[int]) -> int:
    """The most records that begin in one segment."""
    edges, most = sorted(cut), 0
    for begin, end in zip(edges, [*edges[1:], starts[-1]], strict=True):
        most = max(most, sum(begin <= at < end for at in starts[:-1]))
    return most


def evidence(seen: Seen) -> dict[str, Any]:
    """What the report keeps of it."""
    moved = seen.after.counters - seen.before.counters
    return {
        "counters": {name: n for name, n in moved.nonzero().items() if "tls" in name.lower()},
        **({} if seen.by_card is None else {"kernel_decrypted_by_card": seen.by_card.whole}),
        "bytes": sum(
            len(line.tracks[direction].content()) for line in seen.everyone for direction in ("tx", "rx")
        ),
        "wire": {
            "proof": "B",
            "outcome": "equal",
            "engine": "python",
            "records": sum(
                s.direction(direction)["app_records"]
                for s in seen.shown.values()
                for direction in ("tx", "rx")
            ),
            "bytes": sum(
                s.direction(direction)["payload_bytes"]
                for s in seen.shown.values()
                for direction in ("tx", "rx")
            ),
            "difference": "",
        },
    }
