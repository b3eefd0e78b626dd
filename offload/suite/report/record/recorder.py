"""Writes the events of a run and its progress lines, while pytest runs the tests here or in workers.

A parallel run (`pytest -n 2`, pytest-xdist) has one Recorder, in the process that the workers report to. The
results come with the reports (settle.py), the plan by a file that the first worker writes.
PYTEST_DONT_REWRITE: there is no assert here.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from offload.errors import RigError
from offload.suite.report import former
from offload.suite.report.events import Writer
from offload.suite.report.known import line as known_line
from offload.suite.report.record.settle import REASON, Settler, details_of, reason_of
from offload.suite.report.record.testinfo import NO_RIG, REPLAY, RIG

NAME = "ktls-offload-recorder"


class Recorder:
    """The one object that writes events and the progress lines. `settler`: of the tests of this process."""

    def __init__(self, config: pytest.Config, path: Path, settler: Settler) -> None:
        self._config, self._writer, self._settler = config, Writer(path), settler
        self._plan_file = path.with_name(f".{path.name}.plan")  # of the first worker
        self._began, self._opened = time.monotonic(), False
        self._planned = self._begun = self._done = self._passed = self._workers = 0
        self._full = False
        self._took: list[float] = []

    def pytest_unconfigure(self) -> None:
        """Close the file."""
        self._writer.close()

    def _write(self, event: str, **fields: Any) -> None:
        """Write an event; the run ends, with its undos, where it can no longer be recorded."""
        if self._full:
            return
        try:
            self._writer.write(event, **fields)
        except RigError as exc:
            self._full = True
            pytest.exit(f"{exc}; earlier results are intact", returncode=RigError.exit_code)

    def start(self) -> None:
        """Write what the run stands on: first as the start of the run, later as news."""
        self._stands(self._config.stash.get(RIG, NO_RIG))

    def _stands(self, rig: dict[str, Any]) -> None:
        self._write("rig" if self._opened else "run-start", **rig)
        self._opened = True

    def _open(self) -> None:
        if not self._opened:
            self.start()

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Treat a file that cannot be collected as a broken rig, and a skipped one as a skip."""
        if report.failed or report.skipped:
            self._open()
            self._write("test", **_lost(report, "error" if report.failed else "skip"))

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write the plan: every test that must give a result."""
        if self._config.getoption("collectonly"):
            return
        if RIG in self._config.stash:
            self._open()
        self._write_plan(self._settler.plan(session))

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: Any) -> None:
        """Tell the first worker of a parallel run where its plan is wanted."""
        self._workers += 1
        if self._workers == 1:
            node.workerinput["offload_plan"] = str(self._plan_file.absolute())

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: Sequence[str]) -> None:
        """Write the plan of a parallel run, once; pytest-xdist compares what each worker collected."""
        if "offload_plan" in node.workerinput:
            self._write_plan(json.loads(self._plan_file.read_text()))
            self._plan_file.unlink()

    def _write_plan(self, plan: Mapping[str, Any]) -> None:
        self._planned = len(plan["tests"])
        if REPLAY in self._config.stash:
            self._write("replay", **former.event(*self._config.stash[REPLAY]))
        self._write("plan", **plan)

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        """Say which test is about to run, so that a crash names it."""
        self._begun += 1
        elapsed = round(time.monotonic() - self._began, 3)
        self._write("progress", id=nodeid, n=self._begun, of=self._planned, elapsed=elapsed)
        self._show_running(nodeid)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Write the result of one test, once its teardown is over or the worker that ran it died."""
        found = json.loads(getattr(report, "offload_result", "{}"))
        if str(report.when) == "???":  # pytest-xdist's word for a worker that died under this test
            found = {"test": _lost(report, "error") | {"reason": str(report.longrepr)[:REASON]}}
        if "rig" in found:
            self._stands(found["rig"])
        if "test" in found:
            self._open()
            self._finish(found["test"])

    def _finish(self, test: Mapping[str, Any]) -> None:
        self._done += 1
        self._took.append(test["seconds"])
        self._passed += test["outcome"] == "pass"
        self._write("test", **test)
        self._show_done(test)
        for note in test.get("known_bugs", ()):
            self._config.get_terminal_writer().line(f"          {known_line(note)}", yellow=True)

    def pytest_keyboard_interrupt(self) -> None:
        """Let no second interrupt cut off the end of the workers; the caller waits with a limit."""
        if self._workers:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Leave the dots out: a line per test says more (`_show_done`)."""
        if report.passed and report.when != "call":
            return None
        word = "xfailed" if hasattr(report, "wasxfail") else str(report.outcome)
        return ("error" if report.failed and report.when != "call" else word), "", ""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Turn "nothing passed" into a failure, and write the end of the run, last of all."""
        result = yield
        if self._config.getoption("collectonly"):
            return result
        if session.exitstatus == 0 and not self._passed:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED
        self._open()
        self._write("run-end", exit=int(session.exitstatus), seconds=round(time.monotonic() - self._began, 3))
        return result

    def _show_running(self, nodeid: str) -> None:
        """On a terminal: one line that is overwritten while the test runs."""
        screen = self._config.get_terminal_writer()
        if screen.hasmarkup:
            line = f"[{self._begun:>3}/{self._planned}] {self._clock()} {nodeid}"
            screen.write("\r\x1b[K" + line[: screen.fullwidth - 1], flush=True)

    def _show_done(self, test: Mapping[str, Any]) -> None:
        """Print one line per finished test: which, how it ended, how long, how long so far, what is left."""
        screen = self._config.get_terminal_writer()
        if screen.hasmarkup:
            screen.write("\r\x1b[K")
        word, reason = test["outcome"], f": {test['reason']}" if test["reason"] else ""
        good, skip = word in ("pass", "xfail"), word == "skip"
        count = f"[{self._done:>3}/{self._planned}] {self._clock()}"
        line = f"{count} {word:<5} {test['seconds']:6.1f} s  {test['id']}"
        screen.line(line + reason, green=good, red=not good and not skip, yellow=skip)
        screen.flush()

    def _clock(self) -> str:
        """Return the time so far and what may be left; the slowest test (with the set-up) is no guide."""
        past = _minutes(time.monotonic() - self._began)
        if self._done < 2:
            return past
        each = (sum(self._took) - max(self._took)) / (self._done - 1) / max(1, self._workers)
        return f"{past}, ~{_minutes(each * (self._planned - self._done))} left"


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _lost(report: pytest.TestReport | pytest.CollectReport, word: str) -> dict[str, Any]:
    """Return the fields of the event of a test that could not say how it ended."""
    return {
        "id": report.nodeid,
        "promise": None,
        "cell": None,
        "outcome": word,
        "seconds": 0.0,
        "reason": reason_of(report),
        "details": details_of(report),
        "evidence": {},
    }
