"""The rig of the checks of ktls-handoff: the program, certificates, and a library that fakes kTLS."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from rig import Rig, make_certificates


@pytest.fixture(scope="session")
def rig(program: str, preload: str) -> Iterator[Rig]:
    """Without a library to fake kTLS, the kernel's own is used (real.py)."""
    with tempfile.TemporaryDirectory() as folder:
        make_certificates(Path(folder))
        yield Rig(program, preload, Path(folder))
