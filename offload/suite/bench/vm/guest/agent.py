"""The first process of the lab VM: takes commands as JSON lines on virtio-serial ports and answers them.

A request is {"id": n, "op": name, "ns": namespace, ...}; the answer carries the same id, and there is none to
the id null. Bytes are base64.
"""

from __future__ import annotations

import errno
import json
import os
import select
import signal
import sys
import time

from offload.suite.bench.vm.guest.direct import named, opened
from offload.suite.bench.vm.guest.growth import Growth
from offload.suite.bench.vm.guest.job import Job
from offload.suite.bench.vm.guest.port import LONGEST, Port, b64, unb64
from offload.suite.bench.vm.guest.spaces import LIBC, Namespaces, check

TYPE_CHECKING = False
if TYPE_CHECKING:
    from offload.suite.bench.vm.guest.known import Known
    from offload.suite.bench.vm.guest.port import Message

BASE_ENV = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "HOME": "/root",
    "LC_ALL": "C",
    "TERM": "dumb",
    "PYTHONDONTWRITEBYTECODE": "1",
}


MS_MOVE = 0x2000
PIECES = 16  # of at most 4 KiB that a terminal shows before others have their turn
REST = 64  # the same at a program's end: more than a terminal can hold back
LOOK = 0.01  # seconds between looks at outputs that are waited for, on a host without inotify


