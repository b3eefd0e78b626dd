"""What explains each frame between the ends of a capture? None may be left over, whatever a test asks.

TCP's own numbers say what a sender may send, so no keys are needed; with keys the records are judged too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from offload.errors import ConfigError
from offload.suite.report.captured import Captured, Code, Stray, denial
from offload.suite.wire.ask import Ask
from offload.suite.wire.capture import Frame, Reader
from offload.suite.wire.files import Bytes, mapped
from offload.suite.wire.packets import ACK, FRAGMENT, RST, Segment, network, parse
from offload.suite.wire.streams import MAX_AHEAD, Capture, Connection, Stream, Table, endpoint
from offload.suite.wire.verify import verify

TCP, ICMPS, EXTENSIONS = 6, frozenset({1, 58}), frozenset({0, 43, 44, 60})
OF_STREAMS = (Code.SECOND_SYN, Code.SECOND_FIN, Code.URGENT)
OF_RECORDS = (Code.CLEAR_RECORD, Code.CHANGE_CIPHER_SPEC)
Pair = tuple[bytes, bytes]


def explain(file: Path, keys: bytes = b"", also: Collection[int] = ()) -> Captured:
    """Explain every frame of a capture; `also`: protocols of IP that the test has on its wire besides TCP."""
    with mapped(file) as data:
        found = _Explainer(data, file, ICMPS | set(also))
        found.read()
    strays = [*found.strays, *found.left(), *_records(file, keys)]
    return Captured(found.frames, len(strays), tuple(strays))


def together(parts: Collection[Captured]) -> Captured:
    """Several captures of one test as one."""
    first = tuple(stray for part in parts for stray in part.first)
    return Captured(sum(p.frames for p in parts), sum(p.unexplained for p in parts), first)


def demand(found: Captured) -> None:
    """No frame is left over."""
    assert not found.unexplained, denial({"evidence": {"captured": found.evidence()}})


def _records(file: Path, keys: bytes) -> Iterator[Stray]:
    """Records that no sender makes, of the connections whose keys there are."""
    if not keys.strip():
        return
    for connection in verify(Ask(capture=file, keylog=keys))["connections"]:
        for problem in connection["problems"]:
            if problem["code"] in OF_RECORDS:
                ends = (connection["client"], connection["server"])
                ends = ends if problem["direction"] == "client" else ends[::-1]
                yield Stray(Code(problem["code"]), problem["at"], " > ".join(ends))


@dataclass
class _Explainer:
    """Goes through the frames in capture order; what is not explained is in `strays`."""

    data: Bytes
    file: Path
    known: Collection[int]
    frames: int = 0
    strays: list[Stray] = field(default_factory=list)
    others: dict[tuple[Pair, int, bool], int] = field(
        default_factory=dict
    )  # ends, protocol, fragment: a frame
    spoke: Counter[tuple[int, str]] = field(default_factory=Counter)  # connection, direction: frames but RST

    def read(self) -> None:
        reader = Reader(self.data, str(self.file))
        self.capture = Capture(self.file, {})
        table = Table(self.capture)
        for frame in reader:
            segment = parse(self.data, *frame[1:])
            if isinstance(segment, str):
                self._other(frame, segment)
            else:
                self._segment(table, frame[0], segment)
        self.frames = reader.count
        if reader.damaged:
            raise ConfigError(f"{self.file}: the capture is damaged behind frame {reader.count}")

    def _segment(self, table: Table, number: int, segment: Segment) -> None:
        """Give a segment to its connection; what has no place there, and no reason, is a stray."""
        connection = table.find(number, segment)
        if connection is None:
            return
        mine, other = connection.sides(segment.source)
        if segment.flags & ACK:
            other.acknowledge(segment.acknowledged)
        strange = mine.strange
        added = mine.add(number, segment, self.data)
        self.spoke[connection.index, mine.direction] += not segment.flags & RST
        nowhere = mine.strange > strange or segment.flags & RST
        if not added and segment.size and nowhere and not _older(mine, segment):
            self.strays.append(Stray(Code.STRAY_DATA, number, _between(segment)))

    def _other(self, frame: Frame, kind: str) -> None:
        """Remember an IP packet that is no segment, by its ends: it may be between those of a connection."""
        number, link, start, captured, _ = frame
        at, version = network(self.data, link, start, start + captured)
        size, first = {4: (20, 12), 6: (40, 8)}.get(version, (0, 0))
        if not size or at + size > start + captured:
            return
        half = (size - first) // 2
        low, high = sorted(
            (self.data[at + first : at + first + half], self.data[at + first + half : at + size])
        )
        protocol = self.data[at + 9] if version == 4 else self.data[at + 6]
        self.others.setdefault(((low, high), protocol, kind == FRAGMENT), number)

    def left(self) -> Iterator[Stray]:
        """Yield what only the whole capture tells."""
        ends = set[Pair]()
        for connection in self.capture.connections:
            low, high = sorted(end[:-2] for end in connection.ends)
            ends.add((low, high))
            for mine, other in (connection.streams, connection.streams[::-1]):
                yield from self._stream(connection, mine, other)
        for (pair, protocol, fragment), number in self.others.items():
            if pair in ends and (fragment or protocol not in self.known):
                code = Code.UNREAD_TCP if protocol == TCP or protocol in EXTENSIONS else Code.PROTOCOL
                yield Stray(code, number, f"protocol {protocol}")

    def _stream(self, connection: Connection, mine: Stream, other: Stream) -> Iterator[Stray]:
        ends = (connection.client, connection.server)
        ends_of = " > ".join(ends if mine is connection.from_client else ends[::-1])
        for problem in mine.problems:
            if problem.code in OF_STREAMS:
                yield Stray(Code(problem.code), problem.at, ends_of)
        if mine.reach and not _opened(mine) and not self.spoke[connection.index, other.direction]:
            yield Stray(Code.LONE_DATA, connection.first_frame, ends_of)


def _opened(stream: Stream) -> bool:
    return stream.base is not None and all(problem.code != "no-syn" for problem in stream.problems)


def _older(stream: Stream, segment: Segment) -> bool:
    """Whether a connection is older than the capture, and this was sent before its first captured segment."""
    behind = ((stream.base or 0) - segment.sequence) & 0xFFFFFFFF
    return not _opened(stream) and behind < MAX_AHEAD and not segment.flags & RST


def _between(segment: Segment) -> str:
    return f"{endpoint(segment.source)} > {endpoint(segment.target)}"
