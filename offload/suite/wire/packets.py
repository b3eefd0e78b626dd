"""What does a frame carry: a TCP segment, or something else? By wire.md, "Frames and segments"."""

from __future__ import annotations

import struct
from typing import NamedTuple

from offload.suite.wire.files import Bytes

OTHER, FRAGMENT, BAD_CHECKSUM = "other", "fragments", "bad_checksum"
FIN, SYN, RST, ACK, URG = 1, 2, 4, 16, 32
TCP = 6
VLAN = (0x8100, 0x88A8, 0x9100, 0x9200)
EXTENSIONS = (0, 43, 44, 60)
COOKED2 = 276
STAMPS = b"\1\1\x08\x0a"  # how the options begin that hold time stamps and nothing else
IP_KIND = {0x0800: 4, 0x86DD: 6}
# link type: (where the EtherType is, length of the header)
TYPED = {1: (12, 14), 113: (14, 16), 276: (0, 20)}
u16 = struct.Struct(">H").unpack_from
tcp_head = struct.Struct(">2s2sIIBB").unpack_from


class Segment(NamedTuple):
    """A TCP segment: endpoints are address + port as bytes, `start` is where its payload is in the file.

    `size`: payload bytes by IP; `captured`: those of them that the file has. `plain`: no room in its headers
    for a needle.
    """

    source: bytes
    target: bytes
    sequence: int
    acknowledged: int
    flags: int
    start: int
    size: int
    captured: int
    plain: bool


def parse(
    data: Bytes, link: int, start: int, captured: int, original: int, checksums: bool = False
) -> Segment | str:
    """The segment in a frame, or in which column of the statistics the frame counts."""
    limit, frame_end = start + captured, start + original
    at, version = network(data, link, start, limit)
    if version == 4:
        found = ipv4(data, at, limit, frame_end)
    elif version == 6:
        found = ipv6(data, at, limit, frame_end)
    else:
        return OTHER
    if isinstance(found, str):
        return found
    tcp, end = found
    simple = link != COOKED2 and tcp == at + (20 if version == 4 else 40)
    segment = transport(data, at, version, tcp, end, limit, simple)
    if checksums and segment is not None and not intact(data, at, version, tcp, end, limit):
        return BAD_CHECKSUM
    return segment or OTHER


def network(data: Bytes, link: int, at: int, limit: int) -> tuple[int, int]:
    """Where the IP header begins, and which version the link layer says; 0 for none."""
    if link not in TYPED:
        at += 4 if link in (0, 108) else 0
        version = data[at] >> 4 if at < limit else 0
        return at, version if link not in (228, 229) or version == {228: 4, 229: 6}[link] else 0
    where, size = TYPED[link]
    if at + size > limit:
        return at, 0
    kind = u16(data, at + where)[0]
    at += size
    for _ in range(4):
        if kind not in VLAN or at + 4 > limit:
            break
        kind = u16(data, at + 2)[0]
        at += 4
    version = IP_KIND.get(kind, 0)
    return at, version if at < limit and data[at] >> 4 == version else 0


def ipv4(data: Bytes, at: int, limit: int, frame_end: int) -> tuple[int, int] | str:
    """Where TCP begins and where IP ends, or why it is none."""
    if at + 20 > limit:
        return OTHER
    header = (data[at] & 15) * 4
    total = u16(data, at + 2)[0]
    end = at + total if total else frame_end
    if header < 20 or at + header > limit or end > frame_end or end < at + header:
        return OTHER
    if u16(data, at + 6)[0] & 0x3FFF:
        return FRAGMENT
    return (at + header, end) if data[at + 9] == TCP else OTHER


def ipv6(data: Bytes, at: int, limit: int, frame_end: int) -> tuple[int, int] | str:
    """Where TCP begins and where IP ends, or why it is none."""
    if at + 40 > limit:
        return OTHER
    size = u16(data, at + 4)[0]
    end = at + 40 + size if size else frame_end
    if end > frame_end:
        return OTHER
    kind, at = data[at + 6], at + 40
    for _ in range(8):
        if kind not in EXTENSIONS:
            break
        if at + 8 > min(limit, end):
            return OTHER
        if kind == 44 and u16(data, at + 2)[0] & 0xFFF9:
            return FRAGMENT
        step = 8 if kind == 44 else (data[at + 1] + 1) * 8
        kind, at = data[at], at + step
    return (at, end) if kind == TCP else OTHER


def transport(
    data: Bytes, ip: int, version: int, tcp: int, end: int, limit: int, simple: bool
) -> Segment | None:
    """The segment whose header begins at `tcp`; None if it is malformed or cut off."""
    if tcp + 20 > min(limit, end):
        return None
    source_port, target_port, sequence, acknowledged, length, flags = tcp_head(data, tcp)
    start = tcp + (length >> 4) * 4
    if start < tcp + 20 or start > min(limit, end):
        return None
    source, target, stop = (ip + 12, ip + 16, ip + 20) if version == 4 else (ip + 8, ip + 24, ip + 40)
    return Segment(
        data[source:target] + source_port,
        data[target:stop] + target_port,
        sequence,
        acknowledged,
        flags,
        start,
        end - start,
        min(limit, end) - start,
        simple and bare(data[tcp + 20 : start]),
    )


def bare(options: bytes) -> bool:
    """Whether TCP options are none, zeros, or time stamps alone."""
    return not any(options) or (len(options) == 12 and options[:4] == STAMPS)


def unread(data: Bytes, link: int, start: int, captured: int) -> tuple[bytes, bytes] | None:
    """The two addresses, sorted, of an IP packet that may be TCP; None for any other frame."""
    limit = start + captured
    at, version = network(data, link, start, limit)
    if version == 4 and at + 20 <= limit and data[at + 9] == TCP:
        low, high = sorted((data[at + 12 : at + 16], data[at + 16 : at + 20]))
        return low, high
    if version == 6 and at + 40 <= limit and data[at + 6] in (TCP, *EXTENSIONS):
        low, high = sorted((data[at + 8 : at + 24], data[at + 24 : at + 40]))
        return low, high
    return None


def intact(data: Bytes, ip: int, version: int, tcp: int, end: int, limit: int) -> bool:
    """Whether the IPv4 header and TCP checksums are right; a segment that is not all there is not judged."""
    if version == 4 and ones(data[ip : ip + (data[ip] & 15) * 4]):
        return False
    if limit < end:
        return True
    addresses = data[ip + 12 : ip + 20] if version == 4 else data[ip + 8 : ip + 40]
    pseudo = addresses + struct.pack(">II", end - tcp, TCP)
    return not (ones(pseudo) + ones(data[tcp:end])) % 0xFFFF


def ones(data: bytes) -> int:
    """The one's complement sum of 16-bit words (RFC 1071) as a remainder: 0 for a right checksum."""
    return int.from_bytes(data + b"\0" * (len(data) % 2), "big") % 0xFFFF
