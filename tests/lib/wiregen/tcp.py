"""The records of a connection as TCP segments: cut, sent again, out of order, and closed in every way."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from random import Random

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = 1, 2, 4, 8, 16, 32, 64, 128


@dataclass
class Seg:
    """A segment: direction, flags, stream offset of its first byte (-1: the SYN), payload.

    `ack`: how much of the other direction it acknowledges. `kept`: captured payload bytes, None for all.
    `spoiled`: its checksum is wrong.
    """

    direction: int
    off: int
    flags: int = ACK
    data: bytes = b""
    ack: int = 0
    kept: int | None = None
    spoiled: bool = False

    def copy(self, **changes: object) -> Seg:
        """The same segment with changes."""
        return replace(self, **changes)  # type: ignore[arg-type]


@dataclass
class Style:
    """How TCP behaves: segment sizes, chances of trouble per segment, the ending.

    `end`: "fin", "reset" (RST after both FINs), "abort" (the client's RST instead of its FIN). `first`: who
    closes first.
    """

    size: str = "mtu"
    again: float = 0.0
    late: float = 0.0
    end: str = "fin"
    first: int = 0
    fast_open: bool = False
    data_on_fin: bool = False
    keepalive: float = 0.0


SIZES = ("mtu", "mtu", "jumbo", "mixed", "small", "gso")


def any_style(rng: Random, total: int) -> Style:
    """Any behavior; tiny segments only for small streams."""
    sizes = SIZES if total > 3000 else (*SIZES, "tiny")
    return Style(
        size=rng.choice(sizes),
        again=rng.choice((0.0, 0.0, 0.1, 0.4)),
        late=rng.choice((0.0, 0.0, 0.1, 0.4)),
        end=rng.choice(("fin", "fin", "fin", "reset")),
        first=rng.choice((0, 1)),
        fast_open=rng.random() < 0.1,
        data_on_fin=rng.random() < 0.3,
        keepalive=rng.choice((0.0, 0.0, 0.05)),
    )


def size_of(rng: Random, style: Style) -> int:
    """The size of the next segment."""
    if style.size in ("mtu", "jumbo", "gso"):
        return {"mtu": 1448, "jumbo": 8948, "gso": 65160}[style.size]
    return rng.randint(1, {"mixed": 3000, "small": 500, "tiny": 60}[style.size])


@dataclass
class Pipe:
    """A connection while it is being sent."""

    rng: Random
    style: Style
    streams: tuple[bytes, bytes]
    sent: list[int] = field(default_factory=lambda: [0, 0])
    out: list[Seg] = field(default_factory=list)

    def put(self, direction: int, flags: int, data: bytes = b"", off: int | None = None) -> Seg:
        """Send a segment."""
        off = self.sent[direction] if off is None else off
        seg = Seg(direction, off, flags, data, self.sent[1 - direction])
        self.out.append(seg)
        return seg

    def burst(self, direction: int, size: int) -> None:
        """Send the next bytes of a direction."""
        end = self.sent[direction] + size
        while self.sent[direction] < end:
            at = self.sent[direction]
            take = min(end - at, size_of(self.rng, self.style))
            self.put(direction, ACK | PSH * (at + take == end), self.streams[direction][at : at + take])
            self.sent[direction] += take
            self.noise(direction)

    def noise(self, direction: int) -> None:
        """Acknowledgements, keepalives and data sent again, with other boundaries."""
        if self.rng.random() < 0.3:
            self.put(1 - direction, ACK)
        if self.rng.random() < self.style.keepalive:
            self.put(direction, ACK, off=self.sent[direction] - 1)
        if self.rng.random() < self.style.again:
            low = self.rng.randint(0, self.sent[direction])
            high = min(len(self.streams[direction]), low + self.rng.choice((1, 100, 1448, 5000)))
            self.put(direction, ACK, self.streams[direction][low:high], low)


def segments(rng: Random, bursts: list[tuple[int, bytes]], style: Style) -> list[Seg]:
    """All segments of a connection in capture order."""
    streams = [b"".join(data for side, data in bursts if side == direction) for direction in (0, 1)]
    pipe = Pipe(rng, style, (streams[0], streams[1]))
    greet(pipe, bursts)
    for i, (direction, data) in enumerate(bursts):
        pipe.burst(direction, len(data) - (0 if i else pipe.sent[direction]))
    part(pipe)
    shuffle(rng, pipe.out, style.late)
    return pipe.out


def greet(pipe: Pipe, bursts: list[tuple[int, bytes]]) -> None:
    """SYN, SYN+ACK, ACK, with data in the SYN for a fast open, and SYNs sent again."""
    rng = pipe.rng
    early = bursts[0][1][:300] if bursts and bursts[0][0] == 0 and pipe.style.fast_open else b""
    ecn = rng.choice((0, 0, ECE | CWR))
    pipe.put(0, SYN | ecn, early, -1)
    if rng.random() < 0.1:
        pipe.put(0, SYN, off=-1)
    pipe.sent[0] = len(early)
    pipe.put(1, SYN | ACK | ecn & ECE, off=-1)
    if rng.random() < 0.1:
        pipe.put(1, SYN | ACK, off=-1)
    pipe.put(0, ACK)


def part(pipe: Pipe) -> None:
    """FIN from both sides, or what the style has instead."""
    first = pipe.style.first
    if pipe.style.end == "abort":
        pipe.put(1, ACK | FIN)
        pipe.put(0, RST | ACK)
        return
    for direction in (first, 1 - first):
        last = next((seg for seg in reversed(pipe.out) if seg.direction == direction and seg.data), None)
        if (
            pipe.style.data_on_fin
            and last
            and last.off + len(last.data) == pipe.sent[direction]
            and last.off >= 0
        ):
            last.flags |= FIN
        else:
            pipe.put(direction, ACK | FIN)
        if pipe.rng.random() < 0.1:
            pipe.put(direction, ACK | FIN)
    pipe.put(first, ACK, off=pipe.sent[first] + 1)
    if pipe.style.end == "reset":
        pipe.put(pipe.rng.choice((0, 1)), RST)


def shuffle(rng: Random, segs: list[Seg], late: float) -> None:
    """Let some segments arrive later than sent; nothing overtakes the first of its direction."""
    for i in range(len(segs) - 1, -1, -1):
        if not segs[i].flags & SYN and rng.random() < late:
            seg = segs.pop(i)
            segs.insert(min(len(segs), i + rng.randint(1, 12)), seg)
