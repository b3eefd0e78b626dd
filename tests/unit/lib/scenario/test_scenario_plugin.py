"""The options --depth and --scenario, by pytest inside pytest: which tests, which plan, which refusal."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from offload.card.profile import find
from tests.lib.labs.homes import by_line
from tests.lib.scenario.array.covering import FIRST, array
from tests.lib.scenario.mtu import in_turn

ROOT = Path(__file__).parents[4]
CONFTEST = """
pytest_plugins = ["offload.suite.report.record.plugin", "tests.lib.scenario.plugin"]

def pytest_addoption(parser):
    parser.addoption("--profile", default="connectx-6-dx")
"""
LABS = """
pytest_plugins += ["tests.lib.labs.order", "tests.lib.labs.turns"]

def pytest_configure(config):
    if hasattr(config, "workerinput"):
        import tests.lib.scenario.plugin
        tests.lib.scenario.plugin.array = None  # only the controller finds an array
"""
TEST = """
import pytest

@pytest.mark.promise("conditions.crossed")
@pytest.mark.scenarios
def test_crosses(scenario, evidence, used):
    evidence["scenario"] = {"met": dict(scenario.values)}
    evidence["here"] = [one.line() for one in used.scenarios]
    assert scenario["trouble"] != "forged-tag"
"""


@dataclass
class Suite:
    """A folder of tests, and the Python that runs them."""

    home: Path
    python: str


@pytest.fixture
def suite(tmp_path: Path, warm_python: str) -> Suite:
    """A suite with one test of scenarios, which fails where a tag is forged: every depth has that."""
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "test_70_scenarios.py").write_text(TEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers = promise(id)\n")
    return Suite(tmp_path, warm_python)


def ran(suite: Suite, *options: str) -> tuple[int, str, list[dict[str, Any]]]:
    """Run the suite: exit code, what it said, its events."""
    argv = [suite.python, "-m", "pytest", "-q", "--events", str(suite.home / "events.jsonl"), *options]
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(argv, cwd=suite.home, env=env, capture_output=True, text=True, timeout=300)
    lines = (
        (suite.home / "events.jsonl").read_text().splitlines()
        if (suite.home / "events.jsonl").exists()
        else []
    )
    return done.returncode, done.stdout + done.stderr, [json.loads(line) for line in lines]


def results(events: list[dict[str, Any]]) -> dict[str, str]:
    """Outcome by line of the scenario."""
    tests = [event for event in events if event["event"] == "test"]
    return {event["id"].partition("[")[2][:-1]: event["outcome"] for event in tests}


def here(events: list[dict[str, Any]]) -> set[tuple[str, ...]]:
    """The scenarios whose old connections a lab has, of each lab that ran a test."""
    return {tuple(event["evidence"]["here"]) for event in events if event["event"] == "test"}


def test_quick_is_the_default_and_its_failures_are_repeated(suite: Suite) -> None:
    """A run has the scenarios of its depth, and a replay those that failed."""
    rc, said, events = ran(suite)
    found, wanted = results(events), array("quick", find("connectx-6-dx"))
    assert rc == 1 and list(found) == [one.line() for one in in_turn(wanted)] and len(wanted) == FIRST, said
    (plan,) = [event["conditions"] for event in events if event["event"] == "plan"]
    assert (plan["depth"], plan["scenarios"]) == ("quick", FIRST) and "not_yet" in plan
    assert here(events) == {tuple(found)}
    failed = {line for line, outcome in found.items() if outcome == "fail"}
    (suite.home / "events.jsonl").rename(suite.home / "former.jsonl")
    rc, said, events = ran(suite, "--replay", str(suite.home / "former.jsonl"))
    assert rc == 1 and set(results(events)) == failed != set(found), said


def test_labs_of_a_parallel_run_get_the_scenarios_from_the_controller(suite: Suite) -> None:
    """Each runs once, in one of the labs, and the plan is that of a run in one lab."""
    (suite.home / "conftest.py").write_text(CONFTEST + LABS)
    rc, said, events = ran(suite, "-p", "xdist", "-n", "2", "--working", "2", "--depth", "quick")
    wanted = array("quick", find("connectx-6-dx"))
    lines = [event["id"].partition("[")[2][:-1] for event in events if event["event"] == "test"]
    assert rc == 1 and sorted(lines) == sorted(one.line() for one in wanted), said
    (plan,) = [event["conditions"] for event in events if event["event"] == "plan"]
    assert (plan["depth"], plan["scenarios"]) == ("quick", len(wanted))
    at = by_line(wanted, 2, 2)
    both = {tuple(one.line() for one in in_turn(wanted) if at.get(one.line()) == lab) for lab in (0, 1)}
    assert here(events) == both and all(both)


def test_a_wrong_profile_of_a_parallel_run_is_a_usage_error(suite: Suite) -> None:
    """The controller reads it before there is a lab."""
    (suite.home / "conftest.py").write_text(CONFTEST + LABS)
    rc, said, _ = ran(suite, "-p", "xdist", "-n", "2", "--working", "1", "--profile", "connectx-66")
    assert rc == 4 and "no profile 'connectx-66'" in said and "Traceback" not in said, said


def test_a_chosen_scenario_runs_alone(suite: Suite) -> None:
    """--scenario runs what its lines say, once each, of no depth; a replay knows them."""
    line = "seed=7,direction=rx,trouble=lost-tag"
    rc, said, events = ran(
        suite, "--scenario", line, "--scenario", line, "--scenario", "seed=3,direction=rx,trouble=forged-tag"
    )
    assert rc == 1 and results(events) == {line: "pass", "seed=3,direction=rx,trouble=forged-tag": "fail"}, (
        said
    )
    (plan,) = [event["conditions"] for event in events if event["event"] == "plan"]
    assert (plan["depth"], plan["scenarios"]) == ("", 2)
    (suite.home / "events.jsonl").rename(suite.home / "former.jsonl")
    _, said, events = ran(suite, "--replay", str(suite.home / "former.jsonl"))
    assert results(events) == {"seed=3,direction=rx,trouble=forged-tag": "fail"}, said


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--scenario", "directoin=rx"], "did you mean direction?"),
        (["--scenario", "direction=rx", "--profile", "chelsio-t6"], "direction has no value 'rx'"),
        (["--depth", "deeper"], "invalid choice: 'deeper'"),
    ],
)
def test_what_cannot_be_is_a_usage_error(suite: Suite, options: list[str], why: str) -> None:
    """A wrong option ends the run before a test, with one line."""
    rc, said, events = ran(suite, *options)
    assert rc == 4 and why in said and "Traceback" not in said, said
    assert not results(events)
