"""The rig that the checks of wiretap ask for, in the network namespace that the Makefile made."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import Rig, ip


@pytest.fixture(scope="session")
def rig(program: str) -> Iterator[Rig]:
    """The program under test, and a folder for captures."""
    ip("link", "set", "lo", "up")
    with tempfile.TemporaryDirectory() as folder:
        yield Rig(program, Path(folder))
