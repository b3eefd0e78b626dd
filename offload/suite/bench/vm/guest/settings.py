"""Settings that the lab's agent makes itself, as sysctl, `ip link set` and `ethtool -K` would make them.

Each answer is what the program prints. After None, OSError or ValueError the agent runs the program itself.
It makes the setting once more, or says what is wrong with it.
"""

from __future__ import annotations

import _socket
import fcntl
import os
import struct

from offload.suite.bench.vm.guest.nic_ioctl import Nic

TYPE_CHECKING = False
if TYPE_CHECKING:
    Said = tuple[int, bytes]  # exit code, standard output
SYSCTL = "/proc/sys"
SIOCSIFMTU = 0x8922  # include/uapi/linux/sockios.h
NAMED = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_.-")
LONGEST = 4096  # bytes of one setting


def sysctl(words: list[str]) -> Said | None:
    """`-n NAME...` and `-qw NAME=VALUE...`."""
    if words[:1] == ["-n"] and words[1:]:
        return 0, b"".join([_value(name) for name in words[1:]])
    if words[:1] == ["-qw"] and words[1:]:
        for name, equals, value in [word.partition("=") for word in words[1:]]:
            if not equals:
                return None
            _write(name, value)
        return 0, b""
    return None


def _open(name: str, flags: int) -> int:
    """The file of a setting; ValueError for a name with a slash, or one that leaves the folder."""
    if not name or not NAMED.issuperset(name) or ".." in name or name.startswith("."):
        raise ValueError(name)
    return os.open(f"{SYSCTL}/{name.replace('.', '/')}", flags | os.O_CLOEXEC)


def _value(name: str) -> bytes:
    fd = _open(name, os.O_RDONLY)
    try:
        data = os.read(fd, LONGEST)
    finally:
        os.close(fd)
    if data.count(b"\n") != 1 or not data.endswith(b"\n"):
        raise ValueError(name)
    return data


def _write(name: str, value: str) -> None:
    fd = _open(name, os.O_WRONLY)
    try:
        os.write(fd, value.encode() + b"\n")
    finally:
        os.close(fd)


def ip(words: list[str]) -> Said | None:
    """`link set DEV mtu N`."""
    if len(words) != 5 or words[:2] != ["link", "set"] or words[3] != "mtu" or not words[4].isdigit():
        return None
    dev = words[2].encode()
    if not 0 < len(dev) < 16:
        return None
    sock = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM | _socket.SOCK_CLOEXEC)
    try:
        fcntl.ioctl(sock, SIOCSIFMTU, struct.pack("16si20x", dev, int(words[4])))
    finally:
        sock.close()
    return 0, b""


def ethtool(words: list[str]) -> Said | None:
    """`-K DEV gro on|off`."""
    if len(words) != 4 or (words[0], words[2]) != ("-K", "gro") or words[3] not in ("on", "off"):
        return None
    return (0, b"") if Nic(words[1]).gro(words[3] == "on") else None