class Agent:
    """The loop: ports, jobs, and one method per operation (op_*); None means that the answer comes later."""

    def __init__(self, fds: list[int], direct: dict[str, str] | None = None) -> None:
        self.ports = [Port(fd) for fd in fds]
        self.direct = direct or {}  # ports by name, for one program each
        self.jobs: dict[int, Job] = {}
        self.spaces = Namespaces()
        self.known: Known | None = None  # answers without a program; only `main` has it
        self.env = {**BASE_ENV, **{k: os.environ[k] for k in ("TMPDIR",) if k in os.environ}}
        self.idle = 0.0  # seconds without a request that end the VM (0: none do)
        self.asked = time.monotonic()
        self.poll = select.epoll()
        for port in self.ports:  # edge-triggered: a port without a client is readable (EOF) for ever
            self.poll.register(port.fd, select.EPOLLIN | select.EPOLLOUT | select.EPOLLET)
        self.growth = Growth()
        if self.growth.fd >= 0:
            self.poll.register(self.growth.fd, select.EPOLLIN)
        self._wake, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.poll.register(self._wake, select.EPOLLIN)
        signal.set_wakeup_fd(wake)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def run(self, until_eof: bool = False) -> None:
        """Serve for ever; or, for tests over sockets, until every client has gone."""
        gone: set[int] = set()
        while not until_eof or len(gone) < len(self.ports):
            by_fd = {port.fd: port for port in self.ports}
            again = {port.fd for port in self.ports if port.doubtful}
            ready = self._ready()
            for fd in (ready | again) & by_fd.keys():
                if not self._talk(by_fd[fd]):
                    gone.add(fd)
            for job in [j for j in self.jobs.values() if j.terminal in ready or j.hung_up]:
                job.show(PIECES)
            if self._wake in ready:  # a child has ended
                os.read(self._wake, 4096)
                self._reap()
            self._overdue()
            self._tire()
            self._serve()

    def _serve(self) -> None:
        """Give each job its input, and those who wait for it what it says; most jobs need neither."""
        for job in list(self.jobs.values()):
            if job.to_stdin:
                self._feed(job)
            if job.terminal >= 0:
                self._watch(job)
            if job.watchers:
                job.expected = job.expected or self.growth.expect(job.out, job.err)
                job.look()

    def _ready(self) -> set[int]:
        """Files that can be read or written; none if an output grew or somebody has waited long enough."""
        ready = {fd for fd, _ in self.poll.poll(self._patience())}
        if self.growth.fd in ready:
            self.growth.woken()
            for job in self.jobs.values():
                job.expected = False
        return ready

    def _patience(self) -> float:
        """Seconds until the next deadline; at most one, to write what is left over; few if in doubt."""
        if any(port.doubtful for port in self.ports):
            return 0.05
        now, ends = time.monotonic(), [1.0]
        for job in self.jobs.values():
            if job.deadline and job.rc is None:
                ends.append(job.deadline - now)
            ends += [until - now for _, _, until in job.watchers]
            if job.watchers and not job.expected:
                ends.append(LOOK)
        return max(0.0, min(ends))

    def _talk(self, port: Port) -> bool:
        port.flush()
        lines, present = port.read_lines()
        if not present:
            self._end_session(port)
        for line in lines:
            self._request(port, line)
        return present

    def _request(self, port: Port, line: bytes) -> None:
        """Answer one line; what is not a request is left alone."""
        try:
            message = json.loads(line)
            number, name = message["id"], message["op"]
            operation = getattr(self, f"op_{name}")
            self.asked = time.monotonic()
        except (ValueError, KeyError, TypeError, AttributeError):
            return
        try:
            self.spaces.enter(message.get("ns", ""))
            answer = operation(port, message)
        except Exception as exc:  # a request must never end the first process of the VM
            known = isinstance(exc, OSError) and exc.errno
            answer = {"error": os.strerror(known) if known else repr(exc), "errno": known or None}
        finally:
            self.spaces.leave()
        if answer is not None and number is not None:
            port.send({"id": number, **answer})

    def _end_session(self, port: Port) -> None:
        """The client is gone: end what it started."""
        port.forget()
        for job in [j for j in self.jobs.values() if j.owner is port]:
            job.waiters.clear()
            job.watchers.clear()
            job.abandoned = True
            job.kill(signal.SIGKILL)
            if job.rc is not None:
                self._drop(job)

    def _reap(self) -> None:
        """Note every child that ended; orphans come to us too."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for job in [j for j in self.jobs.values() if j.pid == pid and j.rc is None]:
                job.rc, job.seconds = os.waitstatus_to_exitcode(status), time.monotonic() - job.began
                self._ended(job)

    def _ended(self, job: Job) -> None:
        job.look()
        self._learn(job)
        if job.terminal >= 0:
            job.show(REST)
            job.owner.send({"event": "end", "job": job.number, "rc": job.rc})
        for number, since in job.waiters:
            job.owner.send({"id": number, **job.report(since)})
        if job.waiters or job.abandoned or job.terminal >= 0:
            self._drop(job)

    def _learn(self, job: Job) -> None:
        """Let what it printed be known, if it ended well."""
        if self.known and job.known_by and job.rc == 0 and not os.fstat(job.err).st_size:
            try:
                self.spaces.enter(job.space)
                self.known.learn(job.argv, job.known_by, os.pread(job.out, os.fstat(job.out).st_size, 0))
            finally:
                self.spaces.leave()

    def _drop(self, job: Job) -> None:
        self.jobs.pop(job.number, None)
        job.close()  # closing takes its files out of the poll as well

    def _tire(self) -> None:
        """End the VM if that was wanted for one that nobody uses; a command that runs is a use."""
        if not self.idle or time.monotonic() < self.asked + self.idle:
            return
        if all(job.rc is not None for job in self.jobs.values()):
            power_off()

    def _overdue(self) -> None:
        now = time.monotonic()
        for job in self.jobs.values():
            if job.rc is None and job.deadline and now >= job.deadline:
                job.timed_out, job.deadline = True, None
                job.kill(signal.SIGKILL)

    def _watch(self, job: Job) -> None:
        """Be woken by what a terminal shows, while a program has it open and the client keeps up."""
        want = job.terminal >= 0 and not job.hung_up and not job.owner.behind
        if want and not job.watched:
            self.poll.register(job.terminal, select.EPOLLIN)
        elif job.watched and not want:
            self.poll.unregister(job.terminal)
        job.watched = want

    def _feed(self, job: Job) -> None:
        """Write a job's input; ask to be woken for the rest."""
        job.pump()
        want = bool(job.stdin >= 0 and job.to_stdin)
        if want and not job.polled:
            self.poll.register(job.stdin, select.EPOLLOUT)
        elif job.polled and not want and job.stdin >= 0:
            self.poll.unregister(job.stdin)
        job.polled = want

    def _spawn(self, job: Job, message: Message, stdin: int) -> Job:
        """Start a job and own it; its number is known from now on."""
        try:
            job.spawn({**self.env, **message.get("env", {})}, stdin)
        except OSError:
            job.close()
            raise
        finally:
            os.close(stdin)
        self.jobs[job.number] = job
        return job

    def _job(self, message: Message) -> Job:
        if message["job"] not in self.jobs:
            raise OSError(errno.ESRCH, "no such job")
        return self.jobs[message["job"]]

    def op_hello(self, port: Port, message: Message) -> Message:
        """A client begins: end everything that an earlier one left on this port."""
        self._end_session(port)
        return {"nonce": message["nonce"], "release": os.uname().release, "python": sys.version.split()[0]}

    def op_idle(self, port: Port, message: Message) -> Message:
        """Switch the VM off after this many seconds in which nobody asked for anything and no command ran."""
        self.idle = message["seconds"]
        return {}

    def op_root(self, port: Port, message: Message) -> Message:
        """Make a mounted tree the root of everything, as switch_root does; the clock is the host's."""
        os.chdir(message["path"])
        check(LIBC.mount(b".", b"/", None, MS_MOVE, None))
        os.chroot(".")
        os.chdir("/")
        time.clock_settime(time.CLOCK_REALTIME, message["now"])
        return {}

    def op_namespaces(self, port: Port, message: Message) -> Message:
        """Take over named network namespaces."""
        self.spaces.make(message["names"])
        return {}

    def op_run(self, port: Port, message: Message) -> Message | None:
        """Run to the end; one answer with everything. All is in memory files: nothing can block."""
        began = time.monotonic()
        plain = self.known if not message.get("input") and not message.get("env") else None
        if plain and (said := plain.answer(message["argv"])):
            took = time.monotonic() - began
            return {"rc": said[0], "out": b64(said[1]), "err": "", "seconds": took, "timed_out": False}
        stdin = os.memfd_create("in") if message.get("input") else os.open(os.devnull, os.O_RDONLY)
        if message.get("input"):
            with os.fdopen(os.dup(stdin), "wb") as file:
                file.write(unb64(message["input"]))
            os.lseek(stdin, 0, os.SEEK_SET)
        known_by = plain.key(message["argv"]) if plain else None
        job = self._spawn(Job(port, message["argv"]), message, stdin)
        job.known_by, job.space = known_by, message.get("ns", "")
        job.waiters.append((message["id"], (0, 0)))
        job.deadline = job.began + message["timeout"]
        return None

    def op_start(self, port: Port, message: Message) -> Message:
        """Start in the background, with a pipe as input, or on a port that the client has open."""
        direct = message.get("direct", "")
        if direct:
            theirs = opened(self.direct[direct])
            return self._spawn(Job(port, message["argv"], direct=True), message, theirs).report()
        stdin, theirs = os.pipe2(os.O_CLOEXEC)[::-1]
        job = Job(port, message["argv"])
        job.stdin = stdin
        os.set_blocking(stdin, False)
        return self._spawn(job, message, theirs).report()

    def op_terminal(self, port: Port, message: Message) -> Message:
        """Start on a terminal of its own; what it shows comes as events."""
        job = Job(port, message["argv"])
        job.terminal, theirs = os.openpty()
        job.stdin = os.dup(job.terminal)
        os.set_blocking(job.terminal, False)
        self._resize(theirs, message)
        self._spawn(job, message, theirs)
        return {"job": job.number}

    def op_resize(self, port: Port, message: Message) -> Message:
        """The client's window has another size."""
        self._resize(self._job(message).terminal, message)
        return {}

    def _resize(self, fd: int, message: Message) -> None:
        import fcntl
        import struct
        import termios

        fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", message["rows"], message["columns"], 0, 0))

    def op_stdin(self, port: Port, message: Message) -> Message:
        """Give a job input, and perhaps the end of it."""
        job = self._job(message)
        job.to_stdin += unb64(message.get("data", ""))
        job.stdin_eof = job.stdin_eof or bool(message.get("eof"))
        self._feed(job)
        return {}

    def op_output(self, port: Port, message: Message) -> Message | None:
        """State and outputs since the offsets given; with `wait`, when there are some, or after this long."""
        job, since = self._job(message), tuple(message.get("since", (0, 0)))
        if job.rc is None and message.get("wait", 0) > 0 and not job.grown(since):
            job.watchers.append((message["id"], since, time.monotonic() + message["wait"]))
            return None
        return job.report(since)

    def op_wait(self, port: Port, message: Message) -> Message | None:
        """Answer when it has ended; kill it after the time-out."""
        job = self._job(message)
        since = tuple(message.get("since", (0, 0)))
        if job.rc is not None:
            answer = job.report(since)
            self._drop(job)
            return answer
        job.waiters.append((message["id"], since))
        job.deadline = time.monotonic() + message["timeout"]
        return None

    def op_kill(self, port: Port, message: Message) -> Message:
        """Signal a job's process group, even if its first process has ended."""
        self._job(message).kill(message["signal"])
        return {}

    def op_read(self, port: Port, message: Message) -> Message:
        """A file's bytes, piece by piece: a sysctl answers a read of many MiB with ENOMEM."""
        data = b""
        with open(message["path"], "rb", 0) as file:  # noqa: PTH123 - pathlib costs a third of a second over 9p
            while len(data) < LONGEST // 2 and (piece := file.read(65536)):
                data += piece
        return {"data": b64(data)}

    def op_write(self, port: Port, message: Message) -> Message:
        """Create or replace a file with exactly this mode."""
        os.makedirs(os.path.dirname(message["path"]) or "/", exist_ok=True)  # noqa: PTH103, PTH120
        fd = os.open(message["path"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC, message["mode"])
        with os.fdopen(fd, "wb") as file:
            if not message["path"].startswith(("/proc/", "/sys/")):  # the kernel's files keep their own mode
                os.fchmod(fd, message["mode"])
            file.write(unb64(message["data"]))
        return {}


def power_off() -> None:
    """End the VM: reboot(2) with LINUX_REBOOT_CMD_POWER_OFF; outside of one (tests) only this program."""
    if os.getpid() != 1:
        raise SystemExit
    check(LIBC.reboot(0x4321FEDC))


def main(argv: list[str]) -> None:
    """Serve the VM's ports for ever, or (tests) the inherited sockets `argv` until all are closed."""
    from offload.suite.bench.vm.guest.known import (
        Known,  # only here: what goes to a host by ssh is without it
    )

    found = named()
    labs = [
        os.open(path, os.O_RDWR | os.O_NONBLOCK) for name, path in found.items() if name.startswith("lab")
    ]
    agent = Agent([int(fd) for fd in argv] or labs, found)
    agent.known = Known(BASE_ENV["PATH"])
    agent.run(until_eof=bool(argv))
