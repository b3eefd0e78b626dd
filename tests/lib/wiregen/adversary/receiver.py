"""What a receiver is offered: connections, and each direction's bytes, by wire.md and RFC 9293 alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from tests.lib.wiregen.adversary.reader import FIN, RST, SYN, URG, Packet

ACK = 16
FAR = 2**30
End = tuple[bytes, int]


class Rule(Enum):
    """What a verifier may say because of a finding."""

    PROBLEM = frozenset({"inconclusive"})
    DIFFERENT = frozenset({"different"})
    NOT_EQUAL = frozenset({"inconclusive", "different"})
    UNSURE = frozenset(
        {"equal", "inconclusive", "different"}
    )  # the contract leaves it open, or cannot see it


Finding = tuple[Rule, str]


def near(number: int, base: int, around: int) -> int:
    """The stream offset of a sequence number, the one nearest to `around`."""
    off = (number - base - around) % 2**32
    return around + (off - 2**32 if off >= 2**31 else off)


@dataclass
class Flow:
    """One direction as it goes. `seen`: first copy of each byte; `top`: end of what was sent."""

    base: int | None = None
    greeted: bool = False
    seen: dict[int, int] = field(default_factory=dict)
    next: int = 0
    top: int = 0
    fin: int | None = None
    rst: bool = False
    acked: int | None = None

    def begin(self, packet: Packet) -> None:
        """The first segment says where the stream begins."""
        if self.base is None:
            self.greeted = bool(packet.flags & SYN)
            self.base = (packet.seq + self.greeted) % 2**32

    def offset(self, packet: Packet) -> int:
        """Where the segment's payload begins."""
        assert self.base is not None
        return near(packet.seq + bool(packet.flags & SYN), self.base, self.next)

    def sent(self) -> int:
        """The end of what was sent, FIN included."""
        return max(self.top, -1 if self.fin is None else self.fin + 1)

    def acknowledged(self, number: int) -> None:
        """The other side says how far it has got."""
        if self.base is None:
            return
        off = near(number, self.base, self.next)
        if 0 <= off <= self.sent() and off > (-1 if self.acked is None else self.acked):
            self.acked = off

    def lay(self, off: int, data: bytes) -> bool:
        """Put captured bytes into the stream; whether all agree with what was there."""
        agree = True
        for i, byte in enumerate(data, off):
            agree = self.seen.setdefault(i, byte) == byte and agree
        while self.next in self.seen:
            self.next += 1
        return agree

    def stream(self) -> bytes:
        """The bytes without a hole."""
        return bytes(self.seen[i] for i in range(self.next))

    def gap(self) -> bool:
        """Whether there is something behind a hole."""
        return len(self.seen) > self.next or self.top > self.next or (self.fin or 0) > self.next


@dataclass
class Connection:
    """One connection. `ends`: client, server; `left`: its frames whose bytes are no part of a stream."""

    ends: tuple[End, End]
    isn: int | None = None  # of the client, by its SYN or by the answer to it
    flows: tuple[Flow, Flow] = field(default_factory=lambda: (Flow(), Flow()))
    findings: list[Finding] = field(default_factory=list)
    frames: set[int] = field(default_factory=set)
    left: set[int] = field(default_factory=set)

    def find(self, rule: Rule, why: str) -> None:
        """Note a finding."""
        self.findings.append((rule, why))

    @property
    def listed(self) -> bool:
        """Whether it looks like TLS in either direction."""
        return any(flow.seen.get(0) in (20, 21, 22, 23) and flow.seen.get(1) == 3 for flow in self.flows)

    @property
    def closed(self) -> bool:
        """Whether both sides have closed, or one has reset."""
        return all(flow.fin is not None for flow in self.flows) or any(flow.rst for flow in self.flows)

    def reopened(self, packet: Packet) -> bool:
        """Whether a SYN is not of this connection."""
        if packet.flags & (SYN | ACK) != SYN:
            return False
        return packet.source != self.ends[0] or self.isn != packet.seq

    def take(self, frame: int, packet: Packet) -> None:
        """Judge a segment, in the order that the contract gives."""
        side = self.ends.index(packet.source)
        self.frames.add(frame)
        flow, flags = self.flows[side], packet.flags
        flow.begin(packet)
        off = flow.offset(packet)
        if flags & ACK:
            self.flows[1 - side].acknowledged(packet.ack)
        if self.left_out(flow, packet, off):
            self.left.add(frame)
            self.blame(frame, packet, flow, off)
        else:
            self.accept(frame, packet, flow, off)

    @staticmethod
    def left_out(flow: Flow, packet: Packet, off: int) -> bool:
        """Whether no byte of the segment has a place in the stream."""
        flags = packet.flags
        if flags & SYN and off:
            return True
        if keeps_alive(flow, packet, off) or off < 0 or off > flow.next + FAR:
            return True
        return bool(flags & RST and packet.size)

    def blame(self, frame: int, packet: Packet, flow: Flow, off: int) -> None:
        """Why a segment that was left out is a problem, if it is one."""
        if packet.flags & SYN and off:
            self.find(Rule.PROBLEM, f"frame {frame}: a second SYN")
        elif keeps_alive(flow, packet, off):
            pass
        elif packet.size:
            flow.rst = flow.rst or bool(packet.flags & RST and 0 <= off <= flow.next + FAR)
            self.find(Rule.PROBLEM, f"frame {frame}: {packet.size} stray bytes at {off}")

    def accept(self, frame: int, packet: Packet, flow: Flow, off: int) -> None:
        """A segment with a place in the stream."""
        if not flow.lay(off, packet.payload):
            self.find(Rule.DIFFERENT, f"frame {frame}: a copy differs")
        if len(packet.payload) < packet.size:
            self.find(Rule.PROBLEM, f"frame {frame}: cut short")
        flow.rst = flow.rst or bool(packet.flags & RST)
        if packet.flags & URG:
            self.find(Rule.PROBLEM, f"frame {frame}: urgent")
        if packet.size:
            flow.top = max(flow.top, off + packet.size)
        if packet.flags & FIN:
            end = off + packet.size
            if flow.fin not in (None, end):
                self.find(Rule.PROBLEM, f"frame {frame}: a second FIN at {end}")
            flow.fin = end if flow.fin is None else flow.fin


def keeps_alive(flow: Flow, packet: Packet, off: int) -> bool:
    """Whether this is a keep-alive: one byte that the other side has."""
    plain = not packet.flags & (SYN | FIN | RST) and packet.size == 1
    return plain and off + 1 == flow.acked and off < flow.next


def connections(packets: list[tuple[int, Packet]]) -> list[Connection]:
    """All connections of these segments (frame number, segment), in order of their first frames."""
    current: dict[frozenset[End], Connection] = {}
    out: list[Connection] = []
    for frame, packet in packets:
        ends = frozenset((packet.source, packet.target))
        one = current.get(ends)
        if len(ends) < 2 or (one is None and packet.flags & (SYN | RST) == RST):
            continue
        if one is not None and one.reopened(packet):
            if any(flow.top for flow in one.flows) and not one.closed:
                one.find(Rule.PROBLEM, f"frame {frame}: a SYN of another connection")
            one = None
        if one is None:
            pair, isn = (packet.source, packet.target), packet.seq if packet.flags & SYN else None
            if packet.flags & SYN and packet.flags & ACK:
                pair, isn = pair[::-1], (packet.ack - 1) % 2**32
            one = current[ends] = Connection(pair, isn)
            out.append(one)
        one.take(frame, packet)
    return out
