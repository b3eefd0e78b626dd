"""What a certification run says and writes as it goes: phases for a person, events for the report."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from offload.errors import RigError
from offload.suite.certify.tests import uninterrupted
from offload.suite.report.events import Writer, resume
from offload.suite.report.trust.saved import EVENTS

PHASES = 6
Say = Callable[[str], None]


class Log:
    """The terminal of a run and its file of events. RigError if that cannot be written."""

    def __init__(self, out: Path, say: Say) -> None:
        self.say, self._file = say, out / EVENTS
        self._began, self._events = time.monotonic(), Writer(self._file)

    def event(self, kind: str, /, **fields: Any) -> None:
        """Write an event."""
        self._events.write(kind, **fields)

    def note(self, line: str) -> None:
        """Say a line below the phase."""
        self.say(f"      {line}\n")

    def head(self, name: str, number: int) -> None:
        """Announce a phase."""
        self.say(f"[{number}/{PHASES}] {name}\n")

    @contextmanager
    def phase(self, name: str, number: int) -> Iterator[None]:
        """Announce a phase, time it, and write it among the events however it ends."""
        began = time.monotonic()
        self.head(name, number)
        try:
            yield
        finally:
            took, whole = time.monotonic() - began, time.monotonic() - self._began
            self.event("phase", name=name, seconds=round(took, 3))
            self.note(f"{name}: {took:.1f} s (total {whole:.0f} s)")

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Leave the file of events to the tests, and go on behind what they wrote."""
        self._events.close()
        try:
            yield
        finally:
            with uninterrupted():  # what ends the run must be written, too
                self._events = resume(self._file)

    def aborted(self, exc: BaseException) -> None:
        """Write down why the run ended early."""
        reason = "interrupted" if isinstance(exc, KeyboardInterrupt) else str(exc).partition("\n")[0]
        with suppress(RigError):  # a full disk is the reason itself
            self.event("abort", reason=reason or type(exc).__name__)

    def close(self, peak: int) -> None:
        """Write the memory that the run took at most, in bytes, and close the file."""
        with suppress(RigError):  # on a full disk the report says so
            self.event("memory", peak=peak)
        self._events.close()
