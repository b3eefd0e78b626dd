"""What a captured Ethernet frame holds, by RFC 791, 8200 and 9293 alone: for the card and the third party."""

from __future__ import annotations

import struct
from dataclasses import dataclass, replace
from enum import Enum

VLAN = (0x8100, 0x88A8, 0x9100, 0x9200)
FIN, SYN, RST, URG = 1, 2, 4, 32
SKIPPED = (0, 43, 60)  # IPv6 extension headers in front of TCP
FRAGMENT = 44


class Kind(Enum):
    """What a frame is."""

    TCP = "TCP"
    FRAGMENT = "fragment"
    OTHER = "other"


@dataclass(frozen=True)
class Packet:
    """A frame as read. `version`: what the link layer says of IP.
    `ip`, `tcp`, `body`, `end`: offsets in the original frame; `end` is the packet's end.

    `checked`: whether the IPv4 and the TCP checksum are right, as far as they can be seen.
    """

    kind: Kind
    data: bytes
    version: int = 0
    ip: int = 0
    src: bytes = b""
    dst: bytes = b""
    ports: tuple[int, int] = (0, 0)
    seq: int = 0
    ack: int = 0
    flags: int = 0
    tcp: int = 0
    body: int = 0
    end: int = 0
    checked: bool = True

    @property
    def size(self) -> int:
        """Bytes of TCP payload that were sent."""
        return self.end - self.body

    @property
    def payload(self) -> bytes:
        """Bytes of TCP payload that were captured."""
        return self.data[self.body : self.end]

    @property
    def source(self) -> tuple[bytes, int]:
        """Return who sent it."""
        return self.src, self.ports[0]

    @property
    def target(self) -> tuple[bytes, int]:
        """Return who was to get it."""
        return self.dst, self.ports[1]


def read(data: bytes, orig: int) -> Packet:
    """A captured frame of Ethernet."""
    at, kind = 14, int.from_bytes(data[12:14], "big")
    for _ in range(4):
        if kind in VLAN and len(data) >= at + 4:
            kind, at = int.from_bytes(data[at + 2 : at + 4], "big"), at + 4
    if len(data) < at:
        return Packet(Kind.OTHER, data)
    if kind == 0x0800:
        return ipv4(data, at, orig)
    return ipv6(data, at, orig) if kind == 0x86DD else Packet(Kind.OTHER, data)


def ipv4(data: bytes, at: int, orig: int) -> Packet:
    """From the IPv4 header on."""
    head = data[at : at + 20]
    seen = Packet(Kind.OTHER, data, 4, at, head[12:16], head[16:20])
    size = (head[0] & 15) * 4 if head else 0
    if len(head) < 20 or head[0] >> 4 != 4 or size < 20 or len(data) < at + size:
        return seen
    length, part = int.from_bytes(head[2:4], "big"), int.from_bytes(head[6:8], "big")
    end = at + length if length else orig
    if end > orig or end < at + size:
        return seen
    seen = replace(seen, checked=ones(data[at : at + size]) == 0xFFFF)
    if part & 0x3FFF:
        return replace(seen, kind=Kind.FRAGMENT)
    return tcp(seen, at + size, end) if head[9] == 6 else seen


def ipv6(data: bytes, at: int, orig: int) -> Packet:
    """From the IPv6 header on."""
    head = data[at : at + 40]
    seen = Packet(Kind.OTHER, data, 6, at, head[8:24], head[24:40])
    if len(head) < 40 or head[0] >> 4 != 6:
        return seen
    length, kind, place = int.from_bytes(head[4:6], "big"), head[6], at + 40
    end = place + length if length else orig
    if end > orig:
        return seen
    for _ in range(8):
        if kind not in (*SKIPPED, FRAGMENT):
            break
        if len(data) < place + 8 or place + 8 > end:
            return seen
        if kind == FRAGMENT and int.from_bytes(data[place + 2 : place + 4], "big") & 0xFFF9:
            return replace(seen, kind=Kind.FRAGMENT)
        step = 8 if kind == FRAGMENT else (data[place + 1] + 1) * 8
        kind, place = data[place], place + step
    return tcp(seen, place, end) if kind == 6 else seen


def tcp(seen: Packet, at: int, end: int) -> Packet:
    """From the TCP header on."""
    data = seen.data
    head = data[at : min(at + 20, end)]
    size = (head[12] >> 4) * 4 if len(head) == 20 else 0
    if size < 20 or at + size > end or len(data) < at + size:
        return seen
    sport, dport, seq, ack, _, flags = struct.unpack(">HHIIBB", head[:14])
    right = seen.checked
    if end <= len(data):
        pseudo = seen.src + seen.dst + struct.pack(">II", 6, end - at)
        right = right and ones(pseudo + data[at:end]) == 0xFFFF
    notes = {"ports": (sport, dport), "seq": seq, "ack": ack, "flags": flags}
    return replace(seen, kind=Kind.TCP, **notes, tcp=at, body=at + size, end=end, checked=right)


def ones(data: bytes) -> int:
    """The one's complement sum of 16-bit words (RFC 1071)."""
    total = sum(struct.unpack(f">{len(data) // 2 + len(data) % 2}H", data + b"\0" * (len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total
