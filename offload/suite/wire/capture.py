"""Which frames does a capture file hold? pcap and pcapng, by docs/reference/wire.md, "Input"."""

from __future__ import annotations

import struct
from collections.abc import Iterator

from offload.errors import ConfigError
from offload.suite.wire.files import Bytes

LINKS = (0, 1, 101, 108, 113, 228, 229, 276)
MAX_FRAME = 16 << 20
PCAP = {
    b"\xd4\xc3\xb2\xa1": "<",
    b"\x4d\x3c\xb2\xa1": "<",
    b"\xa1\xb2\xc3\xd4": ">",
    b"\xa1\xb2\x3c\x4d": ">",
}
SECTION = b"\x0a\x0d\x0d\x0a"
ORDER = {b"\x4d\x3c\x2b\x1a": "<", b"\x1a\x2b\x3c\x4d": ">"}
SHB, IDB, PB, SPB, EPB = 0x0A0D0D0A, 1, 2, 3, 6
SMALLEST = {SHB: 28, IDB: 20, PB: 32, SPB: 16, EPB: 32}

# number (from 1), link type, where its bytes start in the file, captured bytes, original bytes
Frame = tuple[int, int, int, int, int]


class Damaged(Exception):
    """The reading ends here: a frame or block claims what the file does not have."""


class Reader:
    """The frames of a capture: iterate, then `damaged` tells whether the reading ended early.

    `count`: frames so far. Raises ConfigError for what is no capture and for a frame of an unknown link type.
    """

    def __init__(self, data: Bytes, name: str) -> None:
        self.data, self.name = data, name
        self.damaged = False
        self.count = 0
        if len(data) >= 24 and data[:4] in PCAP:
            self.format = "pcap"
        elif data[:4] == SECTION and data[8:12] in ORDER:
            self.format = "pcapng"
        else:
            raise ConfigError(
                f"{name}: not a capture", "wanted: pcap or pcapng, as tcpdump and wireshark write"
            )

    def __iter__(self) -> Iterator[Frame]:
        try:
            yield from self._pcap() if self.format == "pcap" else self._pcapng()
        except Damaged:
            self.damaged = True

    def _frame(self, link: int, start: int, captured: int, original: int, end: int) -> Frame:
        """The next frame; `end`: where the room for its bytes ends."""
        if captured > MAX_FRAME or start + captured > end:
            raise Damaged
        self.count += 1
        if link not in LINKS:
            raise ConfigError(
                f"{self.name}: frame {self.count} has link type {link}, which is not supported",
                "capture on an Ethernet interface, a tunnel or any",
            )
        return self.count, link, start, captured, original

    def _pcap(self) -> Iterator[Frame]:
        data, end, at = self.data, len(self.data), 24
        order = PCAP[data[:4]]
        # the upper half of the field says how long a frame check sequence is, a trailer like any other
        link: int = struct.unpack_from(order + "I", data, 20)[0] & 0xFFFF
        lengths = struct.Struct(order + "8xII").unpack_from
        while at < end:
            if at + 16 > end:
                raise Damaged
            captured, original = lengths(data, at)
            yield self._frame(link, at + 16, captured, original, end)
            at += 16 + captured

    def _pcapng(self) -> Iterator[Frame]:
        data, end, at = self.data, len(self.data), 0
        order, interfaces = "<", list[tuple[int, int]]()
        while at < end:
            if data[at : at + 4] == SECTION:
                order, interfaces = self._section(at), []
            kind, size = self._block(order, at)
            if kind == IDB:
                interfaces.append(struct.unpack_from(order + "H2xI", data, at + 8))
            elif kind in (EPB, PB, SPB):
                yield self._packet(kind, order, at, at + size - 4, interfaces)
            at += size

    def _section(self, at: int) -> str:
        """The byte order of the section that begins here."""
        order = ORDER.get(self.data[at + 8 : at + 12])
        if order is None:
            raise Damaged
        return order

    def _block(self, order: str, at: int) -> tuple[int, int]:
        """Type and total length, in bytes, of the block that begins here."""
        if at + 12 > len(self.data):
            raise Damaged
        kind, size = struct.unpack_from(order + "II", self.data, at)
        if size % 4 or size < SMALLEST.get(kind, 12) or at + size > len(self.data):
            raise Damaged
        return kind, size

    def _packet(self, kind: int, order: str, at: int, end: int, interfaces: list[tuple[int, int]]) -> Frame:
        """The frame of a packet block that ends (without its trailing length) at `end`."""
        if kind == SPB:
            interface, start = 0, at + 12
            original = struct.unpack_from(order + "I", self.data, at + 8)[0]
        else:
            shape = order + ("I8xII" if kind == EPB else "H2x8xII")
            interface, captured, original = struct.unpack_from(shape, self.data, at + 8)
            start = at + 28
        if interface >= len(interfaces):
            raise Damaged
        link, snap = interfaces[interface]
        if kind == SPB:
            captured = min(original, snap or original)
        return self._frame(link, start, captured, original, end)
