"""The storage's peer sends a KeyUpdate. No kernel and no tlshd ever does, so a program does it in its place.

tlshd owns a connection during the handshake only. Meanwhile the program takes a file descriptor of the same
socket (pidfd_getfd). It later sends the record by that, and the kernel encrypts it as the next one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from offload.errors import RigError
from offload.host.base import Process
from tests.lib.flow.storage import SOON
from tests.lib.rig.rig import Rig

# pidfd_getfd is system call 438; SOL_TLS 282, TLS_SET_RECORD_TYPE 1, handshake 22; update_not_requested
SENDER = """
import ctypes, os, select, socket, sys
libc, others, seen, held = ctypes.CDLL(None, use_errno=True), {os.getpid()}, set(), []
def daemons():
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        if pid not in others:
            line = open(f"/proc/{pid}/cmdline", "rb").read()
            if sys.argv[1].encode() in line: yield pid
            else: others.add(pid)
def take(pid):
    for fd in os.listdir(f"/proc/{pid}/fd"):
        name = os.readlink(f"/proc/{pid}/fd/{fd}")
        if not name.startswith("socket:") or name in seen: continue
        of = os.pidfd_open(pid)
        mine = libc.syscall(438, of, int(fd), 0)
        os.close(of)
        if mine < 0: continue
        seen.add(name)
        one = socket.socket(fileno=mine)
        if one.family in (socket.AF_INET, socket.AF_INET6) and one.type == socket.SOCK_STREAM:
            held.append(one); print("held", len(held), flush=True)
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
while not select.select([sys.stdin], [], [], 0.002)[0]:
    for pid in daemons():
        try: take(pid)
        except OSError: pass
held[-1].sendmsg([bytes.fromhex("1800000100")], [(282, 1, bytes([22]))])
print("sent", flush=True)
"""
# milliseconds until a request of NVMe times out; the kernel's default is 30 s
IMPATIENT = "for one in /sys/class/nvme/nvme*/nvme*n1/queue/io_timeout; do echo {} >$one; done"


@dataclass
class Sender:
    """Holds the peer's end of each connection for which tlshd made the handshake."""

    process: Process

    def sends(self, connections: int) -> None:
        """Send it on the last of at least so many connections: a client on a busy machine may begin anew."""
        held = self.process.output()[0].count(b"held")
        if held < connections:
            raise RigError(f"{held} connections are held, not {connections}")
        self.process.stdin(b"\n", eof=True)
        done = self.process.wait(SOON)
        assert b"sent" in done.stdout, done.stderr.decode("utf-8", "replace")


@contextmanager
def sender(rig: Rig) -> Iterator[Sender]:
    """Begin it before the connections, so that it meets their handshakes."""
    process = rig.bench.peer.host.start(["python3", "-u", "-c", SENDER, "/run/tlshd-peer/conf"])
    try:
        yield Sender(process)
    finally:
        process.kill()
