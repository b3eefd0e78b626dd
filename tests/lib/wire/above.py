"""What the DUT's kernel handed to the card, by a capture above it, and what of it never came out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from offload.suite.wire.capture import Reader
from offload.suite.wire.files import Bytes, mapped
from offload.suite.wire.packets import ACK, SYN, Segment, network, parse

HEADS = 256  # bytes of a frame: all its headers, which are 14 + 60 + 60 at most
CWR = 128  # RFC 3168 section 6.1.2
ECN = 3  # the two bits of an IP header (RFC 3168 section 5)
TURN = 1 << 32  # of TCP sequence numbers
Stretch = tuple[int, int]  # of a stream: the offset of its first byte, and of the one behind its last
Words = tuple[int, bool]  # what a packet says of congestion: its ECN bits, and whether it has CWR


class Packet(NamedTuple):
    """Payload that the kernel handed down at once: its first sequence number, bytes, and what it says."""

    sequence: int
    size: int
    words: Words


def stayed(above: Path, beyond: Path, bases: Mapping[int, int], lossy: Mapping[int, Stretch]) -> str:
    """Return what the kernel handed to the card, nobody had acknowledged, and did not leave it; or nothing.

    `bases`: by the DUT's port, the sequence number of the stream's first byte; `lossy`: where frames may be
    lost in the card.
    """
    left = out(beyond, bases)
    for port, handed in needed(above, bases).items():
        first, last = lossy.get(port, (0, 0))
        sure = [(begin, end) for begin, end in handed if end <= first or last <= begin]
        if found := gone(sure, left[port]):
            what = f"{found[1] - found[0]} bytes of payload stayed in the card"
            return f"port {port} of the DUT: {what}, not acknowledged yet (stream offset {found[0]:,})"
    return ""


def needed(above: Path, bases: Mapping[int, int]) -> dict[int, list[Stretch]]:
    """Packets that were handed down when no byte of them was acknowledged yet, by the DUT's port.

    The kernel still has the records of these (net/tls/tls_device.c, tls_icsk_clean_acked()). A capture shows
    an acknowledgment before TCP takes it, and a packet once the queues let it go: none is here by mistake.
    """
    found: dict[int, list[Stretch]] = {port: [] for port in bases}
    acked = dict.fromkeys(bases, 0)
    for source, target, one in _segments(above):
        if source in bases and one.size:
            begin = offset(one.sequence - bases[source])
            if begin >= acked[source]:
                found[source].append((begin, begin + one.size))
        elif target in bases and one.flags & ACK:
            acked[target] = max(acked[target], offset(one.acknowledged - bases[target]))
    return found


def out(beyond: Path, bases: Mapping[int, int]) -> dict[int, list[Stretch]]:
    """The payload that left the card, in the order of the frames, by the DUT's port."""
    found: dict[int, list[Stretch]] = {port: [] for port in bases}
    for port, _, one in _segments(beyond):
        if port in bases and one.size:
            begin = offset(one.sequence - bases[port])
            found[port].append((begin, begin + one.size))
    return found


def opened(path: Path) -> dict[int, int]:
    """Connections that a capture shows from their SYN: by the client's port, its stream's first number."""
    return {port: one.sequence + 1 for port, _, one in _segments(path) if one.flags & (SYN | ACK) == SYN}


def packets(above: Path) -> dict[int, list[Packet]]:
    """The packets with payload that were handed down, or taken off the wire, by source port."""
    found: dict[int, list[Packet]] = {}
    with mapped(above) as data:
        for source, _, one, ip in _read(data, above):
            if one.size:
                tos = data[ip + 1] if data[ip] >> 4 == 4 else data[ip + 1] >> 4
                words = tos & ECN, bool(one.flags & CWR)
                found.setdefault(source, []).append(Packet(one.sequence, one.size, words))
    return found


def congestion(packets: Iterable[Packet], sequence: int) -> Counter[Words]:
    """What frames with this first number may say, and how often: as the packets there, CWR in their first."""
    return Counter(
        (ecn, cwr and first == 0)
        for begin, size, (ecn, cwr) in packets
        if 0 <= (first := offset(sequence - begin)) < size
    )


def gone(handed: Iterable[Stretch], out: Iterable[Stretch]) -> Stretch | None:
    """Return the first stretch that was handed down more often than it came out; None if there is none."""
    steps: Counter[int] = Counter()
    for stretches, step in ((handed, 1), (out, -1)):
        for first, end in stretches:
            steps[first] += step
            steps[end] -= step
    depth, start = 0, None
    for at in sorted(steps):
        depth += steps[at]
        if depth > 0 and start is None:
            start = at
        elif depth <= 0 and start is not None:
            return start, at
    return None


def offset(distance: int, turn: int = TURN) -> int:
    """A distance between two numbers that begin again after `turn`: forward, or back if that is shorter."""
    return (distance + turn // 2) % turn - turn // 2


def _segments(path: Path) -> Iterator[tuple[int, int, Segment]]:
    """The TCP segments of a capture, behind their source and target port."""
    with mapped(path) as data:
        for source, target, one, _ in _read(data, path):
            yield source, target, one


def _read(data: Bytes, path: Path) -> Iterator[tuple[int, int, Segment, int]]:
    """The same of an open file, and where the IP header of each is."""
    for _, link, start, captured, original in Reader(data, str(path)):
        if isinstance(found := parse(data, link, start, captured, original), Segment):
            source, target = (int.from_bytes(end[-2:], "big") for end in (found.source, found.target))
            yield source, target, found, network(data, link, start, start + captured)[0]
