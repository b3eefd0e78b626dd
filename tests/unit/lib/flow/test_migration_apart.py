"""Two memories that differ are told apart by their pages."""

from __future__ import annotations

from typing import Any

from tests.lib.flow.migration import apart


def memory(*counts: int, rest: str = "a") -> dict[str, Any]:
    """What an end says of its memory."""
    return {"counts": list(counts), "rest": rest}


def test_says_which_pages_and_whether_the_rest_differs() -> None:
    """A page that is behind is named, and what no guest writes."""
    said = apart(memory(1, 2, 3), memory(1, 2, 2))
    assert said == "(1 written pages have other counts, the first is 2; the rest is the same)"
    assert apart(memory(1), memory(1, rest="b")) == "(0 written pages have other counts; the rest is other)"
