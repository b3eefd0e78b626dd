"""Segments as frames: TCP, IPv4 or IPv6, VLAN tags, and the link layers that a capture may have."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from random import Random

from tests.lib.wiregen.tcp import SYN, Seg

NULL, ETHERNET, RAW, LOOP, COOKED, IPV4, IPV6, COOKED2 = 0, 1, 101, 108, 113, 228, 229, 276
LINKS = (NULL, ETHERNET, RAW, LOOP, COOKED, IPV4, IPV6, COOKED2)
FAMILIES = {False: (2,), True: (24, 28, 30, 10)}  # AF_INET; AF_INET6 of the BSDs, macOS and Linux
ATOMIC = 44  # an IPv6 fragment header of a packet that is whole (RFC 6946)
VLANS = (0x8100, 0x88A8, 0x9100)


@dataclass
class Link:
    """An interface: link type, VLAN tags, most bytes of a frame that it keeps (0: all), null-header order."""

    kind: int = ETHERNET
    tags: tuple[int, ...] = ()
    snap: int = 0
    order: str = "<"


@dataclass
class Frame:
    """Captured bytes, original length, and the interface."""

    data: bytes
    orig: int
    link: Link


@dataclass
class Net:
    """Addresses, ports and initial sequence numbers of a connection: [client, server].

    `options`: bytes of IPv4 options; `extensions`: IPv6 extension headers; `big`: length fields 0 (BIG TCP).
    """

    v6: bool
    addr: tuple[bytes, bytes]
    port: tuple[int, int]
    isn: tuple[int, int]
    options: int = 0
    extensions: tuple[int, ...] = ()
    stamps: bool = True
    big: bool = False
    trailer: int = 0
    ids: Random = field(default_factory=Random, repr=False)


def any_net(rng: Random, v6: bool, port: int) -> Net:
    """A connection's addresses, the server's port being this."""
    size = 16 if v6 else 4
    isn = [rng.choice((rng.getrandbits(32), 2**32 - rng.randint(1, 4000))) for _ in range(2)]
    return Net(
        v6=v6,
        addr=(rng.randbytes(size), rng.randbytes(size)),
        port=(rng.randint(1024, 65535), port),
        isn=(isn[0], isn[1]),
        options=rng.choice((0, 0, 0, 4, 40)),
        extensions=tuple(
            rng.choices((0, 43, 60, ATOMIC), k=rng.choice((0, 0, 0, 0, 0, 0, 1, 3, rng.randint(6, 8))))
        ),
        stamps=rng.random() < 0.7,
        big=rng.random() < 0.1,
        trailer=rng.choice((0, 0, 0, 4, 30)),
        ids=Random(rng.getrandbits(32)),
    )


def ones_sum(data: bytes) -> int:
    """The one's complement sum of 16-bit words (RFC 1071)."""
    total = int.from_bytes(data + b"\0" * (len(data) % 2), "big")
    return total % 65535 or (65535 if total else 0)


def tcp_bytes(net: Net, seg: Seg) -> bytes:
    """TCP header and payload, with the right checksum unless the segment is spoiled."""
    direction = seg.direction
    seq = (net.isn[direction] + 1 + seg.off) % 2**32
    options = bytes.fromhex("0101080a") + net.ids.randbytes(8) if net.stamps else b""
    if seg.flags & SYN:
        options += bytes.fromhex("020405b4010303070402") + b"\1\1"
    ack = (net.isn[1 - direction] + 1 + seg.ack) % 2**32 if seg.flags & 16 else 0
    offset = (20 + len(options)) // 4 << 4
    head = struct.pack(
        ">HHIIBBHHH", net.port[direction], net.port[1 - direction], seq, ack, offset, seg.flags, 502, 0, 0
    )
    body = head + options + seg.data
    pseudo = net.addr[direction] + net.addr[1 - direction] + struct.pack(">II", 6, len(body))
    check = 0xFFFF - ones_sum(pseudo + body)
    if seg.spoiled:
        check ^= net.ids.randint(1, 0xFFFE)
    return body[:16] + check.to_bytes(2, "big") + body[18:]


