"""pytest plug-in: a hardware suite that stays up, and runs the tests that it is told to, again and again.

Use: `pytest -p tests.lib.catalogue.plugin --orders FD tests/hw --attach LAB`, as suite.py does. FD is a
socket. The first line on it is `{"tests": [node ids]}`: what was collected. An order is a line of JSON:
`{"tests": [node ids], "events": path, "knobs": words, "off": check, "as_found": bool}`. Each is a run of its
own, with its own file of events, as if pytest had been started for it; the answer is `{"exit": code}`, or
`{"unknown": [node ids]}`. `off` is for tests/nicsim/escape_run.py, whose copy of the tests asks
`check_is_off` in each assert that fails: a check that is not off is noted beside the outcome of its test,
also if the test goes on. `as_found`: a scenario that fails is not shrunk.
"""

from __future__ import annotations

import builtins
import json
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from offload.suite.report.record.recorder import NAME, Recorder
from offload.suite.report.record.settle import Settler
from offload.suite.report.record.testinfo import EVIDENCE, RIG
from tests.lib.scenario.check import AS_FOUND

CHECKS = "failed_checks"  # among the evidence of a test
OFF = [""]  # the check that is off
RUNNING: list[pytest.Item] = []


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --orders."""
    group = parser.getgroup("ktls-offload report")
    group.addoption("--orders", type=int, metavar="FD", help="socket on which the runs are ordered")


def check_is_off(name: str) -> bool:
    """Say whether this check of the suite, which has failed, is off for the moment; note it if not."""
    if name != OFF[0]:
        noted = dict(RUNNING[-1].user_properties).get(CHECKS, [])
        RUNNING[-1].user_properties += [] if noted else [(CHECKS, noted)]
        noted += [] if name in noted else [name]
    return name == OFF[0]


def pytest_configure() -> None:
    """Let a copy of the tests whose checks can be switched off ask."""
    vars(builtins)["check_is_off"] = check_is_off


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Do what is ordered until the other end is closed."""
    if session.testsfailed:
        raise session.Interrupted(f"{session.testsfailed} files could not be collected")
    known = {item.nodeid: item for item in session.items}
    with socket.socket(fileno=session.config.getoption("--orders")) as line, line.makefile("rw") as orders:
        orders.write(json.dumps({"tests": list(known)}) + "\n")
        orders.flush()
        for order in orders:
            orders.write(json.dumps(answer(session, known, json.loads(order))) + "\n")
            orders.flush()
    return True


def answer(
    session: pytest.Session, known: Mapping[str, pytest.Item], order: Mapping[str, Any]
) -> dict[str, Any]:
    unknown = [name for name in order["tests"] if name not in known]
    if unknown:
        return {"unknown": unknown}
    OFF[0], AS_FOUND[0] = order.get("off", ""), order.get("as_found", False)
    if RIG in session.config.stash:
        session.config.stash[RIG]["rig"]["knobs"] = order["knobs"]
    return {"exit": run(session, [known[name] for name in order["tests"]], Path(order["events"]), known)}


def run(
    session: pytest.Session, items: Sequence[pytest.Item], events: Path, known: Mapping[str, pytest.Item]
) -> int:
    """Run these tests as a run of its own; the exit code that pytest would have ended with."""
    manager, settler = session.config.pluginmanager, Settler(session.config)
    recorder = Recorder(session.config, events, settler)
    session.config.option.events = str(events)  # what a failed test leaves lies beside it
    manager.register(settler)
    manager.register(recorder, NAME)
    others = [plugin for plugin in manager.get_plugins() if plugin is not recorder]
    session.items, session.testsfailed, session.exitstatus = list(items), 0, pytest.ExitCode.OK
    try:
        manager.subset_hook_caller("pytest_collection_finish", others)(session=session)
        for number, item in enumerate(items):
            forget(item)
            RUNNING[:] = [item]
            after = items[number + 1] if number + 1 < len(items) else elsewhere(item, known)
            item.ihook.pytest_runtest_protocol(item=item, nextitem=after)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED if session.testsfailed else pytest.ExitCode.OK
        manager.subset_hook_caller("pytest_sessionfinish", others)(
            session=session, exitstatus=session.exitstatus
        )
    finally:
        manager.unregister(recorder)
        manager.unregister(settler)
        recorder.pytest_unconfigure()
    return int(session.exitstatus)


def forget(item: pytest.Item) -> None:
    """Take from a test what its last run has left."""
    item.user_properties.clear()
    if EVIDENCE in item.stash:
        del item.stash[EVIDENCE]


def elsewhere(item: pytest.Item, known: Mapping[str, pytest.Item]) -> pytest.Item | None:
    """A test of another folder, said to come next: all is torn down but what the session keeps.

    Of another file where there is one folder only: what is left then is that of every test.
    """
    others = [other for other in known.values() if other.path != item.path]
    away = (other for other in others if other.path.parent != item.path.parent)
    return next(away, next(iter(others), None))
