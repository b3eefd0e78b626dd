"""pytest plug-in: what each test found, as events on disk while the run goes on.

Use: `pytest -p offload.report.plugin --events FILE`. FILE is replaced, unless it holds only what `certify`
wrote before the tests; then it is continued. Without --events only the promise ids are checked.
`--replay RESULT [--replay-only PATTERN]`: only the failed tests of a former run (replay.py). Then
`evidence["replay"]` holds that test's former weather, if there was any, and in the end how they compare.

For conftest and tests:

* `@pytest.mark.promise("payload.tx")`, optionally `cell=...`: an id of criteria.yaml, else a usage error.
* The cell of the truth table is the marker's `cell=`, or the test's parameter called `cell`: a mapping, a
  dataclass, or the tuple (direction, version, cipher) that Profile.cells() gives.
* fixture `evidence`: a dict; `evidence["bytes"] = n`. Well-known names, shown specially in the report:
  `counters` {name: difference}, `offload` "hw" | "sw", and every name under `levels:` in criteria.yaml;
  `bytes` and `sha256` of the payload (proof A); `wire` {"proof": "B" | "C" | "where", "outcome": "equal" |
  "different" | "inconclusive", "engine": "core" | "python" (B only), "records": n, "bytes": n (those proven),
  "difference": a sentence or ""}. A test that passes with another outcome than "equal" counts as failed.
  Numbers are bare, with the unit in the name. What JSON cannot hold becomes text.
* `set_rig(config, rig, profile=ID, kernel=RELEASE, simulated=True)`: call once, when the bench is up
  (a session fixture will do), before the first test ends.
* A known limitation is `pytest.mark.xfail(reason="<limitation id>: message")` or `pytest.xfail(same)`; the id
  has to be in the profile's limitations, or the verdict counts it as a failure.
* A RigError (or a subclass) anywhere, a failing setup and a failing teardown are `error`: the rig broke.
  A failing assertion about the NIC belongs in the test body; one about the rig raises RigError.
* A test that fails on a kernel with a known bug that its message fits gets a note (errata.yaml, known.py):
  `set_rig` wants `kernel-package` (Debian's version) and `driver` in `rig` for it. The outcome stays.
* A skip is "the rig lacks something" and makes a blocker incomplete. What the profile does not promise is no
  skip: do not collect it (parametrize over the profile's cells).

Nothing here needs a private pytest import. Workers of a parallel run do not write.
PYTEST_DONT_REWRITE: there is no assert here, and conftest may import this before it names it as a plug-in.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from offload.errors import ConfigError, RigError
from offload.report import former, replay
from offload.report.criteria import load
from offload.report.events import Writer
from offload.report.known import line as known_line
from offload.report.known import notes

EVIDENCE = pytest.StashKey[dict[str, Any]]()
RIG = pytest.StashKey[dict[str, Any]]()
REPLAY = pytest.StashKey[tuple[former.Former, tuple[str, ...]]]()
NO_RIG: dict[str, Any] = {"rig": {}, "profile": "", "kernel": "", "simulated": False}
DETAILS = 8000  # characters of a traceback kept per test


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --events and --replay."""
    group = parser.getgroup("ktls-offload report")
    group.addoption("--events", metavar="FILE", help="write one JSON line per event to FILE")
    group.addoption("--replay", metavar="RESULT", help="only the failed tests of this run, in its weather")
    group.addoption("--replay-only", metavar="PATTERN", default="", help="its tests with PATTERN in their id")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and the recorder if a file is wanted."""
    config.addinivalue_line(
        "markers", "promise(id, cell=None): the promise in criteria.yaml that this test proves"
    )
    if config.getoption("--replay"):
        try:
            then = former.read(Path(config.getoption("--replay")))
            config.stash[REPLAY] = then, former.choose(then, config.getoption("--replay-only"))
        except ConfigError as exc:
            raise pytest.UsageError(str(exc)) from None
    path = config.getoption("--events")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Recorder(config, Path(path)), "ktls-offload-recorder")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Refuse a promise id that criteria.yaml does not have; leave out what is not to be repeated."""
    for item in items:
        try:
            for marker in item.iter_markers("promise"):
                load().check(str(marker.args[0]) if marker.args else "")
        except ConfigError as exc:
            raise pytest.UsageError(f"{item.nodeid}: {exc}") from None
    if REPLAY in config.stash:
        _, wanted = config.stash[REPLAY]
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in wanted])
        items[:] = [item for item in items if item.nodeid in wanted]


def former_of(item: pytest.Item) -> Mapping[str, Any] | None:
    """Return what a former run found in this test, if it is repeated."""
    then, wanted = item.config.stash.get(REPLAY, (None, ()))
    return then.tests[item.nodeid] if then is not None and item.nodeid in wanted else None


