"""One command in the guest: its process group, its input, its outputs in memory files."""

from __future__ import annotations

import itertools
import os
import signal
import time

from offload.suite.bench.vm.guest.growth import memory_file
from offload.suite.bench.vm.guest.port import b64

TYPE_CHECKING = False
if TYPE_CHECKING:
    from offload.suite.bench.vm.guest.known import Key
    from offload.suite.bench.vm.guest.port import Message, Port

NUMBERS = itertools.count(1)  # jobs are named by number: a process id comes back too soon


class Job:
    """A command: its process group, its outputs in memory files, who started it and who waits for it."""

    def __init__(self, owner: Port, argv: list[str], direct: bool = False) -> None:
        self.owner, self.argv, self.began = owner, argv, time.monotonic()
        self.direct = direct  # what it reads from is what it prints to: a port, which the client has open
        self.number = next(NUMBERS)
        self.abandoned = False
        self.out, self.err = memory_file("out"), memory_file("err")
        self.pid = 0
        self.rc: int | None = None
        self.seconds = 0.0
        self.deadline: float | None = None
        self.timed_out = False
        self.waiters: list[tuple[int, tuple[int, int]]] = []  # request, output offsets
        self.watchers: list[tuple[int, tuple[int, int], float]] = []  # and until when
        self.expected = False  # the next write to an output wakes the agent
        self.to_stdin, self.stdin, self.stdin_eof = bytearray(), -1, False
        self.polled = False
        self.terminal = -1
        self.watched = self.hung_up = False  # a terminal: in the poll; no program has it open
        self.space = ""  # the namespace that it runs in
        self.known_by: Key | None = None  # what its output depends on (known.py)

    def spawn(self, env: dict[str, str], stdin: int) -> None:
        """Start it as leader of a new session; FileNotFoundError and the like if it cannot be."""
        if self.terminal >= 0:  # opening it after setsid makes it the controlling terminal
            first = [(os.POSIX_SPAWN_OPEN, 0, os.ttyname(stdin), os.O_RDWR, 0)]
            actions = [*first, (os.POSIX_SPAWN_DUP2, 0, 1), (os.POSIX_SPAWN_DUP2, 0, 2)]
        else:
            pairs = ((stdin, 0), (stdin if self.direct else self.out, 1), (self.err, 2))
            actions = [(os.POSIX_SPAWN_DUP2, a, b) for a, b in pairs]
        self.pid = os.posix_spawnp(
            self.argv[0],
            self.argv,
            env,
            file_actions=actions,
            setsid=True,
            setsigmask=[],
            setsigdef=[signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT],
        )

    def kill(self, number: int) -> None:
        """Signal the process group; harmless if it is gone."""
        try:  # noqa: SIM105 - contextlib is one more import in every boot
            os.killpg(self.pid, number)
        except (ProcessLookupError, PermissionError):
            pass

    def pump(self) -> None:
        """Write waiting input; close the pipe at its end."""
        try:
            while self.stdin >= 0 and self.to_stdin:
                del self.to_stdin[: os.write(self.stdin, self.to_stdin[:65536])]
        except BlockingIOError:
            return
        except OSError:
            self.to_stdin.clear()
            self.stdin_eof = True
        if self.stdin >= 0 and self.stdin_eof and not self.to_stdin:
            os.close(self.stdin)
            self.stdin, self.polled = -1, False

    def show(self, most: int) -> None:
        """Pass on what its terminal shows, at most this many pieces: keys are to be heard in between."""
        try:
            for _ in range(most):
                data = os.read(self.terminal, 65536)
                self.owner.send({"event": "data", "job": self.number, "data": b64(data)})
                self.hung_up = False
        except BlockingIOError:  # nothing more now
            self.hung_up = False
        except OSError:  # EIO: the last program on it has closed it, and one may open it again
            self.hung_up = True

    def grown(self, since: tuple[int, int]) -> bool:
        """Say whether there is output beyond these offsets."""
        return any(os.fstat(fd).st_size > at for fd, at in zip((self.out, self.err), since, strict=True))

    def look(self) -> None:
        """Tell those who wait for more, if there is more, it has ended, or their time is over."""
        now, watchers, self.watchers = time.monotonic(), self.watchers, []
        for number, since, until in watchers:
            if self.rc is not None or now >= until or self.grown(since):
                self.owner.send({"id": number, **self.report(since)})
            else:
                self.watchers.append((number, since, until))

    def report(self, since: tuple[int, int] = (0, 0)) -> Message:
        """State and outputs from the given offsets on."""
        size = max(os.fstat(self.out).st_size, os.fstat(self.err).st_size)
        out, err = (os.pread(fd, size, at) for fd, at in zip((self.out, self.err), since, strict=True))
        return {
            "job": self.number,
            "pid": self.pid,
            "rc": self.rc,
            "seconds": self.seconds,
            "timed_out": self.timed_out,
            "out": b64(out),
            "err": b64(err),
        }

    def close(self) -> None:
        """Release what it holds."""
        for fd in (self.out, self.err, self.stdin, self.terminal):
            if fd >= 0:
                os.close(fd)
