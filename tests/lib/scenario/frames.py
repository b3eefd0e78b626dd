"""The frames of a capture beyond the card: is each header as software sends it, where do records lie?"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from offload.suite.wire.capture import Reader
from offload.suite.wire.files import mapped
from offload.suite.wire.packets import ones
from tests.lib.wire.above import TURN, Packet, Words, congestion, offset

FIN, SYN, RST, PSH, ACK, URG, ECE, CWR = (1 << bit for bit in range(8))
SACK, STAMPS = 5, 8  # kinds of options (RFC 2018, RFC 7323)
ECT, ECN = 2, 3  # ECT(0): the sender listens to marks (RFC 3168 section 5); both bits
ECN_WORDS = ("without ECT", "with ECT(1)", "with ECT(0)", "marked CE")
LABEL = 0xFFFFF  # of IPv6's first word (RFC 8200 section 3)
TTL = 64  # net.ipv4.ip_default_ttl and hop_limit, as Linux has them


@dataclass(frozen=True)
class Frame:
    """One TCP segment over IP as it was on the wire."""

    number: int
    source: int
    target: int
    tos: int
    ttl: int
    options: bytes  # of IP: options of version 4, extension headers of version 6
    intact: bool  # both checksums
    seq: int
    flags: int
    kinds: tuple[int, ...]  # of TCP's options
    payload: bytes = field(repr=False)
    ident: int = 0  # of IPv4, where it numbers the packets of a connection; 0 for version 6
    head: int = 0  # bytes before the payload, those of Ethernet included
    label: int = 0  # the flow label of IPv6

    @property
    def data(self) -> bool:
        """Whether it carries payload."""
        return bool(self.payload)


def read(path: Path, ports: frozenset[int]) -> list[Frame]:
    """Every TCP frame of these ports (the DUT's), in order."""
    with mapped(path) as data:
        found = (
            frame_of(number, bytes(data[at : at + size]))
            for number, _, at, size, _ in Reader(data, str(path))
        )
        return [frame for frame in found if frame and ports & {frame.source, frame.target}]


def frame_of(number: int, frame: bytes) -> Frame | None:
    """The segment in an Ethernet frame, if it is one."""
    kind, ip = int.from_bytes(frame[12:14], "big"), frame[14:]
    if kind == 0x0800 and len(ip) >= 20 and ip[9] == 6:
        head, end = (ip[0] & 15) * 4, int.from_bytes(ip[2:4], "big")
        tos, ttl, right, addresses = ip[1], ip[8], not ones(ip[:head]), ip[12:20]
        options, ident, label = ip[20:head], int.from_bytes(ip[4:6], "big"), 0
    elif kind == 0x86DD and len(ip) >= 40 and ip[6] in (6, 60):
        head, end = 40 + (0 if ip[6] == 6 else (ip[41] + 1) * 8), 40 + int.from_bytes(ip[4:6], "big")
        tos, ttl, right, addresses = (ip[0] & 15) << 4 | ip[1] >> 4, ip[7], True, ip[8:40]
        options, ident, label = ip[40:head], 0, int.from_bytes(ip[:4], "big") & LABEL
    else:
        return None
    tcp = ip[head:end]
    pseudo = addresses + struct.pack(">II", len(tcp), 6)
    intact = right and not (ones(pseudo) + ones(tcp)) % 0xFFFF
    source, target, seq, _, length, flags = struct.unpack("!HHIIBB", tcp[:14])
    size = (length >> 4) * 4
    kinds = tuple(_kinds(tcp[20:size]))
    bare = Frame(number, source, target, tos, ttl, options, intact, seq, flags, kinds, tcp[size:])
    return replace(bare, ident=ident, label=label, head=14 + head + size)


def _kinds(options: bytes) -> Iterator[int]:
    """The kinds of TCP options but for padding (RFC 9293 section 3.1)."""
    while options and options[0]:
        if options[0] != 1:
            yield options[0]
        options = options[1 if options[0] == 1 or len(options) < 2 else max(options[1], 2) :]


@dataclass(frozen=True)
class Headers:
    """What the headers of the DUT's frames must be."""

    tos: int = 0
    options: bytes = b""
    label: bool = False  # IPv6: the kernel chooses one for each connection
    stamps: bool = True
    ecn: bool = False  # both ends speak of congestion (RFC 3168): new data says ECT(0)
    packets: tuple[Packet, ...] = ()  # what TCP said of congestion (tests/lib/wire/above.py)
    lossy: tuple[int, int] = (0, 0)  # stream offsets between which a frame may be lost before the wire
    numbered: bool = True  # one queue: a packet that TCP sent later does not leave earlier


def wrong(frames: Sequence[Frame], port: int, want: Headers, begin: int | None = None) -> str:
    """Return what is wrong with a header of what the DUT sent on a connection, or with its order; or nothing.

    `begin`: the sequence number of its first byte, if the capture says it.
    """
    ours = [frame for frame in frames if frame.source == port]
    base = next((frame.seq for frame in ours if frame.data), 0)
    for frame in ours:
        if said := _wrong(frame, want):
            where = f" (stream offset {(frame.seq - base) % TURN:,})" if frame.data else ""
            return f"frame {frame.number} of the DUT: {said}{where}"
    if said := _twice(ours):
        return said
    if want.ecn and (said := _congestion(ours, want)):
        return said
    base = base if begin is None else begin
    return _order(ours, base, want.lossy) or (_overtaken(ours, base) if want.numbered else "")


def _twice(ours: Sequence[Frame]) -> str:
    """A packet leaves the card once: what TCP sends again is another packet, so IPv4 numbers it again."""
    seen: dict[tuple[int, int, int], int] = {}
    base = next((frame.seq for frame in ours if frame.data), 0)
    for frame in (frame for frame in ours if frame.data and frame.ident):
        packet = (frame.ident, frame.seq, len(frame.payload))
        if packet in seen:
            where = f"stream offset {(frame.seq - base) % TURN:,}"
            return f"frame {frame.number} of the DUT: the packet of frame {seen[packet]} once more ({where})"
        seen[packet] = frame.number
    return ""


def payload(frames: Sequence[Frame], base: int, end: int) -> int:
    """Bytes of payload of a direction that begin before `end` in its stream, which begins at `base`."""
    return sum(len(frame.payload) for frame in frames if (frame.seq - base) % TURN < end)


def _congestion(ours: Sequence[Frame], want: Headers) -> str:
    """A frame says of congestion what TCP's packet says, and as often as TCP's packets there say it.

    New data says ECT(0), what is sent again does not, and CWR is in a packet's first segment (RFC 3168).
    """
    seen = Counter[tuple[int, Words]]()
    for frame in (frame for frame in ours if frame.data):
        said = frame.tos & ECN, bool(frame.flags & CWR)
        seen[frame.seq, said] += 1
        if seen[frame.seq, said] > (there := congestion(want.packets, frame.seq))[said]:
            have = ", ".join(sorted(map(_said, there.elements()))) or "none"
            again = " again" if seen[frame.seq, said] > 1 else ""
            return f"frame {frame.number} of the DUT: {_said(said)}{again}; TCP's packets there: {have}"
    return ""


def _said(words: Words) -> str:
    ecn, cwr = words
    return f"{ECN_WORDS[ecn]}{' and CWR' if cwr else ''}"


def _wrong(frame: Frame, want: Headers) -> str:
    if not frame.intact:
        return "a wrong checksum"
    if frame.ttl != TTL:
        return f"TTL or hop limit {frame.ttl}, software sends {TTL}"
    tos = frame.tos & ~ECT if want.ecn else frame.tos
    if frame.data and (tos, frame.options) != (want.tos, want.options):
        return (
            f"traffic class {frame.tos:#04x} and options {frame.options.hex() or 'none'}, "
            f"software sends {want.tos:#04x} and {want.options.hex() or 'none'}"
        )
    if frame.data and bool(frame.label) != want.label:
        return f"flow label {frame.label:#07x}, software sends {'another' if want.label else 'none'}"
    if frame.flags & (URG if want.ecn else URG | ECE | CWR) or (frame.data and not frame.flags & ACK):
        return f"flags {frame.flags:#04x}"
    if not frame.flags & RST and (STAMPS in frame.kinds) != want.stamps:
        return "timestamps" if STAMPS in frame.kinds else "no timestamps"
    return ""


def _order(ours: Sequence[Frame], base: int, lossy: tuple[int, int]) -> str:
    """New data begins where the data before it ended: TCP sends in order, whatever it then sends again.

    Where the event of a scenario may lose a frame before the wire, data may be missing, and nowhere else.
    """
    next_ = 0
    for frame in (frame for frame in ours if frame.data):
        at = offset(frame.seq - base - next_) + next_
        if at > next_ and not lossy[0] <= next_ <= at <= lossy[1]:
            return f"frame {frame.number} is {at - next_} bytes ahead of stream offset {next_:,}"
        next_ = max(next_, at + len(frame.payload))
    return ""


def _overtaken(ours: Sequence[Frame], base: int) -> str:
    """IPv4 numbers the packets of a connection as TCP sends them, and the card keeps their order."""
    last = None
    for frame in (frame for frame in ours if frame.data and frame.ident):
        if last and offset(frame.ident - last.ident, 1 << 16) < 0:
            where = f"stream offset {(frame.seq - base) % TURN:,}"
            return (
                f"frame {frame.number} of the DUT leaves after frame {last.number}, a later packet ({where})"
            )
        last = frame
    return ""


def cuts(frames: Sequence[Frame], source: int | None, target: int | None, base: int) -> set[int]:
    """Where segments begin, as offsets from the sequence number `base`; what is sent again counts, too."""
    return {
        (frame.seq - base) % TURN
        for frame in frames
        if frame.data and source in (None, frame.source) and target in (None, frame.target)
    }
