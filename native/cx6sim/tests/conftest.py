"""The rig that the checks of cx6sim ask for."""

from __future__ import annotations

import pytest
from rig import Rig


@pytest.fixture(scope="session")
def rig(program: str) -> Rig:
    """The program under test."""
    return Rig(program)
