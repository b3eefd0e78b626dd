"""A lab whose card can be made bad, and the hardware suite run against it from outside."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.lib.rig import Labs
from tests.lib.suite import Outcome, Suite, run_suite


@pytest.fixture
def suite(pytestconfig: pytest.Config, labs: Labs, tmp_path: Path) -> Suite:
    """A function that runs hardware tests against the lab of this run; node ids, short."""
    lab = labs.get("nicsim").lab
    kernel = pytestconfig.getoption("--kernel")

    def run(*tests: str) -> Outcome:
        return run_suite(tmp_path, "connectx-6-dx", kernel, [f"tests/hw/{t}" for t in tests], lab.name)

    return run


@pytest.fixture
def knob(labs: Labs) -> Iterator[Callable[[str, int], None]]:
    """A function that turns a knob of the DUT's card; all are back at 0 after the test."""
    host = labs.get("nicsim").lab.root
    folder = "/sys/kernel/debug/nicsim/0"

    def turn(name: str, value: int) -> None:
        host.run(["tee", f"{folder}/{name}"], input=f"{value}\n".encode())

    yield turn
    host.run(["tee", f"{folder}/reset"], input=b"1\n")
