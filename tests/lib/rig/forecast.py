"""`--forecast FILE`: what each test asks of the bench and what the bench lacks, as JSON; no test is run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from offload.errors import OffloadError
from offload.suite.report.forecast import SCHEMA
from offload.suite.report.record.testinfo import promise_of
from tests.lib.rig import needs
from tests.lib.rig.rig import Labs


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --forecast."""
    group = parser.getgroup("ktls-offload rig")
    group.addoption("--forecast", metavar="FILE", default="", help="only say what the bench lacks, in FILE")


def needs_of(item: pytest.Item) -> list[str]:
    """Return what a test asks of the bench, by its markers."""
    names = [str(name) for marker in item.iter_markers("requires") for name in marker.args]
    return list(dict.fromkeys(names))


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """Probe every need once instead of running the tests."""
    path = session.config.getoption("--forecast")
    if not path:
        return None
    tests = [{"promise": promise_of(item) or "", "needs": needs_of(item)} for item in session.items]
    document = {"schema": SCHEMA, "tests": tests, "lacks": {}, "error": ""}
    try:
        document["lacks"] = _probed(session.config, {name for test in tests for name in test["needs"]})
    except OffloadError as exc:  # the caller tells it in a line, and goes on
        document["error"] = str(exc)
    Path(path).write_text(json.dumps(document))
    return True


def _probed(config: pytest.Config, wanted: set[str]) -> dict[str, str]:
    """Return what the bench lacks, in words, by need."""
    labs = Labs(config, lambda line: None)
    try:
        rig = labs.get("nicsim")
        return {name: words for name in sorted(wanted) for words in needs.unmet(rig, [name])}
    finally:
        labs.close()
