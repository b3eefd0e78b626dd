"""A rack's whole run is judged by its report: the word, and each required promise."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lib.bench_run import wrong


def report(word: str, **states: str) -> dict[str, Any]:
    """A report in which these promises came to this; one whose name begins with `nice` blocks nothing."""
    rows = [
        {"id": name, "blocker": not name.startswith("nice"), "state": state, "reason": "why"}
        for name, state in states.items()
    ]
    return {"verdict": word, "headline": "as it is", "promises": rows}


@pytest.mark.parametrize("word", ["certified", "certified with limitations"])
def test_a_certified_bench_is_right(word: str) -> None:
    """What is not promised, or blocks nothing, is nothing wrong."""
    assert wrong(report(word, a="kept", b="limited", c="not promised", nice="not proved")) == []


def test_what_is_wrong_is_named() -> None:
    """Another word is told with its headline, and a required promise that is not kept."""
    assert wrong(report("void", a="kept")) == ["void: as it is"]
    assert wrong(report("certified", a="not proved", b="broken")) == ["a: why", "b: why"]
