"""What the checks of every compiled program share: which build is checked, and a limit of time for each."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

LIMIT = 900  # seconds for one check: a program that hangs must show as a failure


def pytest_addoption(parser: pytest.Parser) -> None:
    """The Makefile of the program names what it built."""
    parser.addoption("--program", required=True, help="the program or library to check")
    parser.addoption("--preload", default="", help="a library that some checks preload")


def given(config: pytest.Config, name: str) -> str:
    """The whole path of what an option names, or an empty string."""
    said = config.getoption(name)
    return str(Path(said).resolve()) if said else ""


@pytest.fixture(scope="session")
def program(pytestconfig: pytest.Config) -> str:
    """The build that is checked."""
    return given(pytestconfig, "--program")


@pytest.fixture(scope="session")
def preload(pytestconfig: pytest.Config) -> str:
    """What is preloaded into it, or an empty string."""
    return given(pytestconfig, "--preload")


def give_up(number: int, frame: object) -> None:
    """End a check that hangs."""
    raise TimeoutError(f"the check did not end within {LIMIT} seconds")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    """Watch the time of a check."""
    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(LIMIT)
    try:
        return (yield)
    finally:
        signal.alarm(0)
