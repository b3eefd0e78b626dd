"""An answer of a host's program is waited for there, not asked for again and again."""

from __future__ import annotations

from typing import Any, cast

import pytest

from offload.errors import RigError
from offload.host.base import Host, Side
from tests.lib.life.life import ManyConnections

READY = b'{"ready": 7}\n'


class Told:
    """A program's outputs as a host tells of them, one at a look; after the last it has ended."""

    def __init__(self, *outs: bytes) -> None:
        self.name, self.pid, self._outs, self._at, self.asked = "dut", 7, outs, -1, list[str]()

    def start(self, argv: object) -> Told:
        """It is its own process."""
        return self

    def stdin(self, data: bytes, *, eof: bool = False) -> None:
        """Told something."""
        self.asked.append("stdin")

    def news(self, patience: float) -> tuple[bytes, bytes]:
        """The next output."""
        self.asked.append("news")
        self._at = min(self._at + 1, len(self._outs) - 1)
        return b"".join(self._outs[: self._at + 1]), b""

    def running(self) -> bool:
        """Until the last look."""
        self.asked.append("running")
        return self._at < len(self._outs) - 1

    def output(self) -> tuple[bytes, bytes]:
        """All that it said."""
        self.asked.append("output")
        return b"".join(self._outs), b"Traceback"


def connections(*outs: bytes) -> tuple[ManyConnections, Told]:
    """The runner's end of a program that says this."""
    told = Told(READY, *outs)
    return ManyConnections(Side(cast(Host, told), "", "", ""), "many_connections.py"), told


def test_a_look_waits_on_the_host() -> None:
    """One request waits for an answer, and none is made for one that is there."""
    made, told = connections(b'{"a": 1}\n{"b":', b" 2}\n", b"")
    told.asked.clear()
    first, second = made.begin("one"), made.begin("two")
    assert made.answer(second) == {"b": 2} and made.answer(first) == {"a": 1}
    assert told.asked == ["stdin", "stdin", "news", "running", "news"]


def test_last_words_count() -> None:
    """A program that answers and ends has answered; one that only ends is a broken rig."""
    made, told = connections(b'{"a": 1}\n')
    assert made.answer(made.begin("one")) == {"a": 1}
    with pytest.raises(RigError, match="many_connections.py on dut died:\nTraceback"):
        made.answer(made.begin("two"))


def test_what_is_not_awaited_is_looked_up_at_once() -> None:
    """Whether an answer has come is said without waiting for it."""
    made, told = connections(b'{"a": 1}\n')
    asked: Any = told.asked
    asked.clear()
    assert made.answered(1) and not made.answered(2) and asked == ["output", "output"]
