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


def rig_with(*warnings: str) -> SimpleNamespace:
    """A rig whose profile lists warnings of these functions."""
    return SimpleNamespace(lab=Console(), log_read=None, profile=SimpleNamespace(warnings=lambda: warnings))


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
    rig = rig_with()
    rig.lab.lines += ["of the boot"]
    checked(rig)
    with pytest.raises(RigError, match="the kernel log: WARNING in it"):
        checked(rig, "WARNING in it")
    checked(rig)
    rig.lab.lines += ["BUG in between"]
    with pytest.raises(RigError, match="the kernel log: BUG in between"):
        checked(rig)
    checked(rig)


def test_a_warning_that_the_profile_lists_breaks_no_rig() -> None:
    """The same warning of another function does, and so does plaintext beside it."""
    rig = rig_with("of_the_card")
    checked(rig, "WARNING: at x.c:1 of_the_card+0x1/0x2", "Call Trace:")
    with pytest.raises(RigError, match="the kernel log: WARNING: at x.c:1 another"):
        checked(rig, "WARNING: at x.c:1 another+0x1/0x2")
    with pytest.raises(RigError, match="the kernel log: unencrypted skb"):
        checked(rig, "WARNING: at x.c:1 of_the_card+0x1/0x2", "unencrypted skb with no associated socket")
