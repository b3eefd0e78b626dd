"""What runs on a host reached by ssh: the lab's agent, on the session's standard input and output.

It goes there as source through the session itself (reach.py) and leaves no file. Standard library only.
"""

from __future__ import annotations

import ctypes
import os
import signal

from offload.suite.bench.vm.guest.agent import BASE_ENV, Agent
from offload.suite.bench.vm.guest.port import Port
from offload.suite.bench.vm.guest.spaces import CLONE_NEWNS, LIBC, Namespaces, check

MS_REC, MS_PRIVATE = 0x4000, 0x40000
# debugfs and tracefs are for looking only: a locked-down kernel has neither
MOUNTS = (
    ("sysfs", "/sys", True),
    ("debugfs", "/sys/kernel/debug", False),
    ("tracefs", "/sys/kernel/tracing", False),
)


class Spaces(Namespaces):
    """Network namespaces of a host that others use too: what we mount is seen by us alone."""

    def make(self, names: list[str]) -> None:
        """Take over namespaces that `ip netns add` made. OSError if there is none of that name."""
        self._home = (os.open("/proc/self/ns/net", os.O_RDONLY), os.open("/proc/self/ns/mnt", os.O_RDONLY))
        for name in names:
            net = os.open(f"/run/netns/{name}", os.O_RDONLY)
            self._away = True
            check(LIBC.unshare(CLONE_NEWNS))
            # systemd shares every mount (mount_namespaces(7)): without this the host would get our /sys
            check(LIBC.mount(None, b"/", None, ctypes.c_ulong(MS_REC | MS_PRIVATE), None))
            self._setns(net)
            for kind, where, needed in MOUNTS:
                done = LIBC.mount(kind.encode(), where.encode(), kind.encode(), ctypes.c_ulong(0), None)
                if needed:
                    check(done)
            self._known[name] = (net, os.open("/proc/self/ns/mnt", os.O_RDONLY))
            self.leave()


class Line(Port):
    """A line whose answers go out by another descriptor, which may block: our end always reads."""

    def flush(self) -> None:
        """Write what is queued."""
        try:
            while self._out:
                del self._out[: os.write(1, self._out[: 1 << 15])]
        except OSError:
            self._out.clear()


def main() -> None:
    """Serve standard input until it ends; then every job is killed."""
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # the end of input says the same, and jobs are ended then
    one = os.path.sameopenfile(
        0, 1
    )  # OpenSSH gives a session one socket for both; sudo may put pipes between
    os.environ["PATH"] = BASE_ENV["PATH"]  # posix_spawnp(3) looks in ours, not in the child's
    agent = Agent([0])
    agent.spaces = Spaces()
    agent.env |= {name: os.environ[name] for name in ("HOME", "SSH_CONNECTION") if name in os.environ}
    if not one:
        agent.ports = [Line(0)]
    agent.run(until_eof=True)
