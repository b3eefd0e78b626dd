"""The VM's virtio-serial ports by name, and those that a program has for itself, past the agent."""

from __future__ import annotations

import errno
import os
import select
import time

BASE = "/sys/class/virtio-ports"
PATIENCE = 5.0  # seconds until the kernel has noted that the client has opened its end, or a program has gone


def named() -> dict[str, str]:
    """Return the device of each port by the name that the lab gave it: lab0, own00, ..."""
    found: dict[str, str] = {}
    if not os.path.isdir(BASE):  # noqa: PTH112 - pathlib costs the boot a third of a second
        return found
    for device in sorted(os.listdir(BASE)):  # noqa: PTH208
        with open(f"{BASE}/{device}/name") as file:  # noqa: PTH123
            found[file.read().strip()] = f"/dev/{device}"
    return found


def opened(path: str) -> int:
    """Open a port whose other end the client has open. ENOTCONN if it has not, EBUSY if a program has it.

    The kernel notes the client in a work queue (virtio_console's control_work_handler), and until then a
    program would read the end of its input.
    """
    until, poll, fd = time.monotonic() + PATIENCE, select.poll(), -1
    while fd < 0:
        try:
            fd = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        except OSError as exc:  # the child of a killed program may have it a moment longer
            if exc.errno != errno.EBUSY or time.monotonic() > until:
                raise
            time.sleep(0.001)
    poll.register(fd, 0)  # POLLHUP comes unasked: port_fops_poll in drivers/char/virtio_console.c
    while poll.poll(0):
        if time.monotonic() > until:
            os.close(fd)
            raise OSError(errno.ENOTCONN, os.strerror(errno.ENOTCONN))
        time.sleep(0.001)
    return fd
