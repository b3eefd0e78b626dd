"""Memory files whose growth wakes the agent: looking a hundred times a second took 13 % of a guest core."""

from __future__ import annotations

import os

from offload.suite.bench.vm.guest.spaces import LIBC

IN_MODIFY, IN_ONESHOT = 0x2, 0x80000000  # include/uapi/linux/inotify.h
# inotify says nothing of files of memfd_create(2) since Linux 6.14 (alloc_file_pseudo in fs/file_table.c)
TMPFS = next((folder for folder in ("/dev/shm", "/run") if os.access(folder, os.W_OK)), "")


def memory_file(name: str) -> int:
    """A new file in memory, which nobody else finds."""
    if TMPFS:
        return os.open(TMPFS, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
    return os.memfd_create(name)


class Growth:
    """Wakes the poller of `fd` when a file grows. `fd` is -1 if the host has no inotify instance left."""

    def __init__(self) -> None:
        self.fd: int = LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC) if TMPFS else -1

    def expect(self, *files: int) -> bool:
        """Say whether the next write to one of these memory files will wake."""
        return self.fd >= 0 and all(self._watch(file) >= 0 for file in files)

    def _watch(self, file: int) -> int:
        path = f"/proc/self/fd/{file}".encode()
        number: int = LIBC.inotify_add_watch(self.fd, path, IN_MODIFY | IN_ONESHOT)
        return number

    def woken(self) -> None:
        """Take what woke: which file it was is not asked."""
        try:  # noqa: SIM105 - contextlib is one more import in every boot
            os.read(self.fd, 65536)
        except BlockingIOError:
            pass
