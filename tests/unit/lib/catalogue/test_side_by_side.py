"""Labs at once: all run, and if one breaks, the others are told to stop before its error is raised."""

from __future__ import annotations

import threading

import pytest

from offload.errors import RigError
from tests.lib.catalogue.run import side_by_side


def test_all_run_at_once() -> None:
    """Each waits for the other, so one after the other would never end."""
    both = threading.Barrier(2, timeout=30)
    side_by_side([both.wait, both.wait], pytest.fail)
    assert not both.broken


def test_one_that_breaks_stops_the_others() -> None:
    """The lab that goes on until told ends, and the error of the other is raised."""
    told = threading.Event()
    seen = []

    def breaks() -> None:
        raise RigError("the VM is gone")

    with pytest.raises(RigError, match="the VM is gone"):
        side_by_side([breaks, lambda: seen.append(told.wait(30))], told.set)
    assert seen == [True]