@pytest.fixture
def evidence(request: pytest.FixtureRequest) -> dict[str, Any]:
    """What the test measured, by name; it ends up beside the outcome."""
    found: dict[str, Any] = request.node.stash.setdefault(EVIDENCE, {})
    weather = (former_of(request.node) or {"evidence": {}})["evidence"].get("weather")
    if weather is not None:
        found.setdefault("replay", weather)
    return found


def set_rig(
    config: pytest.Config, rig: Mapping[str, Any], *, profile: str, kernel: str, simulated: bool
) -> None:
    """Say what the run stands on: versions by name, profile id, kernel release, simulated or real."""
    config.stash[RIG] = {"rig": dict(rig), "profile": profile, "kernel": kernel, "simulated": simulated}
    recorder = config.pluginmanager.get_plugin("ktls-offload-recorder")
    if recorder is not None:
        recorder.start()


def promise_of(item: pytest.Item) -> str | None:
    """Return the promise id that a test declares, the nearest marker first."""
    marker = item.get_closest_marker("promise")
    return str(marker.args[0]) if marker and marker.args else None


def cell_of(item: pytest.Item) -> dict[str, Any] | None:
    """Return the cell of the truth table that a test belongs to."""
    marker = item.get_closest_marker("promise")
    params = getattr(getattr(item, "callspec", None), "params", {})
    cell = marker.kwargs.get("cell") if marker and "cell" in marker.kwargs else params.get("cell")
    if dataclasses.is_dataclass(cell) and not isinstance(cell, type):
        return dataclasses.asdict(cell)
    if isinstance(cell, tuple | list):
        cell = dict(zip(("direction", "version", "cipher"), cell, strict=False))
    return dict(cell) if isinstance(cell, Mapping) else None


@dataclasses.dataclass
class Case:
    """One test as it goes through setup, call and teardown."""

    promise: str | None
    cell: dict[str, Any] | None
    outcome: str = ""
    reason: str = ""
    details: str = ""
    seconds: float = 0.0


class Recorder:
    """The one object that writes events and the progress lines."""

    def __init__(self, config: pytest.Config, path: Path) -> None:
        self._config, self._writer = config, Writer(path)
        self._cases: dict[str, Case] = {}
        self._deselected: list[dict[str, str]] = []
        self._began, self._started = time.monotonic(), False
        self._planned = self._done = self._passed = 0
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
            pytest.exit(f"{exc}; what was found before is there", returncode=RigError.exit_code)

    def start(self) -> None:
        """Write what the run stands on: first as the start of the run, later as news."""
        self._write("rig" if self._started else "run-start", **self._config.stash.get(RIG, NO_RIG))
        self._started = True

    def pytest_deselected(self, items: list[pytest.Item]) -> None:
        """Note what was left out: a promise with tests left out is not proved."""
        self._deselected += [{"id": item.nodeid, "promise": promise_of(item) or ""} for item in items]

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Treat a file that cannot be collected as a broken rig, and a skipped one as a skip."""
        if report.failed or report.skipped:
            self._open()
            word = "error" if report.failed else "skip"
            self._write(
                "test",
                id=report.nodeid,
                promise=None,
                cell=None,
                outcome=word,
                seconds=0.0,
                reason=_reason(report),
                details=_details(report),
                evidence={},
            )

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Write the plan: every test that has to give a result."""
        self._planned = len(session.items)
        if self._config.getoption("collectonly"):
            return
        if RIG in self._config.stash:
            self._open()
        if REPLAY in self._config.stash:
            self._write("replay", **former.event(*self._config.stash[REPLAY]))
        self._write(
            "plan",
            deselected=self._deselected,
            tests=[{"id": item.nodeid, "promise": promise_of(item)} for item in session.items],
        )

    def _open(self) -> None:
        if not self._started:
            self.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Say which test is about to run, so that a crash names it."""
        self._cases[item.nodeid] = Case(promise_of(item), cell_of(item))
        self._write(
            "progress",
            id=item.nodeid,
            n=self._done + 1,
            of=self._planned,
            elapsed=round(time.monotonic() - self._began, 3),
        )
        self._show_running(item.nodeid)
        result = yield
        self._finish(item)
        return result

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Settle the outcome of one step; outermost, so that an xfail cannot hide a broken rig."""
        report = yield
        rig = call.excinfo is not None and _is_rig(call.excinfo.value)
        if report.skipped and hasattr(report, "wasxfail") and call.excinfo is not None:
            wanted = isinstance(call.excinfo.value, pytest.xfail.Exception)
            if rig or (report.when != "call" and not wanted):
                del report.wasxfail
                report.outcome, report.longrepr = "failed", str(call.excinfo.value)
        if report.passed and hasattr(report, "wasxfail"):
            report.outcome, report.longrepr = (
                "failed",
                f"passed, though a limitation is listed: {report.wasxfail}",
            )
            del report.wasxfail
        case = self._cases.setdefault(item.nodeid, Case(promise_of(item), cell_of(item)))
        _settle(case, report, "" if call.excinfo is None else _first_line(call.excinfo.value), rig)
        return report

    def _finish(self, item: pytest.Item) -> None:
        """Write the result of one test, once its teardown is over."""
        case = self._cases.pop(item.nodeid)
        self._open()
        self._done += 1
        self._took.append(case.seconds)
        self._passed += case.outcome == "pass"
        found = item.stash.get(EVIDENCE, {}) | dict(item.user_properties)
        if then := former_of(item):
            found["replay"] = replay.compare(then, case.outcome, case.reason, found)
        known = notes(item.nodeid, case.outcome, case.reason, self._config.stash.get(RIG, NO_RIG))
        self._write(
            "test",
            id=item.nodeid,
            promise=case.promise,
            cell=case.cell,
            outcome=case.outcome or "error",
            seconds=round(case.seconds, 3),
            reason=case.reason,
            details=case.details,
            evidence=found,
            **({"known_bugs": known} if known else {}),
        )
        self._show_done(item.nodeid, case)
        for note in known:
            self._config.get_terminal_writer().line(f"          {known_line(note)}", yellow=True)

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
            line = f"[{self._done + 1:>3}/{self._planned}] {self._clock()} {nodeid}"
            screen.write("\r\x1b[K" + line[: screen.fullwidth - 1], flush=True)

    def _show_done(self, nodeid: str, case: Case) -> None:
        """Print one line per finished test: which, how it ended, how long, how long so far, what is left."""
        screen = self._config.get_terminal_writer()
        if screen.hasmarkup:
            screen.write("\r\x1b[K")
        reason = f": {case.reason}" if case.reason else ""
        good = case.outcome in ("pass", "xfail")
        count = f"[{self._done:>3}/{self._planned}] {self._clock()}"
        line = f"{count} {case.outcome:<5} {case.seconds:6.1f} s  {nodeid}"
        screen.line(
            line + reason, green=good, red=not good and case.outcome != "skip", yellow=case.outcome == "skip"
        )
        screen.flush()

    def _clock(self) -> str:
        """Return the time so far and what may be left; the slowest test (with the set-up) is no guide."""
        past = _minutes(time.monotonic() - self._began)
        if self._done < 2:
            return past
        each = (sum(self._took) - max(self._took)) / (self._done - 1)
        return f"{past}, ~{_minutes(each * (self._planned - self._done))} left"


