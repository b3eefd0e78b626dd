"""pytest plug-in of `make soak`: the files in another order, and the tests in each of them, by a seed."""

from __future__ import annotations

import random
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --shuffle."""
    parser.getgroup("ktls-offload rig").addoption(
        "--shuffle", default="", metavar="SEED", help="mix the tests"
    )


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mix what is left after every other choice; a file's tests stay together, as its fixtures want."""
    if seed := config.getoption("--shuffle"):
        chance = random.Random(seed)
        files: dict[Path, list[pytest.Item]] = {}
        for item in items:
            files.setdefault(item.path, []).append(item)
        groups = list(files.values())
        chance.shuffle(groups)
        for group in groups:
            chance.shuffle(group)
        items[:] = [item for group in groups for item in group]
