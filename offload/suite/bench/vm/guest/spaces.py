"""Network namespaces by name, and the way in and out of them for the agent's only thread."""

from __future__ import annotations

import ctypes
import errno
import os

CLONE_NEWNS = 0x00020000
LIBC = ctypes.CDLL(None, use_errno=True)  # os.setns and os.unshare come with Python 3.12 only


def check(result: int) -> None:
    """Raise what the C library noted if a call failed."""
    if result != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


class Namespaces:
    """Named network namespaces, each with its own /sys, and the way in and out of them."""

    def __init__(self) -> None:
        self._home = (-1, -1)
        self._known: dict[str, tuple[int, int]] = {}
        self._away = False

    def make(self, names: list[str]) -> None:
        """Take over network namespaces that `ip netns add` made; mount a /sys that shows their devices."""
        self._home = (os.open("/proc/self/ns/net", os.O_RDONLY), os.open("/proc/self/ns/mnt", os.O_RDONLY))
        for name in names:
            net = os.open(f"/run/netns/{name}", os.O_RDONLY)
            self._away = True
            check(LIBC.unshare(CLONE_NEWNS))
            self._setns(net)
            for kind, where in (
                ("sysfs", "/sys"),
                ("debugfs", "/sys/kernel/debug"),
                ("tracefs", "/sys/kernel/tracing"),
            ):
                check(LIBC.mount(kind.encode(), where.encode(), kind.encode(), 0, None))
            self._known[name] = (net, os.open("/proc/self/ns/mnt", os.O_RDONLY))
            self.leave()

    def _setns(self, fd: int) -> None:
        check(LIBC.setns(fd, 0))

    def enter(self, name: str) -> None:
        """Go into a namespace; "" or "root" is where the agent lives."""
        if name not in ("", "root"):
            if name not in self._known:
                raise OSError(errno.ENOENT, f"no namespace {name}")
            self._away = True
            self._setns(self._known[name][1])
            self._setns(self._known[name][0])

    def leave(self) -> None:
        """Come home; harmless there."""
        if self._away:
            self._setns(self._home[1])
            self._setns(self._home[0])
            self._away = False
