"""Which TCP connections are in a capture, and what did each side send? Every overlap is compared."""

from __future__ import annotations

import socket
from array import array
from dataclasses import dataclass, field
from pathlib import Path

from offload.errors import ConfigError
from offload.suite.wire.capture import Reader
from offload.suite.wire.files import Bytes, mapped
from offload.suite.wire.packets import ACK, BAD_CHECKSUM, FIN, RST, SYN, URG, Segment, parse, unread
from offload.suite.wire.ranges import Overlap, Ranges

MAX_CONNECTIONS = 65536
MAX_AHEAD = 1 << 30
MAX_HELD = 4 << 30


@dataclass(frozen=True)
class Problem:
    """Why a verdict cannot be sure; `direction`: client, server or empty; `at`: stream offset or frame."""

    code: str
    direction: str = ""
    at: int = 0


@dataclass(frozen=True)
class Retransmission:
    """The first byte that was sent again differently; up to 16 bytes from there."""

    offset: int
    frame: int
    expected: bytes
    got: bytes
    one_bit: bool
    zeros: bool


@dataclass
class Stream:
    """What one side sent: `data` from offset 0 to the first hole, and the statistics of the contract.

    `reach`: offset behind the last byte that a segment had, captured or not. `acked`: how far the other side
    has acknowledged, -1 for not at all.
    """

    direction: str
    data: bytes = b""
    base: int | None = None
    fin: int | None = None
    rst: bool = False
    reach: int = 0
    acked: int = -1
    retransmissions: int = 0
    retransmitted_bytes: int = 0
    out_of_order: int = 0
    strange: int = 0
    cut_bytes: int = 0
    retransmission: Retransmission | None = None
    problems: list[Problem] = field(default_factory=list)
    buffer: bytearray = field(default_factory=bytearray, repr=False)
    held: Ranges = field(default_factory=Ranges, repr=False)

    @property
    def empty(self) -> bool:
        """Whether no byte was seen, captured or not."""
        return not self.reach

    @property
    def gap(self) -> bool:
        """Whether there are bytes, or the end, beyond a hole."""
        return bool(self.held.count) or (self.fin is not None and self.fin > len(self.data))

    @property
    def end(self) -> int:
        """The number behind all that was sent: payload, and 1 for FIN."""
        return max(self.reach, 0 if self.fin is None else self.fin + 1)

    def place(self, sequence: int) -> int:
        """The stream offset of a sequence number: the one nearest to the end of what is contiguous."""
        ahead = len(self.buffer)
        distance = (sequence - (self.base or 0) - ahead) & 0xFFFFFFFF
        return ahead + (distance ^ 0x80000000) - 0x80000000

    def acknowledge(self, number: int) -> None:
        """The other side has this much; an acknowledgement of more than was sent counts for nothing."""
        if self.base is not None and 0 <= (offset := self.place(number)) <= self.end:
            self.acked = max(self.acked, offset)

    def add(self, frame: int, segment: Segment, file: Bytes) -> bool:
        """Take a segment, in capture order; False: it is left out, its payload is compared with nothing."""
        sequence = (segment.sequence + bool(segment.flags & SYN)) & 0xFFFFFFFF
        if self.base is None:
            self.base = sequence
            if not segment.flags & SYN:
                self.problems.append(Problem("no-syn", self.direction))
        offset = self.place(sequence)
        if self._left_out(frame, offset, segment):
            return False
        self._take(frame, offset, segment, file)
        return True

    def _left_out(self, frame: int, offset: int, segment: Segment) -> bool:
        """Whether a segment has no place in the stream; what is a problem of it."""
        ahead = len(self.buffer)
        if segment.flags & SYN and offset:
            self.problem("second-syn", frame)
        elif self._keeps_alive(offset, segment):
            pass
        elif offset < 0 or offset > ahead + MAX_AHEAD:
            self.strange += 1
            if segment.size:
                self.problem("stray-data", frame)
        elif segment.flags & RST and segment.size:
            self.rst = True
            self.problem("stray-data", frame)
        elif offset > ahead and segment.captured and self.held.full_for(offset, segment.captured):
            self.problem("too-much-reorder", offset)
        else:
            return False
        return True

    def _keeps_alive(self, offset: int, segment: Segment) -> bool:
        """Whether it is the one byte before what is acknowledged (RFC 1122 §4.2.3.6), which may be any."""
        one = segment.size == 1 and not segment.flags & (SYN | FIN | RST)
        return one and 0 <= self.acked == offset + 1 <= len(self.buffer)

    def problem(self, code: str, at: int) -> None:
        """Note a problem, each code once."""
        if code not in (p.code for p in self.problems):
            self.problems.append(Problem(code, self.direction, at))

    def _take(self, frame: int, offset: int, segment: Segment, file: Bytes) -> None:
        if segment.size:
            self.reach = max(self.reach, offset + segment.size)
        if segment.captured < segment.size:
            self.cut_bytes += segment.size - segment.captured
            self.problem("cut-segment", offset + segment.captured)
        if segment.flags & URG:
            self.problem("urgent", offset)
        if segment.flags & FIN:
            self._ends(offset + segment.size)
        self.rst |= bool(segment.flags & RST)
        if not segment.captured:
            return
        data = file[segment.start : segment.start + segment.captured]
        if offset == len(self.buffer) and not self.held.starts:
            self.buffer += data
            return
        self.out_of_order += offset > len(self.buffer)
        self._compare(frame, self._merge(offset, data))

    def _ends(self, offset: int) -> None:
        """The first FIN sets the end, and every other must be there too."""
        self.fin = offset if self.fin is None else self.fin
        if offset != self.fin:
            self.problem("second-fin", offset)

    def _merge(self, offset: int, data: bytes) -> list[Overlap]:
        """Add the new bytes; return the others together with what was there."""
        ahead = len(self.buffer)
        overlaps = []
        if offset < ahead:
            known = bytes(self.buffer[offset : min(ahead, offset + len(data))])
            overlaps.append(Overlap(offset, known, data[: len(known)]))
        if offset + len(data) > ahead:
            start = max(offset, ahead)
            overlaps += self.held.add(start, data[start - offset :])
            for piece in self.held.take(ahead):
                self.buffer += piece
        return overlaps

    def _compare(self, frame: int, overlaps: list[Overlap]) -> None:
        self.retransmissions += bool(overlaps)
        self.retransmitted_bytes += sum(len(o.new) for o in overlaps)
        if self.retransmission is None and any(o.old != o.new for o in overlaps):
            self.retransmission = finding(frame, joined(overlaps))

    def finish(self) -> None:
        """No more segments: give `data` its value."""
        self.data = bytes(self.buffer)
        self.buffer = bytearray()


