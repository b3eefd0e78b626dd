"""The exception tree: its drawing, its exit codes, its texts."""

from __future__ import annotations

import inspect
import re

import pytest

from offload import errors
from offload.errors import CommandFailed, OffloadError

TREE = {n: c for n, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, OffloadError)}


def test_the_drawing_is_the_tree() -> None:
    """The docstring names every class with its exit code."""
    drawn = dict(re.findall(r"([A-Z]\w+) +(\d+) ", errors.__doc__ or ""))
    assert drawn == {name: str(kind.exit_code) for name, kind in TREE.items()}


@pytest.mark.parametrize("name", TREE)
def test_every_error_says_what_it_is_for(name: str) -> None:
    assert TREE[name].__doc__ and len(TREE[name].__doc__.splitlines()[0]) > 10


def test_the_hint_is_a_line_of_its_own() -> None:
    """A message stands alone, or with its hint below."""
    assert str(OffloadError("a")) == "a" and str(OffloadError("a", "b")) == "a\n  hint: b"


def test_a_failed_command_shows_everything() -> None:
    """Command, exit code and both outputs are in one block, long outputs by their end."""
    shown = str(CommandFailed(["ethtool", "-K"], 92, b"o" * 5000 + b"END", b"\xff\xfe bad", "dut"))
    assert "command failed (dut), exit 92: ethtool -K" in shown and "END" in shown and "bad" in shown
    assert len(shown) < 2300
