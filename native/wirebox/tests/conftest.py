"""The rig that the checks of wirebox ask for: two cables in the network namespace that the Makefile made."""

from __future__ import annotations

import pytest
from rig import Rig, make_links


@pytest.fixture(scope="session")
def rig(program: str) -> Rig:
    """The program under test, and its cables."""
    make_links()
    return Rig(program)