def joined(overlaps: list[Overlap]) -> list[Overlap]:
    """Overlaps that touch become one."""
    runs: list[Overlap] = []
    for one in overlaps:
        if runs and runs[-1].offset + len(runs[-1].new) == one.offset:
            last = runs.pop()
            one = Overlap(last.offset, last.old + one.old, last.new + one.new)
        runs.append(one)
    return runs


def finding(frame: int, runs: list[Overlap]) -> Retransmission:
    """Where and how the later bytes of one segment differ; at least one of them does."""
    pairs = [(a, b) for run in runs for a, b in zip(run.old, run.new, strict=True) if a != b]
    run = next(run for run in runs if run.old != run.new)
    at = next(i for i, (a, b) in enumerate(zip(run.old, run.new, strict=True)) if a != b)
    return Retransmission(
        run.offset + at,
        frame,
        run.old[at : at + 16],
        run.new[at : at + 16],
        one_bit=len(pairs) == 1 and (pairs[0][0] ^ pairs[0][1]).bit_count() == 1,
        zeros=len(pairs) >= 4 and not any(new for _, new in pairs),
    )


@dataclass
class Connection:
    """One TCP connection; `client` and `server` as text, `ends` as address + port in bytes."""

    ends: tuple[bytes, bytes]
    first_frame: int
    index: int
    client_isn: int | None = None
    from_client: Stream = field(default_factory=lambda: Stream("client"))
    from_server: Stream = field(default_factory=lambda: Stream("server"))

    @property
    def client(self) -> str:
        """Address and port of the side that opened it."""
        return endpoint(self.ends[0])

    @property
    def server(self) -> str:
        """Address and port of the other side."""
        return endpoint(self.ends[1])

    @property
    def listed(self) -> bool:
        """Whether either side begins as TLS does."""
        return any(s.data[:1] and 20 <= s.data[0] <= 23 and s.data[1:2] == b"\x03" for s in self.streams)

    @property
    def streams(self) -> tuple[Stream, Stream]:
        """Both directions, the client's first."""
        return self.from_client, self.from_server

    @property
    def closed(self) -> bool:
        """Whether its ends may be used for another connection."""
        return any(s.rst for s in self.streams) or all(s.fin is not None for s in self.streams)

    def sides(self, source: bytes) -> tuple[Stream, Stream]:
        """Return what this endpoint sends, and what it receives."""
        return self.streams if source == self.ends[0] else (self.from_server, self.from_client)


def endpoint(end: bytes) -> str:
    """Address and port, as 192.0.2.1:443 or [2001:db8::2]:443."""
    address, port = end[:-2], int.from_bytes(end[-2:], "big")
    if len(address) == 4:
        return f"{socket.inet_ntop(socket.AF_INET, address)}:{port}"
    return f"[{socket.inet_ntop(socket.AF_INET6, address)}]:{port}"


