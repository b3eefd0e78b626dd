"""What a test spends its time on: seconds of switching, traffic, wire proof, the guest, and waiting.

`watch(Class, kind)` times every public method of a class. Time inside a method of another kind counts for
that one alone. `waiting` is what is left of a test's time when the processor time of the guest (QEMU's) and
of the test process is taken from it; other work on the same machine makes it longer.
"""

from __future__ import annotations

import functools
import inspect
import os
import time
from collections.abc import Callable
from typing import Any

KINDS = ("set-up", "switch", "traffic", "wire proof", "rest")  # together: all of a test's time
TICKS = os.sysconf("SC_CLK_TCK")  # per second; proc(5), /proc/PID/stat


class Stopwatch:
    """Seconds by kind since the last `take`; inner kinds are taken out of outer ones."""

    def __init__(self) -> None:
        self.found: dict[str, float] = {}
        self._running: list[str] = []
        self._since = 0.0

    def enter(self, kind: str) -> None:
        """Begin a kind; what ran until now stands still."""
        self._lap()
        self._running.append(kind)

    def leave(self) -> None:
        """End the innermost kind."""
        self._lap()
        self._running.pop()

    def _lap(self) -> None:
        now = time.monotonic()
        if self._running:
            kind = self._running[-1]
            self.found[kind] = self.found.get(kind, 0.0) + now - self._since
        self._since = now

    def take(self) -> dict[str, float]:
        """Return the seconds by kind, and begin again."""
        self._lap()
        found, self.found = self.found, {}
        return found


WATCH = Stopwatch()


def watch(cls: type, kind: str) -> None:
    """Time the public methods of a class as this kind."""
    for name, method in list(vars(cls).items()):
        plain = inspect.isfunction(method) and not inspect.isgeneratorfunction(inspect.unwrap(method))
        if plain and not name.startswith("_"):
            setattr(cls, name, _timed(method, kind))


def _timed(method: Callable[..., Any], kind: str) -> Callable[..., Any]:
    @functools.wraps(method)
    def inner(*args: Any, **words: Any) -> Any:
        WATCH.enter(kind)
        try:
            return method(*args, **words)
        finally:
            WATCH.leave()

    return inner


def cpu_of(pid: int) -> float | None:
    """Return the processor seconds of a process, its threads and waited-for children; None if it is gone."""
    if pid <= 0:
        return None
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:  # noqa: PTH123 - once per test
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return None
    return sum(map(int, fields[11:15])) / TICKS


class Spending:
    """One test: made before its set-up, told at its end. `guest`: process id of the VM, 0 for none."""

    def __init__(self, guest: int) -> None:
        self._guest, self._began, self._setup = guest, time.monotonic(), 0.0
        self._cpu = time.process_time(), cpu_of(guest)

    def is_set_up(self) -> None:
        """Note the end of the set-up: what was timed until now is part of it."""
        WATCH.take()
        self._setup = time.monotonic() - self._began

    def seconds(self, guest: int) -> dict[str, float]:
        """Return the seconds by kind; `guest` and `waiting` only where the VM was there all the time."""
        whole, found = time.monotonic() - self._began, {"set-up": self._setup} | WATCH.take()
        ours, theirs = time.process_time() - self._cpu[0], cpu_of(guest)
        found["rest"] = max(0.0, whole - sum(found.values()))
        if guest == self._guest and theirs is not None and self._cpu[1] is not None:
            found["guest"] = theirs - self._cpu[1]
            found["waiting"] = max(0.0, whole - found["guest"] - ours)
        return {kind: round(seconds, 3) for kind, seconds in found.items()}
