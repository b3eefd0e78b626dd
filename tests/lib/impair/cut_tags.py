"""Retransmissions that end inside a tag: records laid so that a segment ends there, and that segment lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.card.profile import Cell
from offload.errors import RigError
from offload.suite.traffic.drive import Part, Report, Sending
from offload.suite.traffic.impair import Box, Chosen
from tests.lib.flow.flow import Flow, Several, Traffic
from tests.lib.life.life import Life
from tests.lib.scenario.connections import OVERHEAD, Burst, Line, move, opened
from tests.lib.wire import raw
from tests.lib.wire.wire import Segment

TAG = 16
TURNS = range(1, TAG)  # bytes of the tag in the segment that is lost, each in turn
SIZE, REST = 700, 100  # payload of the record whose tag is cut, and of the last one
TURN = 1 << 32
TRIES = 5  # bursts for one byte: TCP holds a cork for 200 ms only, so a segment may end elsewhere


@dataclass(frozen=True)
class Cut:
    """One burst of four records; a segment ends after `turn` bytes of the third one's tag."""

    turn: int
    burst: Burst
    end: int  # bytes of the burst on the wire up to the cut


def cuts(mss: int) -> list[Cut]:
    """One burst for each byte of a tag: the second record is as long as it takes."""
    return [_cut(turn, mss) for turn in TURNS]


def _cut(turn: int, mss: int) -> Cut:
    # the first record ends in the second segment, so that what is sent again begins in a record's middle
    others = mss + 3 * OVERHEAD - TAG + SIZE + turn
    room = -others % mss or mss
    return Cut(turn, Burst(f"cut tag {turn}", (mss, room, SIZE, REST), cork=True), room + others)


@dataclass(frozen=True)
class Run:
    """A connection on which each cut segment was lost: what the ends said, and where the cuts were."""

    sent: raw.Sent
    trouble: str  # what is wrong with what arrived, or nothing
    ends: dict[int, int]  # offset in the stream -> bytes of the tag before it

    def proves(self, capture: Path, evidence: dict[str, Any]) -> dict[str, Any]:
        """Assert that every record is on the wire as it should be; the direction from the DUT."""
        sizes = Counter(size for part in self.sent.plan.parts for size in part.sizes)
        return raw.proves(capture, evidence, self.sent, sizes)


def sent(traffic: Traffic, life: Life, cell: Cell, box: Box) -> Run:
    """Send from the DUT; of each burst the segment that ends inside a tag is lost once."""
    before, ends, trouble = traffic.rig.counters(), dict[int, int](), ""
    line = opened(life, 1, cell)[0]
    try:
        for cut in cuts(line.pair.near.call("mss")["mss"]):
            ends |= lost(line, cut, box)
        line.pair.near.alert()
    except AssertionError as exc:
        trouble = str(exc) or "an assertion"
    life.close([line.pair], reset=bool(trouble))
    there = _report(line, trouble)
    flow = Flow(there, there, traffic.rig.counters() - before)
    return Run(raw.Sent(flow, "tx", line.port, keys(line), plan(line), 4), trouble, ends)


def lost(line: Line, cut: Cut, box: Box) -> dict[int, int]:
    """Send a burst until the segment that is lost ends at the cut: where each try had it, and the turn."""
    ends: dict[int, int] = {}
    for _ in range(TRIES):
        end = line.tracks["tx"].wire + cut.end
        ends[end] = cut.turn
        rule = box.add(Chosen("offset", end - 1, port=line.port))
        move([line], ["tx"], [cut.burst])
        hit = box.acted(rule)
        if hit.offset is not None and hit.offset + hit.length == end:
            break
    return ends


def keys(line: Line) -> Any:
    """Those of the client, which the DUT is, and of the server."""
    return line.tracks["tx"].key, line.tracks["rx"].key


def plan(line: Line) -> Several:
    """What the DUT was told to send."""
    return Several(tuple(Sending(burst.seed, burst.writes) for burst in line.tracks["tx"].bursts))


def _report(line: Line, trouble: str) -> Report:
    """What the receiver saw: each burst whole, or what was wrong."""
    whole = plan(line)
    taken = Part(0, "") if trouble else Part(whole.total, whole.sha256())
    return Report(Part(0, ""), taken, 0.0, trouble, "", None)


def again(run: Run, seen: Sequence[Segment]) -> list[int]:
    """After how many bytes of a tag a retransmission ended; RigError if TCP cut one elsewhere."""
    ours = [one for one in seen if one.source == run.sent.port]
    found, top = set[int](), 0
    for one in ours:
        end = (one.seq - ours[0].seq) % TURN + len(one.payload)
        if end <= top and end in run.ends:
            found.add(run.ends[end])
        top = max(top, end)
    if lacking := sorted(set(run.ends.values()) - found):
        raise RigError(f"no retransmission ended after these bytes of a tag: {lacking}")
    return sorted(found)
