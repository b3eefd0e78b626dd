"""`certify --depth` and `--scenario`: what reaches the tests, and what is refused before anything starts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.errors import ConfigError
from tests.unit.suite.certify.fake_certify import FakeLab, call, checkout

CONFTEST = """
import pytest

def pytest_addoption(parser):
    for name in ("--profile", "--kernel"):
        parser.addoption(name)
    parser.addoption("--depth", default="quick")
    parser.addoption("--scenario", action="append", default=[])

def pytest_collection(session):
    if "sead=7" in session.config.getoption("--scenario"):
        raise pytest.UsageError("scenario: no dimension 'sead' (did you mean seed?)")
"""
SCENARIOS = """
import pytest
from offload.suite.report.crossed import scenario_of
from offload.suite.report.record.testinfo import REPLAY

def pytest_generate_tests(metafunc):
    _, again = metafunc.config.stash.get(REPLAY, (None, ()))
    asked = [*metafunc.config.getoption("--scenario"), *map(scenario_of, again)]
    lines = asked or [metafunc.config.getoption("--depth"), "seed=1"]
    metafunc.parametrize("line", lines, ids=lines)

@pytest.mark.promise("conditions.crossed")
def test_crosses(line):
    assert line != "seed=9,direction=rx"
"""
HERE = "tests/hw/test_70_scenarios.py::test_crosses"


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, warm_python: str) -> Iterator[Path]:
    """A checkout with scenarios that only say what they were asked."""
    for found in checkout(tmp_path, monkeypatch, warm_python):
        (found / "tree/tests/hw/conftest.py").write_text(CONFTEST)
        (found / "tree/tests/hw/test_70_scenarios.py").write_text(SCENARIOS)
        yield found


def test_the_depth_reaches_the_tests(root: Path) -> None:
    """--depth says how much the whole suite crosses."""
    code, report = call(root, "--depth", "deep")
    assert f"{HERE}[deep]" in {test["id"] for test in report["tests"]} and len(report["tests"]) > 20


def test_a_scenario_runs_alone_and_a_failed_one_is_repeated(root: Path) -> None:
    """--scenario runs nothing else; a replay knows it again, although it is of no depth."""
    code, report = call(root, "--scenario", "seed=7", "--scenario", "seed=9,direction=rx")
    assert (code, report["verdict"]) == (20, "failed")
    assert [test["id"] for test in report["tests"]] == [f"{HERE}[seed=7]", f"{HERE}[seed=9,direction=rx]"]
    (root / "run").rename(root / "former")
    code, report = call(root, "--replay", str(root / "former"))
    again = [test for test in report["replay"]["tests"]]
    assert [(test["id"], test["then"], test["now"]) for test in again] == [
        (f"{HERE}[seed=9,direction=rx]", "fail", "fail")
    ]


def test_scenarios_that_pass_are_no_certificate(root: Path) -> None:
    """A part of the tests never certifies."""
    code, report = call(root, "--scenario", "7")
    assert (code, report["verdict"], len(report["tests"])) == (21, "incomplete", 1)


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["--scenario", "sead=7"], r"^scenario: no dimension 'sead' \(did you mean seed\?\)"),
        (["--scenario", "7", "--depth", "deep"], "--scenario and --depth exclude each other"),
        (["--scenario", "7", "--replay", "former"], "--replay and --scenario exclude each other"),
        (["--depth", "deep", "--replay", "former"], "--replay and --depth exclude each other"),
        (["--scenario", "7", "--all-benches", "card=x"], "--all-benches and --scenario exclude each other"),
    ],
)
def test_what_cannot_be_is_refused_first(root: Path, words: list[str], why: str) -> None:
    """A wrong scenario, or options that clash, end it before a lab or a folder is made."""
    with pytest.raises(ConfigError, match=why):
        call(root, *words)
    assert not (root / "run").exists() and not FakeLab.up
