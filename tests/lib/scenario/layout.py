"""How a scenario's payload is written: the records of each burst, and where they begin in the stream."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from tests.lib.scenario.connections import BUFFER, FULL, OVERHEAD, Burst, Track
from tests.lib.scenario.space import Scenario

KIB = 1024
SHARE = 32 * KIB  # bytes of payload of a burst, or at least ...
LEAST, MOST = 4, 48  # ... this many records, and at most this many
EACH = 3  # ... or that many on each of many connections: a number carries at the third record
BEFORE = 2  # records before the carry
NUMBERS = {"0": 0, "2^8": 1 << 8, "2^16": 1 << 16, "2^32": 1 << 32}
HUNDREDS = "hundreds-in-tso"
PACKED = {"many-in-frame": 120, HUNDREDS: 600}  # records in a row that are held back to lie together
TOGETHER = 300  # records that must fit into the window of TCP, so that one packet has 200 of them
CUTS = {"header-cut": range(1, 6), "tag-cut": range(17)}  # bytes before the cut
TAG = 16
RESYNC = "forged-resync"
MANY, SMALL = 100, 400  # connections from which on all but one send this many bytes at most


def first_number(scenario: Scenario) -> int:
    """The number of the first record of its connections."""
    return max(0, NUMBERS[scenario["number"]] - BEFORE)


def sizes(scenario: Scenario, count: int) -> list[int]:
    """The payload of this many records in a row."""
    dice = random.Random(f"{scenario.seed} sizes")
    if scenario["record"] == "mixed":
        return [dice.randint(1, FULL) >> dice.randint(0, 10) or 1 for _ in range(count)]
    return [segment(scenario) if scenario["record"] == "segment" else int(scenario["record"])] * count


def segment(scenario: Scenario) -> int:
    """The payload of a record that fills a segment."""
    version = 40 if scenario["ip"].startswith("v6") else 20
    ip = {"v4-options": 24, "v6-extension": 48}.get(scenario["ip"], version)
    tcp = {"bare": 20, "sack-live": 44}.get(scenario["tcp"], 32)
    return int(scenario["mtu"]) - ip - tcp - OVERHEAD


def records(scenario: Scenario, share: int = SHARE, most: int = MOST) -> list[int]:
    """The records of a burst of about this share, at most `most`."""
    one = sizes(scenario, most)
    count = max(1, sum(sum(one[: n + 1]) <= share for n in range(most)))
    return one[: max(count, LEAST if share == SHARE else 1)]


def ordinary(scenario: Scenario, name: str, among: int) -> Burst:
    """What one of so many connections sends in its turn: its part of one connection's bytes and records.

    More connections mean more turns between them, not more records in each turn. A record that is longer than
    the part of the bytes comes alone.
    """
    share, most = BUFFER // max(among, 2), max(EACH, MOST // among)
    return Burst(f"{scenario.seed} {name}", tuple(records(scenario, share, most)))


def small(scenario: Scenario, name: str) -> Burst:
    """Return what one of many connections sends: a record that is no longer than its number asks for."""
    return Burst(f"{scenario.seed} {name}", (min(sizes(scenario, 1)[0], SMALL),))


def placed(scenario: Scenario, name: str, mss: int) -> list[Burst]:
    """Bursts whose records lie as the scenario says; `mss`: bytes of payload in a segment."""
    place, name = scenario["place"], f"{scenario.seed} {name}"
    if place in CUTS:
        return [Burst(f"{name} {n}", writes, cork=True) for n, writes in enumerate(cut(scenario, mss))]
    if place in PACKED:
        ahead = (min(hundreds(scenario), FULL),) if place == HUNDREDS else ()
        return [Burst(name, (*ahead, *sizes(scenario, PACKED[place])), cork=True)]
    return [Burst(name, tuple(records(scenario)))]


def hundreds(scenario: Scenario) -> int:
    """Bytes that TCP must be able to have in flight, so that hundreds of records can be one packet.

    A record of as many goes before them: paced, TCP waits after it until the others are written.
    """
    return sum(sizes(scenario, TOGETHER)) + OVERHEAD * TOGETHER


def cut(scenario: Scenario, mss: int) -> list[tuple[int, ...]]:
    """Three records of which the second is cut after byte 1, 2, ... of its header or tag, for each byte.

    The first is as long as it takes: a burst is held back, so its segments begin at multiples of `mss`.
    The seed says which byte is the last one: that record is forged, where one is (`spot`).
    """
    turns = list(CUTS[scenario["place"]])
    first = random.Random(f"{scenario.seed} turns").randrange(len(turns))
    turns = turns[first:] + turns[:first]
    found = []
    for size, turn in zip(sizes(scenario, len(turns)), turns, strict=True):
        before = turn if scenario["place"] == "header-cut" else OVERHEAD - TAG + size + turn
        room = (-(OVERHEAD + before)) % mss
        found.append((room if 0 < room <= FULL else room + mss, size, 100))
    return found


def begins(track: Track) -> list[int]:
    """Where each record of a direction begins, from the start of this scenario; and where the last ends."""
    found = [0]
    for burst in track.bursts:
        for size in burst.writes:
            found.append(found[-1] + size + OVERHEAD)
    return found


@dataclass(frozen=True)
class Spot:
    """A record in the stream of a connection: where it begins and ends, header and tag included."""

    begin: int
    end: int
    before: int  # bytes of the burst's payload before it


def spot(scenario: Scenario, track: Track, bursts: Sequence[Burst]) -> Spot:
    """A record in the middle of what comes next, by the seed: where trouble strikes."""
    dice = random.Random(f"{scenario.seed} spot")
    writes = [size for burst in bursts for size in burst.writes]
    if scenario["place"] in CUTS:
        last = scenario["trouble"].startswith("forged-")  # nothing comes behind it: all others were before
        number = 3 * (len(bursts) - 1 if last else dice.randrange(len(bursts))) + 1  # one that is cut
    else:
        most = max(writes[1:] or writes)  # the first may only be there to hold the others back
        inner = [n for n, size in enumerate(writes) if size == most and 0 < n < len(writes) - 1]
        near = scenario["trouble"] == RESYNC  # the first records after it
        number = inner[0] if inner and near else dice.choice(inner or [len(writes) // 2])
    begin = track.wire + sum(writes[:number]) + OVERHEAD * number
    return Spot(begin, begin + writes[number] + OVERHEAD, sum(writes[:number]))


def where(seen: set[int], starts: list[int], place: str) -> set[int]:
    """After which bytes of a header (or of a tag) a segment ended, of the segments that begin at `seen`."""
    found: set[int] = set()
    for begin, end in zip(starts, starts[1:], strict=False):
        for turn in CUTS[place]:
            if (begin if place == "header-cut" else end - TAG) + turn in seen:
                found.add(turn)
    return found