def ip_bytes(net: Net, direction: int, body: bytes, protocol: int = 6, fragment: int = 0) -> bytes:
    """An IP packet around a transport header and its payload; `fragment`: the 16 bits of flags and offset."""
    src, dst = net.addr[direction], net.addr[1 - direction]
    if net.v6:
        return ip6_bytes(net, src, dst, body, protocol, fragment)
    size = 20 + net.options
    length = 0 if net.big or size + len(body) > 65535 else size + len(body)
    head = struct.pack(
        ">BBHHHBBH", 0x40 + size // 4, 0, length, net.ids.getrandbits(16), fragment, 64, protocol, 0
    )
    head += src + dst + b"\1" * net.options
    return head[:10] + (0xFFFF - ones_sum(head)).to_bytes(2, "big") + head[12:] + body


def ip6_bytes(net: Net, src: bytes, dst: bytes, body: bytes, protocol: int, fragment: int) -> bytes:
    """An IPv6 packet with the connection's extension headers."""
    following = protocol
    if fragment:
        body = struct.pack(">BBHI", following, 0, fragment, 7) + body
        following = 44
    for kind in reversed(net.extensions):
        units = 0 if kind == ATOMIC else net.ids.choice((0, 0, 2))
        content = b"\0\0" if kind == ATOMIC else b"\1\4"
        body = bytes([following, units]) + content + bytes(4) + bytes(8 * units) + body
        following = kind
    length = 0 if net.big or len(body) > 65535 else len(body)
    return struct.pack(">IHBB", 0x60000000, length, following, 64) + src + dst + body


def link_bytes(rng: Random, link: Link, packet: bytes, ethertype: int) -> bytes:
    """The packet behind the header of the link layer."""
    v6 = ethertype == 0x86DD
    if link.kind in (RAW, IPV4, IPV6):
        return packet
    if link.kind in (NULL, LOOP):
        order = ">" if link.kind == LOOP else link.order
        return struct.pack(order + "I", rng.choice(FAMILIES[v6])) + packet
    chain = [*link.tags, ethertype]
    tags = b"".join(struct.pack(">HH", rng.getrandbits(12), kind) for kind in chain[1:])
    if link.kind == COOKED:
        return (
            struct.pack(">HHH", rng.randint(0, 4), 1, 6)
            + rng.randbytes(8)
            + struct.pack(">H", chain[0])
            + tags
            + packet
        )
    if link.kind == COOKED2:
        head = struct.pack(">HHIHBB", chain[0], 0, 2, 1, rng.randint(0, 4), 6)
        return head + rng.randbytes(8) + tags + packet
    return rng.randbytes(12) + struct.pack(">H", chain[0]) + tags + packet


def frame(rng: Random, link: Link, packet: bytes, ethertype: int, trailer: int = 0) -> Frame:
    """A frame of this interface, padded to Ethernet's 60 bytes unless the IP length needs the frame's end."""
    data = link_bytes(rng, link, packet, ethertype)
    if link.kind == ETHERNET and trailer >= 0:
        data += bytes(max(0, 60 - len(data))) + rng.randbytes(trailer)
    return Frame(data[: link.snap] if link.snap else data, len(data), link)


def seg_frame(rng: Random, link: Link, net: Net, seg: Seg) -> Frame:
    """A segment's frame; a segment that was not kept whole is cut short."""
    packet = ip_bytes(net, seg.direction, tcp_bytes(net, seg))
    big = packet[4:6] == b"\0\0" if net.v6 else packet[2:4] == b"\0\0"
    made = frame(rng, link, packet, 0x86DD if net.v6 else 0x0800, -1 if big else net.trailer)
    if seg.kept is not None and seg.kept < len(seg.data):
        head = len(link_bytes(rng, link, b"", 0x0800))
        made.data = made.data[: head + len(packet) - len(seg.data) + seg.kept]
    return made
