"""Where a run's time went: noted by test, added up, drawn, and hostile when it comes from a file."""

from __future__ import annotations

import os
import time
from typing import Any
from xml.etree import ElementTree

import pytest

from offload.suite.report import timing
from offload.suite.report.spent import WATCH, Spending, cpu_of, watch

SPENT = {"set-up": 1.0, "switch": 0.5, "traffic": 3.0, "wire proof": 0.25, "rest": 0.25, "guest": 4.0}


def document(*tests: tuple[str, float, dict[str, float]]) -> dict[str, Any]:
    """A report of which only the times are there."""
    found = [{"id": name, "seconds": seconds, "spent": spent} for name, seconds, spent in tests]
    return {"tests": found, "phases": [{"name": "kernel", "seconds": 2.0}, {"name": "tests", "seconds": 9.0}]}


def test_inner_kind_is_taken_out_of_the_outer_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A switch inside traffic counts as a switch alone, and a failing method ends its time too."""
    clock = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: clock[0])

    class Inner:
        def turn(self) -> None:
            clock[0] += 2.0

    class Outer:
        def move(self) -> None:
            clock[0] += 1.0
            Inner().turn()
            clock[0] += 4.0

        def fail(self) -> None:
            clock[0] += 8.0
            raise ValueError("x")

        def _private(self) -> None:
            clock[0] += 100.0

    watch(Outer, "traffic")
    watch(Inner, "switch")
    WATCH.take()
    Outer().move()
    Outer()._private()
    with pytest.raises(ValueError, match="x"):
        Outer().fail()
    assert WATCH.take() == {"traffic": 13.0, "switch": 2.0}
    assert WATCH.take() == {}


def test_all_of_a_test_is_reported() -> None:
    """The kinds add up to the whole; the guest's time is told only if it was there all the time."""
    spending = Spending(os.getpid())
    spending.is_set_up()
    while (cpu_of(os.getpid()) or 0) - (spending._cpu[1] or 0) < 0.05:
        sum(range(100000))
    seconds = spending.seconds(os.getpid())
    assert seconds["guest"] >= 0.05 and seconds["rest"] > 0 and set(seconds) <= set(timing.COLUMNS)
    assert {"guest", "waiting"} & set(Spending(0).seconds(os.getpid())) == set()
    assert cpu_of(0) is None and cpu_of(2**22 + 1) is None


def test_table_begins_with_the_slowest() -> None:
    """The table shows the sum, then the slowest tests; control characters do not reach the screen."""
    shown = timing.text(document(("a::fast", 2.0, SPENT), ("a::slow\x1b[2J", 5.0, SPENT)), most=1)
    lines = shown.splitlines()
    assert len(lines) == 3 and lines[1].split()[:3] == ["7.0", "2.0", "1.0"]
    assert lines[2].endswith("a::slow [2J") and "\x1b" not in shown
    assert timing.text(document(("a::old", 1.0, {}))) == ""


def test_picture_is_as_wide_as_the_time() -> None:
    """The flame graph is well-formed, escapes names, and its boxes have the widths of their seconds."""
    drawn = timing.svg(document(("f.py::t[<&>]", 8.0, SPENT), ("f.py::u", 0.0, {})))
    root = ElementTree.fromstring(drawn)
    space = "{http://www.w3.org/2000/svg}"
    boxes = {box.findtext(f"{space}title"): box.find(f"{space}rect") for box in root.iter(f"{space}g")}
    whole, test = boxes["the run: 10.0 s"], boxes["t[<&>]: 8.0 s"]
    assert whole is not None and test is not None
    assert (whole.get("width"), test.get("width")) == ("1200.0", "960.0")
    assert "traffic: 3.0 s" in boxes and not any("u: 0" in str(name) for name in boxes)


@pytest.mark.parametrize("spent", [None, [], {"guest": "x"}, {"traffic": True}, {"odd": 1.0}, {"rest": -1.0}])
def test_what_is_no_time_is_left_out(spent: object) -> None:
    """An event whose times have another form says nothing of them."""
    assert timing.spent_of({"spent": spent}) == {}
