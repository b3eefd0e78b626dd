"""Notes each test before it runs, and does not run one again that never ended: it may have killed a host."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from offload.errors import ConfigError, OffloadError, RigError
from offload.suite.bench.lab.attempts import Attempts

ATTEMPTS = pytest.StashKey[Attempts]()
PASSED, GONE, BENCH = pytest.StashKey[bool](), pytest.StashKey[bool](), pytest.StashKey[Any]()


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
    """Note the beginning and the end of a test; one that is left alone has neither, nor one without a bench.

    A test that did not pass ends only if the hosts still answer, or run on behind a connection that was lost:
    else it may be what killed them.
    """
    attempts = item.config.stash.get(ATTEMPTS, None)
    if attempts is not None and item.config.getoption("--retry"):
        attempts.forget(item.nodeid)
    if attempts is None or item.nodeid in attempts.lost or item.config.stash.get(GONE, False):
        return (yield)
    attempts.begin(item.nodeid, datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ"))
    item.stash[PASSED] = True
    result: object = None
    try:
        result = yield
    except KeyboardInterrupt:
        if answers(item):
            attempts.end(item.nodeid)
        raise
    if not item.stash[PASSED] and not answers(item):
        item.config.stash[GONE] = True  # the run goes on without a bench
        if why := fate(item):
            attempts.lose(item.nodeid, why)
            return result
    attempts.end(item.nodeid)
    return result


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """See whether it passed, and on which bench: pytest forgets that before the protocol ends."""
    report = yield
    item.stash[BENCH] = (getattr(item, "funcargs", None) or {}).get("rig")
    if report.failed:
        item.stash[PASSED] = False
    return report


def answers(item: pytest.Item) -> bool:
    """Say whether the hosts of a test's bench still take commands; True if it has none."""
    rig = item.stash.get(BENCH, None)
    if rig is None:
        return True
    hosts = (rig.bench.dut.host, rig.bench.peer.host)
    with suppress(OffloadError, OSError):
        return all(host.run(["true"], timeout=30, check=False).rc == 0 for host in hosts)
    return False


def fate(item: pytest.Item) -> str:
    """Return what became of hosts that do not answer: '' if they run on, as a new connection to them
    tells."""
    rig = item.stash[BENCH]
    reported: str = rig.lab.fate() if hasattr(rig.lab, "fate") else "it does not answer any more"
    return reported


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """Leave a test alone that never ended: an error of the rig, so that the run is void and says why."""
    attempts = item.config.stash.get(ATTEMPTS, None)
    if attempts is not None and item.nodeid in attempts.lost:
        began, why = (
            attempts.lost[item.nodeid],
            attempts.why.get(item.nodeid, "bench or runner died under it"),
        )
        hint = "if that was no fault of this test: --retry"
        raise RigError(f"begun at {began} and never ended: {why}; not run again", hint)