def _minutes(seconds: float) -> str:
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def _is_rig(exc: BaseException) -> bool:
    """Say whether an exception, or one inside a group or behind it as its cause, is a broken rig."""
    if isinstance(exc, BaseExceptionGroup):
        return any(_is_rig(inner) for inner in exc.exceptions)
    return isinstance(exc, RigError) or (exc.__cause__ is not None and _is_rig(exc.__cause__))


def _settle(case: Case, report: pytest.TestReport, line: str, rig: bool) -> None:
    """Fold one step into the case: an error stays an error, a failure is not undone by a later pass."""
    case.seconds += report.duration
    word = _word(report, rig)
    rank = {"": 0, "pass": 1, "xfail": 2, "skip": 3, "fail": 4, "error": 5}
    if rank[word] > rank[case.outcome]:
        before = f"; before that: {case.reason}" if case.outcome == "fail" else ""
        case.outcome = word
        case.reason = "" if word == "pass" else _reason(report, line) + before
        case.details = _details(report)


def _word(report: pytest.TestReport, rig: bool) -> str:
    """Return the outcome word of one step, by the table in tests/README.md."""
    if report.skipped:
        return "xfail" if hasattr(report, "wasxfail") else "skip"
    if report.failed:
        return "fail" if report.when == "call" and not rig else "error"
    return "pass" if report.when == "call" else ""


def _first_line(exc: BaseException) -> str:
    """Return the first line of a message, with the kind of error where the message alone says little."""
    lines = str(exc).strip().splitlines()
    if isinstance(exc, AssertionError | RigError | ConfigError) or not lines:
        return lines[0][:500] if lines else type(exc).__name__
    return f"{type(exc).__name__}: {lines[0]}"[:500]


def _reason(report: pytest.TestReport | pytest.CollectReport, line: str = "") -> str:
    """Return the reason for a person: one line."""
    if hasattr(report, "wasxfail"):
        listed = str(report.wasxfail).removeprefix("reason: ")
        return (listed if not line or listed in line else f"{listed}; seen: {line}")[:500]
    if isinstance(report.longrepr, tuple):  # a skip: (file, line, "Skipped: reason")
        return str(report.longrepr[2]).removeprefix("Skipped: ").strip()[:500]
    text = line or str(report.longrepr or "").strip().rpartition("\n")[2]
    return (
        f"in {report.when}: {text}"
        if getattr(report, "when", "call") in ("setup", "teardown")
        else text[:500]
    )


def _details(report: pytest.TestReport | pytest.CollectReport) -> str:
    """Return the traceback, the end of it if it is long; nothing for a pass or a skip."""
    return "" if report.passed or report.skipped else str(report.longrepr or "")[-DETAILS:]
