"""A host that is this machine, or one network namespace of it."""

from __future__ import annotations

import os
import subprocess
import time
import weakref
from collections.abc import Mapping, Sequence
from contextlib import suppress
from errno import ENOENT
from pathlib import Path

from offload.cmd import environment, interrupts_wait, kill_group, run
from offload.errors import TimedOut
from offload.host.base import Completed, Process

HANGUP = 1  # SIGHUP; the module costs start-up time
SPACED = ("/proc/net/", "/proc/sys/net/", "/sys/class/net/")  # differ by network namespace
LOOK = 0.01  # seconds between looks at the outputs of a background command


def _unlinked() -> int:
    """Return a descriptor of a temporary file that has no name any more."""
    import tempfile  # costs more than the rest of this file, and most verbs start nothing

    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


def _lost(child: subprocess.Popen[bytes]) -> None:
    """End a command whose LocalProcess is gone: an interrupt came before its undo was noted."""
    if child.poll() is None:
        kill_group(child.pid, 15)
        try:
            child.wait(5)
        except subprocess.TimeoutExpired:
            kill_group(child.pid)
    with suppress(BrokenPipeError):
        assert child.stdin is not None
        child.stdin.close()


class LocalProcess:
    """A background command here; its outputs go to unlinked temporary files, so that nothing blocks.

    It ends with this object, whatever became of the caller.
    """

    def __init__(self, argv: Sequence[str], env: Mapping[str, str] | None, where: str) -> None:
        self._argv, self._where, self._began = tuple(argv), where, time.monotonic()
        self._outputs, self._seen = tuple(_unlinked() for _ in range(2)), 0
        weakref.finalize(self, _close, self._outputs)
        with interrupts_wait():
            self._child = subprocess.Popen(
                self._argv,
                stdin=subprocess.PIPE,
                stdout=self._outputs[0],
                stderr=self._outputs[1],
                env=environment(env),
                start_new_session=True,
            )
            weakref.finalize(self, _lost, self._child)
        self.pid = self._child.pid

    def running(self) -> bool:
        """Say whether it has not ended yet."""
        return self._child.poll() is None

    def stdin(self, data: bytes, *, eof: bool = False) -> None:
        """Write to its standard input; close it after if `eof`."""
        assert self._child.stdin is not None
        with suppress(BrokenPipeError):
            self._child.stdin.write(data)
            self._child.stdin.flush()
        if eof:
            self._child.stdin.close()

    def output(self) -> tuple[bytes, bytes]:
        """Standard output and error so far."""
        out, err = (os.pread(fd, 1 << 26, 0) for fd in self._outputs)
        self._seen = len(out) + len(err)
        return out, err

    def news(self, patience: float) -> tuple[bytes, bytes]:
        """Both outputs, once there is more than was seen before; see Process.news."""
        deadline = time.monotonic() + patience
        while self.running() and time.monotonic() < deadline:
            if sum(os.fstat(fd).st_size for fd in self._outputs) > self._seen:
                break
            time.sleep(LOOK)
        return self.output()

    def wait(self, timeout: float) -> Completed:
        """Wait until it ends; RigError after `timeout` seconds (it is then killed)."""
        with suppress(BrokenPipeError):
            if self._child.stdin:
                self._child.stdin.close()
        try:
            rc = self._child.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill(9)
            raise TimedOut(f"timed out after {timeout:g} s: {' '.join(self._argv)}") from None
        return Completed(self._argv, rc, *self.output(), time.monotonic() - self._began, self._where)

    def kill(self, signal: int = 15) -> None:
        """Signal its process group; reap it, unless it was only told to read its configuration again."""
        if signal == HANGUP:
            kill_group(self.pid, signal)
            return
        with suppress(BrokenPipeError):
            if self._child.stdin:
                self._child.stdin.close()
        if self.running():
            kill_group(self.pid, signal)
            with suppress(subprocess.TimeoutExpired):
                self._child.wait(5)


class LocalHost:
    """This machine; with `netns`, commands run inside that network namespace (`ip netns exec`)."""

    def __init__(self, netns: str | None = None) -> None:
        self.name = netns or "here"
        self._prefix = ("ip", "netns", "exec", netns) if netns else ()

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes = b"",
        timeout: float = 60.0,
        check: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run to the end; see Host.run."""
        rc, out, err, seconds = run([*self._prefix, *argv], input=input, timeout=timeout, env=env)
        done = Completed(tuple(argv), rc, out, err, seconds, self.name)
        return done.checked() if check else done

    def start(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> Process:
        """Start in the background; see Host.start."""
        return LocalProcess([*self._prefix, *argv], env, self.name)

    def read(self, path: str) -> bytes:
        """Return a file's bytes, as this namespace has it."""
        if self._prefix and path.startswith(SPACED):
            done = self.run(["cat", path], check=False)
            if done.rc:
                raise FileNotFoundError(ENOENT, "no such file in the network namespace", path)
            return done.stdout
        return Path(path).read_bytes()

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Create or replace a file with exactly this mode."""
        target = Path(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode)
        with os.fdopen(fd, "wb") as out:
            os.fchmod(out.fileno(), mode)
            out.write(data)
