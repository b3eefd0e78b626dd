"""What the kernel says about an interface by the ethtool ioctl (include/uapi/linux/ethtool.h)."""

from __future__ import annotations

import _socket
import ctypes
import fcntl
import struct

SIOCETHTOOL = 0x8946
GDRVINFO, GSTRINGS, GSTATS, GSSET_INFO, GFEATURES = 0x03, 0x1B, 0x1D, 0x37, 0x3A
GGRO, SGRO = 0x2B, 0x2C
STATISTICS, FEATURES = 1, 4  # enum ethtool_stringset
NAME, DRVINFO = 32, 196  # bytes: ETH_GSTRING_LEN, struct ethtool_drvinfo
MOST = 100_000  # counters
ROOM = 64 << 10  # bytes beyond what was announced: the kernel writes as many as there are by then


class Nic:
    """One interface of the caller's namespace. OSError if the kernel refuses, ValueError if it is odd."""

    _lines: dict[bytes, list[bytes]] = {}  # by the names in one string: the beginnings of the lines

    def __init__(self, dev: str) -> None:
        if not 0 < len(dev.encode()) < 16:
            raise ValueError(dev)
        self._dev = dev.encode()

    def _ask(self, head: bytes, size: int) -> bytes:
        """One request of ETHTOOL_*: the structure that the kernel filled in."""
        room = ctypes.create_string_buffer(head, size + ROOM)
        sock = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM | _socket.SOCK_CLOEXEC)
        try:
            fcntl.ioctl(sock, SIOCETHTOOL, struct.pack("16sP16x", self._dev, ctypes.addressof(room)))
        finally:
            sock.close()
        return room.raw[:size]

    def _count(self, kind: int) -> int:
        """How many strings there are of a kind: ethtool_sset_info."""
        mask, count = struct.unpack_from(
            "QI", self._ask(struct.pack("IIQI", GSSET_INFO, 0, 1 << kind, 0), 20), 8
        )
        if not mask or not 0 < count <= MOST:
            raise ValueError(count)
        return int(count)

    def driver(self) -> bytes:
        """Return struct ethtool_drvinfo, whatever is in it."""
        return self._ask(struct.pack("I", GDRVINFO), DRVINFO)

    def features(self) -> bytes:
        """Return struct ethtool_gfeatures: which features there are, are asked for, active and fixed."""
        blocks = -(-self._count(FEATURES) // 32)
        return self._ask(struct.pack("II", GFEATURES, blocks), 8 + 16 * blocks)

    def gro(self, on: bool) -> bool:
        """Switch it on or off: struct ethtool_value. Say whether it is as wanted now."""
        self._ask(struct.pack("II", SGRO, on), 8)
        return bool(struct.unpack("II", self._ask(struct.pack("II", GGRO, 0), 8))[1]) == on

    def statistics(self) -> bytes:
        """Return what `ethtool -S` prints."""
        count = self._count(STATISTICS)
        names = self._ask(struct.pack("III", GSTRINGS, STATISTICS, count), 12 + NAME * count)
        values = self._ask(struct.pack("II", GSTATS, count), 8 + 8 * count)
        if struct.unpack_from("I", names, 8) != (count,) or struct.unpack_from("I", values, 4) != (count,):
            raise ValueError("the counters change")
        if names not in self._lines:
            self._lines.clear()
            words = [names[at : at + NAME].partition(b"\0")[0] for at in range(12, len(names), NAME)]
            self._lines[names] = [b"     %s: " % word for word in words]
        numbers = struct.unpack_from(f"{count}Q", values, 8)
        lines = [line + b"%d\n" % number for line, number in zip(self._lines[names], numbers, strict=True)]
        return b"NIC statistics:\n" + b"".join(lines)
