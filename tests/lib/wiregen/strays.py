"""Frames that are no segment of a connection: ARP, UDP, fragments, broken headers, empty frames."""

from __future__ import annotations

import struct
from random import Random

from tests.lib.wiregen.frames import (
    ETHERNET,
    IPV4,
    IPV6,
    Frame,
    Link,
    Net,
    any_net,
    frame,
    ip_bytes,
    tcp_bytes,
)
from tests.lib.wiregen.tcp import ACK, Seg


def any_stray(rng: Random, link: Link) -> Frame:
    """One frame that is not TCP, or that a verifier cannot read."""
    kinds = [datagram, datagram, fragment, broken, short, chain]
    if link.kind == ETHERNET:
        kinds += [arp, logical]
    return rng.choice(kinds)(rng, link)


def family(rng: Random, link: Link) -> bool:
    """Whether IPv6."""
    return {IPV4: False, IPV6: True}.get(link.kind, rng.random() < 0.5)


def ethertype(v6: bool) -> int:
    """The ethertype of the IP version."""
    return 0x86DD if v6 else 0x0800


def datagram(rng: Random, link: Link, data: bytes | None = None) -> Frame:
    """UDP, ICMP, ESP or SCTP."""
    net = any_net(rng, family(rng, link), 53)
    body = rng.randbytes(rng.randint(0, 200)) if data is None else data
    protocol = 17 if data is not None else rng.choice((17, 17, 1, 58, 50, 132))
    if protocol == 17:
        body = struct.pack(">HHHH", *net.port, 8 + len(body), 0) + body
    return frame(
        rng, link, ip_bytes(net, 0, body, protocol), ethertype(net.v6), -1 if net.big else net.trailer
    )


def fragment(rng: Random, link: Link) -> Frame:
    """A fragment of something, perhaps of TCP."""
    net = any_net(rng, family(rng, link), 443)
    flags = rng.choice((1, 8, 800, 801)) if net.v6 else rng.choice((0x2000, 0x2001, 1, 0x1FFF))
    packet = ip_bytes(net, 0, rng.randbytes(rng.randint(20, 90)), rng.choice((6, 6, 17)), flags)
    return frame(rng, link, packet, ethertype(net.v6), -1)


def tcp_packet(rng: Random, link: Link) -> tuple[Net, bytes]:
    net = any_net(rng, family(rng, link), 80)
    net.big = False
    return net, ip_bytes(net, 0, tcp_bytes(net, Seg(0, 0, ACK, b"GET" + rng.randbytes(rng.randint(0, 60)))))


def broken(rng: Random, link: Link) -> Frame:
    """A TCP packet with a header that says something impossible."""
    net, packet = tcp_packet(rng, link)
    data = bytearray(packet)
    length = 4 if net.v6 else 2
    tcp = 40 + 0 if net.v6 and not net.extensions else 20 + net.options
    wrong = rng.randint(0, 3)
    if wrong == 0:
        data[0] = rng.choice((0x00, 0x15, 0x51, 0x75, 0xF0))  # version
    elif wrong == 1 or (net.v6 and net.extensions):
        data[length : length + 2] = struct.pack(">H", rng.choice((0xFFFF, len(data) + 1, len(data) + 900)))
    elif wrong == 2:
        data[tcp + 12] = rng.choice((0x00, 0x10, 0x40, 0xF0))  # data offset
    else:
        data[length : length + 2] = struct.pack(">H", rng.randint(1, 19))
    return frame(rng, link, bytes(data), ethertype(net.v6), -1)


def short(rng: Random, link: Link) -> Frame:
    """A packet of which only the first bytes were kept, headers included; also an empty frame."""
    net, packet = tcp_packet(rng, link)
    made = frame(rng, link, packet, ethertype(net.v6), 0)
    made.data = made.data[: rng.choice((0, 1, 13, 14, 15, 20, 33, 34, 40, 47, 53, 54))]
    return made


def chain(rng: Random, link: Link) -> Frame:
    """A protocol that no TCP follows: IPv6 without next header or with too many headers, IPv4 in IPv4."""
    net = any_net(rng, family(rng, link), 80)
    if net.v6 and rng.random() < 0.5:
        net.extensions = (0, *[60] * rng.randint(8, 12))
        packet = ip_bytes(net, 0, rng.randbytes(40), 6)
    else:
        packet = ip_bytes(net, 0, rng.randbytes(rng.randint(0, 60)), 59 if net.v6 else 4)
    return frame(rng, link, packet, ethertype(net.v6), -1)


def arp(rng: Random, link: Link) -> Frame:
    """An ARP request."""
    return frame(rng, link, b"\0\1\x08\0\6\4\0\1" + rng.randbytes(20), 0x0806, 0)


def logical(rng: Random, link: Link) -> Frame:
    """An 802.3 frame with a length where others have an ethertype, or a VLAN chain that is too long."""
    if rng.random() < 0.5:
        return frame(rng, link, b"\x42\x42\3" + rng.randbytes(35), 38, 0)
    net, packet = tcp_packet(rng, link)
    deep = Link(ETHERNET, (0x8100,) * rng.randint(5, 7))
    made = frame(rng, deep, packet, ethertype(net.v6), 0)
    return Frame(made.data, made.orig, link)
