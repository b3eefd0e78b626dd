"""What a host can do for us: run a command, start one, read and write a file; and what a bench is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from offload.errors import CommandFailed


@dataclass(frozen=True)
class Completed:
    """A command that ended: `rc` is the exit code (negative: killed by that signal), times in seconds."""

    argv: tuple[str, ...]
    rc: int
    stdout: bytes
    stderr: bytes
    seconds: float
    where: str = "here"

    @property
    def text(self) -> str:
        """Standard output as text."""
        return self.stdout.decode("utf-8", "replace")

    def checked(self) -> Completed:
        """Return self, or raise CommandFailed if the exit code is not 0."""
        if self.rc != 0:
            raise CommandFailed(list(self.argv), self.rc, self.stdout, self.stderr, self.where)
        return self


class Process(Protocol):
    """A command that runs in the background on a host."""

    pid: int

    def running(self) -> bool:
        """Say whether it has not ended yet."""
        ...

    def stdin(self, data: bytes, *, eof: bool = False) -> None:
        """Write to its standard input; close it after if `eof`."""
        ...

    def output(self) -> tuple[bytes, bytes]:
        """Standard output and error so far, without waiting."""
        ...

    def news(self, patience: float) -> tuple[bytes, bytes]:
        """Both outputs, once there is more than was seen before, or it has ended, or after `patience` s."""
        ...

    def wait(self, timeout: float) -> Completed:
        """Wait until it ends; RigError after `timeout` seconds (it is then killed)."""
        ...

    def kill(self, signal: int = 15) -> None:
        """Send a signal to its process group; harmless if it has ended."""
        ...


class Host(Protocol):
    """A machine (or a network namespace of one) on which commands run as root."""

    name: str

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes = b"",
        timeout: float = 60.0,
        check: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run to the end. CommandFailed if `check` and the exit code is not 0; RigError after `timeout` s."""
        ...

    def start(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> Process:
        """Start in the background; the host ends it when the host object's lab or session ends."""
        ...

    def read(self, path: str) -> bytes:
        """Return a file's bytes; FileNotFoundError if there is none."""
        ...

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Create or replace a file with exactly this mode; parent folders are made."""
        ...


@dataclass(frozen=True)
class Side:
    """One end of a bench: the host, its interface and its addresses (without prefix length)."""

    host: Host
    dev: str
    v4: str
    v6: str


@dataclass(frozen=True)
class Bench:
    """DUT and peer, the wire between them (None where nobody can stand on it), and what they are.

    `shared`: both ends are one machine, whose processors do the work of both.
    """

    dut: Side
    peer: Side
    wire: Host | None
    wire_ports: tuple[str, ...] = ()
    simulated: bool = False
    rig: Mapping[str, str] = field(default_factory=dict)
    shared: bool = False
