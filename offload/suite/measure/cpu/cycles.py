"""How many cycles the CPUs of a host spent, where its kernel and CPU let us count them; else why not."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from offload.cmd import wait_until
from offload.errors import RigError
from offload.host.base import Host, Process
from offload.paths import PACKAGE

READER = PACKAGE / "suite/measure/cpu/cycles_reader.py"
PYTHON = ["/usr/bin/python3", "-I", "-S", "-c"]
U64 = 2**64 - 1


@dataclass(frozen=True)
class Cycles:
    """Cycles of each CPU so far, with the ns for which the counter was wanted and really counted."""

    host: str
    cpus: Mapping[int, tuple[int, int, int]]

    def __sub__(self, before: Cycles) -> dict[int, int]:
        return difference(before, self)


class Counter:
    """Counts on a host; where it cannot, `absent` says why, and there are no snapshots."""

    def __init__(
        self, host: Host, process: Process | None, absent: str = "", what: str = "the cycle counter"
    ) -> None:
        self.host, self.absent, self._process, self._what = host, absent, process, what
        self._lines = 0

    def snapshot(self) -> Cycles:
        """Cycles so far. RigError if there is no counter, or it ended."""
        if self.absent or self._process is None:
            raise RigError(f"no cycles on {self.host.name}: {self.absent}")
        self.ask()
        return Cycles(self.host.name, _values(self.line(), self.host.name))

    def ask(self) -> None:
        """Ask for a line."""
        assert self._process is not None
        self._process.stdin(b"\n")

    def line(self) -> bytes:
        """Wait for the next line that the reader says. RigError in its own words if it ended instead."""
        assert self._process is not None
        process, found = self._process, self._lines
        wait_until(lambda: len(self._said()) > found or not process.running(), 30, self._what, 0.01)
        if len(self._said()) <= found:
            why = process.output()[1].decode("utf-8", "replace").strip()[-300:]
            raise RigError(f"{self._what} on {self.host.name} ended: {why or 'no message'}")
        self._lines += 1
        return self._said()[found]

    def _said(self) -> list[bytes]:
        assert self._process is not None
        return self._process.output()[0].split(b"\n")[:-1]


@contextmanager
def counting(host: Host) -> Iterator[Counter]:
    """Count while the block runs; it always runs: look at `absent` before a snapshot."""
    try:
        process = host.start([*PYTHON, READER.read_text("utf-8")])
    except OSError as exc:
        yield Counter(host, None, f"cannot run {PYTHON[0]}: {exc.strerror}")
        return
    try:
        yield _begun(host, process)
    finally:
        process.kill(9)


def _begun(host: Host, process: Process) -> Counter:
    """A counter after its first line."""
    counter = Counter(host, process)
    try:
        first = answer(counter.line(), "the cycle counter", host.name)
    except RigError as exc:
        first = {"absent": str(exc)}
    if first.keys() != {"cpus"}:
        counter.absent = str(first.get("absent", "the answer makes no sense"))[:300]
    return counter


def answer(line: bytes, what: str, where: str) -> dict[str, Any]:
    """Return what a reader's line says. RigError if it is no JSON object."""
    try:
        said = json.loads(line)
    except ValueError:
        said = None
    if not isinstance(said, dict):
        raise RigError(f"{what} on {where} said {line[:80]!r}, wanted a JSON object")
    return said


def _values(line: bytes, where: str) -> dict[int, tuple[int, int, int]]:
    """The counters of a line."""
    found: dict[int, tuple[int, int, int]] = {}
    for cpu, values in answer(line, "the cycle counter", where).items():
        fits = isinstance(values, list) and [type(v) for v in values] == [int] * 3
        if not fits or not cpu.isdecimal() or not all(0 <= v <= U64 for v in values):
            raise RigError(
                f"the cycle counter on {where} said of CPU {cpu[:9]!r} {values!r:.60}, wanted three numbers"
            )
        found[int(cpu)] = tuple(values)
    return found


def difference(before: Cycles, after: Cycles) -> dict[int, int]:
    """Cycles of every CPU between two snapshots, scaled up where the counter was shared.

    RigError for other CPUs, a counter that went back, or one that did not count.
    """
    if before.host != after.host or before.cpus.keys() != after.cpus.keys():
        raise RigError(
            f"cycles of other CPUs: {sorted(before.cpus)}, then {sorted(after.cpus)} ({after.host})"
        )
    found = {}
    for cpu, now in after.cpus.items():
        cycles, wanted, counted = (b - a for a, b in zip(before.cpus[cpu], now, strict=True))
        if min(cycles, wanted, counted) < 0 or counted > wanted:
            raise RigError(f"cycles of cpu{cpu} went back ({after.host})")
        if counted == 0:
            raise RigError(
                f"cycles of cpu{cpu} were not counted ({after.host})", "another user of perf has them"
            )
        found[cpu] = round(cycles * wanted / counted)
    return found
