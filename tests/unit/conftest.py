"""For all unit tests: a pytest that one of them starts leaves out the plug-ins that it does not need."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def lean_children() -> Iterator[None]:
    """Where tests run, and not in what hands them out: xdist's workers read this variable when they start."""
    # pyproject.toml says so for this project alone; labgrid's plug-in takes half of the time of a small child
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTEST_ADDOPTS", "-p no:labgrid -p no:xdist -p no:xdist.looponfail")
        yield