@dataclass
class Capture:
    """What is in a capture: statistics, problems, all connections in the order of their first frame.

    `owners`: per frame the index of its connection, -1 for none. `left_out`: frames whose payload has no
    place in a stream. `unread`: pairs of addresses of what may be unreadable TCP, with the first frame.
    """

    path: Path
    stats: dict[str, int | str]
    problems: list[Problem] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    owners: array[int] = field(default_factory=lambda: array("i"), repr=False)
    left_out: set[int] = field(default_factory=set, repr=False)
    unread: dict[tuple[bytes, bytes], int] = field(default_factory=dict, repr=False)

    def compares(self, frame: int) -> bool:
        """Whether the payload of a frame is compared with what it should be."""
        owner = self.owners[frame - 1] if frame <= len(self.owners) else -1
        return owner >= 0 and self.connections[owner].listed and frame not in self.left_out

    def too_many(self, frame: int) -> None:
        """Say that there are more connections than are followed."""
        if not self.problems:
            self.problems.append(Problem("too-many-connections", at=frame))

    def note_unread(self, pair: tuple[bytes, bytes] | None, frame: int) -> None:
        """Remember between whom there was a frame that may be TCP and cannot be read."""
        if pair is None or pair in self.unread:
            return
        if len(self.unread) == MAX_CONNECTIONS:
            self.too_many(frame)
        else:
            self.unread[pair] = frame

    def unread_between(self, listed: list[Connection]) -> list[int]:
        """The first frame that cannot be read between the addresses of each connection that has one."""
        pairs = [sorted(end[:-2] for end in c.ends) for c in listed]
        return [self.unread[a, b] for a, b in pairs if (a, b) in self.unread]


class Table:
    """The connections that a pair of endpoints has at a time."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self.current: dict[tuple[bytes, bytes], Connection] = {}

    def find(self, frame: int, segment: Segment) -> Connection | None:
        """The connection of a segment, opened if need be; None if it opens none."""
        a, b = segment.source, segment.target
        key = (a, b) if a < b else (b, a)
        found = self.current.get(key)
        if segment.flags & (SYN | ACK) == SYN:
            if found is None or found.ends[1] == a or found.client_isn != segment.sequence:
                if found is not None and not found.closed and any(s.reach for s in found.streams):
                    found.sides(a)[0].problem("second-syn", frame)
                return self._open(key, (a, b), frame, segment.sequence)
        elif found is None and segment.flags & SYN:  # it names the SYN, which may be captured after it
            return self._open(key, (b, a), frame, (segment.acknowledged - 1) & 0xFFFFFFFF)
        elif found is None and not segment.flags & RST:
            return self._open(key, (a, b), frame, None)
        return found

    def _open(
        self, key: tuple[bytes, bytes], ends: tuple[bytes, bytes], frame: int, isn: int | None
    ) -> Connection | None:
        connections = self.capture.connections
        if len(connections) == MAX_CONNECTIONS:
            self.capture.too_many(frame)
            return None
        self.current[key] = Connection(ends, frame, len(connections), isn)
        connections.append(self.current[key])
        return self.current[key]


def load(path: Path, port: int | None = None, checksums: bool = False) -> Capture:
    """The connections of a capture; ConfigError if it is none or holds more than MAX_HELD payload bytes."""
    with mapped(path) as data:
        reader = Reader(data, str(path))
        stats: dict[str, int | str] = {"format": reader.format}
        stats |= dict.fromkeys(
            ("frames", "tcp", "other", "fragments", "bad_checksum", "truncated", "not_tls"), 0
        )
        capture = Capture(path, stats)
        counts = read(data, reader, capture, port, checksums)
    stats |= counts | {"frames": reader.count}
    if reader.damaged:
        capture.problems.append(Problem("capture-damaged", at=reader.count + 1))
    for connection in capture.connections:
        for stream in connection.streams:
            stream.finish()
    stats["not_tls"] = sum(not c.listed and any(s.reach for s in c.streams) for c in capture.connections)
    return capture


def read(data: Bytes, reader: Reader, capture: Capture, port: int | None, checksums: bool) -> dict[str, int]:
    """Sort every frame into its connection; how many frames were what."""
    counts = {"tcp": 0, "other": 0, "fragments": 0, "bad_checksum": 0, "truncated": 0}
    table, held = Table(capture), 0
    wanted = None if port is None else port.to_bytes(2, "big")
    for number, link, start, captured, original in reader:
        counts["truncated"] += captured < original
        segment = parse(data, link, start, captured, original, checksums)
        if isinstance(segment, str):
            counts[segment] += 1
            capture.owners.append(-1)
            if segment != BAD_CHECKSUM:
                capture.note_unread(unread(data, link, start, captured), number)
            continue
        counts["tcp"] += 1
        left_out = wanted and wanted not in (segment.source[-2:], segment.target[-2:])
        connection = None if left_out else table.find(number, segment)
        capture.owners.append(-1 if connection is None else connection.index)
        if connection is None:
            continue
        held += segment.captured
        if held > MAX_HELD:
            raise ConfigError(
                f"{capture.path}: more than {MAX_HELD >> 30} GiB of TCP payload",
                "the Python engine holds it in memory: use the native core, or --port",
            )
        mine, other = connection.sides(segment.source)
        if segment.flags & ACK:
            other.acknowledge(segment.acknowledged)
        if not mine.add(number, segment, data):
            capture.left_out.add(number)
    return counts
