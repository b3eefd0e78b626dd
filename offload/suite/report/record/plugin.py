"""pytest plug-in: what each test found, as events on disk while the run goes on.

Use: `pytest -p offload.suite.report.record.plugin --events FILE`. FILE is replaced, unless it holds only what
`certify` wrote before the tests; then it is continued. Without --events only the promise ids are checked.
`--replay RESULT [--replay-only PATTERN]`: only the failed tests of a former run (replay.py). Then
`evidence["replay"]` holds that test's former impairments, if there were any, and in the end how they compare.

For conftest and tests:

* `@pytest.mark.promise("payload.tx")`, optionally `cell=...`: an id of criteria.yaml, else a usage error.
* The cell of the truth table is the marker's `cell=`, or the test's parameter called `cell`: a mapping, a
  dataclass, or the tuple (direction, version, cipher) that Profile.cells() gives.
* fixture `evidence`: a dict; `evidence["bytes"] = n`. Well-known names, shown specially in the report:
  `counters` {name: difference}, `offload` "hw" | "sw", and every name under `levels:` in criteria.yaml;
  `bytes` and `sha256` of the payload (proof A); `wire` {"proof": "B" | "C" | "where", "outcome": "equal" |
  "different" | "inconclusive", "engine": "core" | "python" (B only), "records": n, "bytes": n (those proven),
  "difference": a sentence or ""}. A test that passes with another outcome than "equal" counts as failed.
  `captured` {"frames": n, "unexplained": n, "first": [{"code", "at", "between"}]}, which captures write
  themselves (tests/lib/wire/captures.py): one frame left over breaks wire.where, whichever test met it.
  Numbers are bare, with the unit in the name. What JSON cannot hold becomes text.
* `set_rig(config, rig, profile=ID, kernel=RELEASE, simulated=True)`: call once, when the bench is up
  (a session fixture will do), before the first test ends.
* A known limitation is `pytest.xfail("<limitation id>: message")`: tests/lib/rig/limits.py alone does it.
  The id must be in the profile's limitations for that test, or the verdict counts it as a failure.
* A RigError (or a subclass) anywhere, a failing setup and a failing teardown are `error`: the rig broke.
  A failing assertion about the NIC belongs in the test body; one about the rig raises RigError.
* A test that fails on a kernel with a known bug that its message fits gets a note (errata.yaml, known.py):
  `set_rig` wants `kernel-package` (Debian's version) and `driver` in `rig` for it. The outcome stays.
* A skip is "the rig lacks something" and makes a blocker incomplete. Do not collect
  a test of what the profile does not promise: parametrize over the profile's cells.

Nothing here needs a private pytest import. settle.py runs where tests run, recorder.py where events are
written; in a parallel run (`pytest -n 2`) these are different processes.
PYTEST_DONT_REWRITE: there is no assert here, and conftest may import this before it names it as a plug-in.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from offload.errors import ConfigError
from offload.suite.report import former
from offload.suite.report.criteria import load
from offload.suite.report.record.recorder import NAME, Recorder
from offload.suite.report.record.settle import Settler
from offload.suite.report.record.testinfo import EVIDENCE, REPLAY, RIG, former_of


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --events and --replay."""
    group = parser.getgroup("ktls-offload report")
    group.addoption("--events", metavar="FILE", help="write one JSON line per event to FILE")
    group.addoption(
        "--replay", metavar="RESULT", help="only the failed tests of this run, under its impairments"
    )
    group.addoption("--replay-only", metavar="PATTERN", default="", help="its tests with PATTERN in their id")


def pytest_configure(config: pytest.Config) -> None:
    """Register the markers, and what settles and records if a file is wanted."""
    config.addinivalue_line(
        "markers", "promise(id, cell=None): the promise in criteria.yaml that this test proves"
    )
    if config.getoption("--replay"):
        try:
            then = former.read(Path(config.getoption("--replay")))
            config.stash[REPLAY] = then, former.choose(then, config.getoption("--replay-only"))
        except ConfigError as exc:
            raise pytest.UsageError(str(exc)) from None
    if path := config.getoption("--events"):
        settler = Settler(config)
        config.pluginmanager.register(settler, "ktls-offload-settler")
        if not hasattr(config, "workerinput"):
            config.pluginmanager.register(_recorder(config, Path(path), settler), NAME)


def _recorder(config: pytest.Config, path: Path, settler: Settler) -> Recorder:
    try:
        return Recorder(config, path, settler)
    except ConfigError as exc:
        raise pytest.UsageError(str(exc)) from None


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


@pytest.fixture
def evidence(request: pytest.FixtureRequest) -> dict[str, Any]:
    """Return what the test measured, by name; the event has it next to the outcome."""
    found: dict[str, Any] = request.node.stash.setdefault(EVIDENCE, {})
    impairment = (former_of(request.node) or {"evidence": {}})["evidence"].get("impairment")
    if impairment is not None:
        found.setdefault("replay", impairment)
    return found


def set_rig(
    config: pytest.Config, rig: Mapping[str, Any], *, profile: str, kernel: str, simulated: bool
) -> None:
    """Say what the run stands on: versions by name, profile id, kernel release, simulated or real."""
    config.stash[RIG] = {"rig": dict(rig), "profile": profile, "kernel": kernel, "simulated": simulated}
    recorder = config.pluginmanager.get_plugin(NAME)
    if recorder is not None:
        recorder.start()
