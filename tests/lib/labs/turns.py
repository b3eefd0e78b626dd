"""Lets only some labs of a parallel run work at once (--working); the others wait for a turn.

PYTEST_DONT_REWRITE: there is no assert here, and a suite that stays up imports this before conftest names it.
Without turns, six labs on two cores slow each other down until TCP retransmits what is only queued. With two
turns, 30 scenarios took 188 s of processor time (219 and 247 s without them) and the same wall time.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager

import pytest

EVERY = 0.05  # seconds between two looks for a free turn
AGAIN = 0.005  # the same for a test that gave its turn away: it goes on before another one begins


class Turns:
    """`count` turns for all processes that know the name; the kernel frees one whose process dies.

    A turn is a name that one socket has (unix(7), abstract sockets): nothing is left on disk.
    """

    def __init__(self, name: str, count: int) -> None:
        self._names = [f"\0ktls-offload-turn-{name}-{number}" for number in range(count)]
        self._held: socket.socket | None = None

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Wait for a free turn, and hold it."""
        self._take()
        try:
            yield
        finally:
            self._leave()

    @contextmanager
    def silent(self) -> Iterator[None]:
        """Give the turn away meanwhile, and take one again afterwards, if the caller has one."""
        held = self._held is not None
        self._leave()
        try:
            yield
        finally:
            if held:
                self._take(AGAIN)

    def _take(self, every: float = EVERY) -> None:
        while self._names and self._held is None:
            self._held = next(filter(None, map(_bound, self._names)), None)
            if self._held is None:
                time.sleep(every)

    def _leave(self) -> None:
        if self._held is not None:
            self._held.close()
            self._held = None


def _bound(name: str) -> socket.socket | None:
    """A socket with this name; None if another one has it."""
    found = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    try:
        found.bind(name)
    except OSError:
        found.close()
        return None
    return found


TURNS = [Turns("", 0)]  # of this process: none to wait for, unless it is a worker of pytest-xdist


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --working."""
    group = parser.getgroup("ktls-offload rig")
    group.addoption("--working", type=int, metavar="N", default=0, help="labs that work at once, with -n")


def pytest_configure(config: pytest.Config) -> None:
    """Know the turns of the run."""
    if run := os.environ.get("PYTEST_XDIST_TESTRUNUID"):
        TURNS[0] = Turns(run, config.getoption("--working"))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Generator[None, object, object]:
    """Start each test only when its lab gets a turn."""
    with TURNS[0].turn():
        return (yield)
