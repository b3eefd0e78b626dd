"""What the kernel says between two tests is read by the next one, and not lost."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from offload.errors import RigError
from tests import conftest


class Console:
    """A lab of which only the console is there: lines, and a mark is how many there are."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def console_mark(self) -> int:
        """The end of what has been said so far."""
        return len(self.lines)

    def console_faults(self, since: int) -> list[str]:
        """What was said since a mark: everything here is a fault."""
        return self.lines[since:]


def checked(rig: Any, *said: str) -> None:
    """A test on this rig, during which the kernel says this."""
    request: Any = SimpleNamespace(fixturenames=["rig"], getfixturevalue=lambda _: rig)
    around = conftest.clean_dmesg.__wrapped__(request)
    next(around)
    rig.lab.lines += said
    with pytest.raises(StopIteration):
        next(around)


def test_what_is_said_between_tests_is_read() -> None:
    """A fault in a test voids that test, one between two tests the next."""
    rig = SimpleNamespace(lab=Console(), log_read=None)
    rig.lab.lines += ["of the boot"]
    checked(rig)
    with pytest.raises(RigError, match="the kernel log: WARNING in it"):
        checked(rig, "WARNING in it")
    checked(rig)
    rig.lab.lines += ["BUG in between"]
    with pytest.raises(RigError, match="the kernel log: BUG in between"):
        checked(rig)
    checked(rig)
