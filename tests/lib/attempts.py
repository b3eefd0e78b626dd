"""Notes each test before it runs, and does not run one again that never ended: it may have killed a host."""

from __future__ import annotations

from collections.abc import Generator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from offload.errors import ConfigError, RigError
from offload.lab.attempts import Attempts

ATTEMPTS = pytest.StashKey[Attempts]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --attempts and --retry."""
    group = parser.getgroup("ktls-offload rig")
    group.addoption("--attempts", metavar="FILE", default="", help="note each test in FILE before it runs")
    group.addoption("--retry", action="store_true", help="run tests again that never ended")


def pytest_configure(config: pytest.Config) -> None:
    """Read what an earlier run left."""
    if path := config.getoption("--attempts"):
        try:
            config.stash[ATTEMPTS] = Attempts(Path(path))
        except ConfigError as exc:
            raise pytest.UsageError(str(exc)) from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Note the beginning and the end of a test; one that is left alone has neither."""
    attempts = item.config.stash.get(ATTEMPTS, None)
    if attempts is not None and item.config.getoption("--retry"):
        attempts.forget(item.nodeid)
    if attempts is None or item.nodeid in attempts.lost:
        return (yield)
    attempts.begin(item.nodeid, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    result = yield
    attempts.end(item.nodeid)
    return result


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave a test alone that never ended: an error of the rig, so that the run is void and says why."""
    attempts = item.config.stash.get(ATTEMPTS, None)
    if attempts is not None and item.nodeid in attempts.lost:
        began = attempts.lost[item.nodeid]
        hint = "if that was no fault of this test: --retry"
        raise RigError(
            f"begun at {began} and never ended: bench or runner died under it; not run again", hint
        )
