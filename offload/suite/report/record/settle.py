"""How a test ended: set-up, body and teardown folded into one outcome, where the test runs.

Each process that runs tests has one Settler. The finished result travels on the report of the teardown
(`report.offload_result`, JSON): a worker of a parallel run so gives it to the process that writes events.
PYTEST_DONT_REWRITE: there is no assert here.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

from offload.errors import ConfigError, RigError
from offload.suite.report import replay
from offload.suite.report.events import plain
from offload.suite.report.known import notes
from offload.suite.report.record.testinfo import (
    CONDITIONS,
    EVIDENCE,
    GUEST,
    NO_RIG,
    RIG,
    CardSilent,
    cell_of,
    former_of,
    promise_of,
)
from offload.suite.report.spent import Spending

DETAILS = 8000  # characters of a traceback kept per test
REASON = 2000  # characters of a reason: what a scenario says twice, shrunk and as found, fits whole


@dataclasses.dataclass
class Case:
    """One test as it goes through setup, call and teardown."""

    promise: str | None
    cell: dict[str, Any] | None
    outcome: str = ""
    reason: str = ""
    details: str = ""
    seconds: float = 0.0


class Settler:
    """The object that folds the steps of each test, in the process that runs it."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._cases: dict[str, Case] = {}
        self._deselected: list[dict[str, str]] = []
        self._last_rig: dict[str, Any] = {}
        self._spending = Spending(0)

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Note what was left out: a promise with tests left out is not proved."""
        self._deselected += [{"id": item.nodeid, "promise": promise_of(item) or ""} for item in items]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Leave the plan where a parallel run's writer of events looks for it (recorder.py)."""
        if path := getattr(self._config, "workerinput", {}).get("offload_plan"):
            Path(path).write_text(json.dumps(self.plan(session)))

    def plan(self, session: pytest.Session) -> dict[str, Any]:
        """Return every test that must give a result, those left out, and what its scenarios cross."""
        tests = [{"id": item.nodeid, "promise": promise_of(item)} for item in session.items]
        crossed = self._config.stash.get(CONDITIONS, None)
        plan = {} if crossed is None else {"conditions": crossed}
        return {"tests": tests, "deselected": self._deselected, **plan}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_setup(self) -> None:
        """Look at the clocks before the set-up of a test."""
        self._spending = Spending(self._config.stash.get(GUEST, 0))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Settle the outcome of one step; outermost, so that an xfail cannot hide a broken rig."""
        report = yield
        rig = call.excinfo is not None and _is_rig(call.excinfo.value)
        _no_excuse(report, call, rig)
        card = call.excinfo is not None and isinstance(call.excinfo.value, CardSilent)
        case = self._cases.setdefault(item.nodeid, Case(promise_of(item), cell_of(item)))
        line = "" if call.excinfo is None else _first_line(call.excinfo.value)
        _settle(case, report, line, _word(report, rig, card))
        if report.when == "setup":
            self._spending.is_set_up()
        if report.when == "teardown":
            result = self._result(item, self._cases.pop(item.nodeid))
            vars(report)["offload_result"] = json.dumps(plain(result))
        return report

    def _result(self, item: pytest.Item, case: Case) -> dict[str, Any]:
        """Return the fields of the event `test`, and as `rig` what the test stood on, if that is news."""
        found = item.stash.get(EVIDENCE, {}) | dict(item.user_properties)
        if then := former_of(item):
            found["replay"] = replay.compare(then, case.outcome, case.reason, found)
        rig = self._config.stash.get(RIG, NO_RIG)
        known = notes(item.nodeid, case.outcome, case.reason, rig)
        test = {
            "id": item.nodeid,
            "promise": case.promise,
            "cell": case.cell,
            "outcome": case.outcome or "error",
            "seconds": round(case.seconds, 3),
            "reason": case.reason,
            "details": case.details,
            "evidence": found,
            "spent": self._spending.seconds(self._config.stash.get(GUEST, 0)),
        }
        return {"test": test | ({"known_bugs": known} if known else {}), **self._news()}

    def _news(self) -> dict[str, Any]:
        """Return in a worker what it stands on, once and when that changes."""
        rig = plain(self._config.stash.get(RIG, {}))
        if not hasattr(self._config, "workerinput") or rig == self._last_rig:
            return {}
        self._last_rig = rig
        return {"rig": rig}


def _no_excuse(report: pytest.TestReport, call: pytest.CallInfo[None], rig: bool) -> None:
    """Take an expected failure back where the rig broke, and make a failure of one that passed."""
    if report.skipped and hasattr(report, "wasxfail") and call.excinfo is not None:
        wanted = isinstance(call.excinfo.value, pytest.xfail.Exception)
        if rig or (report.when != "call" and not wanted):
            del report.wasxfail
            report.outcome, report.longrepr = "failed", str(call.excinfo.value)
    if report.passed and hasattr(report, "wasxfail"):
        words = f"passed, though a limitation is listed: {report.wasxfail}"
        report.outcome, report.longrepr = "failed", words
        del report.wasxfail


def _is_rig(exc: BaseException) -> bool:
    """Say whether an exception, or one inside a group or behind it as its cause, is a broken rig."""
    if isinstance(exc, BaseExceptionGroup):
        return any(_is_rig(inner) for inner in exc.exceptions)
    return isinstance(exc, RigError) or (exc.__cause__ is not None and _is_rig(exc.__cause__))


def _settle(case: Case, report: pytest.TestReport, line: str, word: str) -> None:
    """Fold one step into the case: an error stays an error, a failure is not undone by a later pass."""
    case.seconds += report.duration
    rank = {"": 0, "pass": 1, "xfail": 2, "skip": 3, "fail": 4, "error": 5}
    if rank[word] > rank[case.outcome]:
        before = f"; before that: {case.reason}" if case.outcome == "fail" else ""
        case.outcome = word
        case.reason = "" if word == "pass" else reason_of(report, line) + before
        case.details = details_of(report)


def _word(report: pytest.TestReport, rig: bool, card: bool) -> str:
    """Return the outcome word of one step, by the table in tests/README.md."""
    if report.skipped:
        return "xfail" if hasattr(report, "wasxfail") else "skip"
    if report.failed:
        return "fail" if card or (report.when == "call" and not rig) else "error"
    return "pass" if report.when == "call" else ""


def _first_line(exc: BaseException) -> str:
    """Return the first line of a message, with the kind of error where the message alone says little."""
    lines = str(exc).strip().splitlines()
    if isinstance(exc, AssertionError | RigError | ConfigError) or not lines:
        return lines[0][:REASON] if lines else type(exc).__name__
    return f"{type(exc).__name__}: {lines[0]}"[:REASON]


def reason_of(report: pytest.TestReport | pytest.CollectReport, line: str = "") -> str:
    """Return the reason for a person: one line."""
    if hasattr(report, "wasxfail"):
        listed = str(report.wasxfail).removeprefix("reason: ")
        return (listed if not line or listed in line else f"{listed}; seen: {line}")[:REASON]
    if isinstance(report.longrepr, tuple):  # a skip: (file, line, "Skipped: reason")
        return str(report.longrepr[2]).removeprefix("Skipped: ").strip()[:REASON]
    text = line or str(report.longrepr or "").strip().rpartition("\n")[2]
    where = f"in {report.when}: " if getattr(report, "when", "call") in ("setup", "teardown") else ""
    return (where + text)[:REASON]


def details_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the traceback, the end of it if it is long; nothing for a pass or a skip."""
    return "" if report.passed or report.skipped else str(report.longrepr or "")[-DETAILS:]
