"""The pytest plug-in, by running pytest inside pytest: each outcome gets its own word."""

import json
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from offload.cmd import wait_until
from offload.errors import RigError
from tests.unit.conftest import LEFT_OUT

pytest_plugins = "pytester"

HEAD = """
import os, pytest
from offload.errors import RigError, CommandFailed
from offload.suite.report.record.plugin import set_rig

@pytest.fixture(autouse=True, scope="session")
def bench(pytestconfig):
    set_rig(pytestconfig, {"qemu": "7.2"}, profile="nicsim", kernel="6.1.0", simulated=True)

@pytest.fixture
def bad_undo():
    yield
    raise AssertionError("undone")

@pytest.fixture
def bad_setup():
    raise ValueError("no bench")
"""


def play(
    pytester: pytest.Pytester, body: str, *options: str, place: str = "test_it.py"
) -> tuple[int, list[dict[str, Any]]]:
    """Run a test file with the plug-in: (exit code, its events)."""
    (pytester.path / place).write_text(HEAD + body)
    pytester.makeini(f"[pytest]\nxfail_strict = true\naddopts = {LEFT_OUT}")
    done = pytester.runpytest_inprocess(
        "-p", "offload.suite.report.record.plugin", "--events", "e.jsonl", "-q", *options
    )
    path = pytester.path / "e.jsonl"
    return done.ret, [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def results(events: list[dict[str, Any]]) -> list[tuple[str, str]]:
    """(outcome, reason) of each test."""
    return [(event["outcome"], event["reason"]) for event in events if event["event"] == "test"]


XFAIL = "@pytest.mark.xfail(reason='L1: known')\n"


@pytest.mark.parametrize(
    ("body", "exit", "outcome", "reason"),
    [
        ("def test(): pass", 0, "pass", ""),
        ("def test(): assert 1 == 2, 'one\\nor two'", 1, "fail", "one"),
        ("def test(): assert 0, 'x' * 1500", 1, "fail", "x" * 1500),  # a scenario says much
        ("def test(): raise KeyError('x')", 1, "fail", "KeyError: 'x'"),
        ("def test(): raise RigError('VM down')", 1, "error", "VM down"),
        ("def test(): raise CommandFailed(['ls'], 1, b'', b'')", 1, "error", "command failed (here)"),
        ("def test():\n    raise ExceptionGroup('g', [RigError('x')])", 1, "error", "ExceptionGroup: g"),
        ("def test(bad_undo): pass", 1, "error", "in teardown: undone"),
        ("def test(bad_undo): raise OSError(1)", 1, "error", "in teardown: undone; before that: OSError: 1"),
        ("def test(bad_setup): pass", 1, "error", "in setup: ValueError: no bench"),
        (XFAIL + "def test(): assert 0, 'odd'", 1, "xfail", "L1: known; seen: odd"),
        ("def test(): pytest.xfail('L1: known')", 1, "xfail", "L1: known"),
        (XFAIL + "def test(): pass", 1, "fail", "[XPASS(strict)] L1: known"),
        (XFAIL + "def test(): raise RigError('VM down')", 1, "error", "VM down"),
        (XFAIL + "def test(bad_setup): pass", 1, "error", "in setup: ValueError: no bench"),
        (XFAIL.replace(")", ", strict=False)") + "def test(): pass", 1, "fail", "passed, though"),
        ("def test(): pytest.skip('no second host')", 1, "skip", "no second host"),
        ("@pytest.mark.skip(reason='no tool')\ndef test(): pass", 1, "skip", "no tool"),
    ],
)
def test_outcome_words(pytester: pytest.Pytester, body: str, exit: int, outcome: str, reason: str) -> None:
    """Every way in which a test can end has one word, and "nothing passed" is no success."""
    code, events = play(pytester, body)
    (found,) = results(events)
    assert found[0] == outcome and found[1].startswith(reason), found
    assert (code, events[-1]["event"], events[-1]["exit"]) == (exit, "run-end", exit)


def test_what_an_event_carries(pytester: pytest.Pytester) -> None:
    """Promise, cell, evidence and rig reach the file, in the order of the run."""
    body = """
@pytest.mark.promise("payload.tx")
@pytest.mark.parametrize("cell", [("tx", "1.2", "aes-gcm-128")])
def test_a(cell, evidence, record_property):
    evidence["bytes"] = 7
    evidence["odd"] = object
    record_property("extra", 1)
"""
    code, events = play(pytester, body)
    assert code == 0 and [event["seq"] for event in events] == list(range(len(events)))
    assert [event["event"] for event in events] == ["plan", "progress", "run-start", "test", "run-end"]
    start, test = events[2], events[3]
    assert (start["rig"], start["profile"], start["simulated"]) == ({"qemu": "7.2"}, "nicsim", True)
    assert test["cell"] == {"direction": "tx", "version": "1.2", "cipher": "aes-gcm-128"}
    assert test["evidence"] == {"bytes": 7, "odd": "<class 'object'>", "extra": 1}
    assert events[0]["tests"] == [{"id": test["id"], "promise": "payload.tx"}]


def test_unknown_promise_is_a_usage_error(pytester: pytest.Pytester) -> None:
    """A mistyped promise stops the run before the first test, naming the nearest."""
    pytester.makepyfile("import pytest\n@pytest.mark.promise('payload.xt')\ndef test(): pass")
    done = pytester.runpytest_inprocess("-p", "offload.suite.report.record.plugin")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*unknown promise 'payload.xt' (did you mean payload.tx?)*"])


def test_left_out_and_uncollectable_are_noted(pytester: pytest.Pytester) -> None:
    """A deselected test is in the plan, and a file that cannot be read is an error."""
    body = "def test_a(): pass\n@pytest.mark.promise('payload.rx')\ndef test_b(): pass"
    _, events = play(pytester, body, "-k", "test_a")
    (plan,) = [event for event in events if event["event"] == "plan"]
    assert [test["promise"] for test in plan["deselected"]] == ["payload.rx"]
    code, events = play(pytester, "import nowhere")
    assert code != 0 and results(events)[0][0] == "error" and "nowhere" in results(events)[0][1]


def test_progress_is_one_plain_line_per_test(pytester: pytest.Pytester) -> None:
    """The screen says which, how many of how many, how long, and no control characters."""
    pytester.makepyfile("def test_a(): pass\ndef test_b(): assert 0, 'why'")
    done = pytester.runpytest_inprocess("-p", "offload.suite.report.record.plugin", "--events", "e", "-q")
    done.stdout.re_match_lines(
        [r"\[  1/2\] 0:\d\d pass .*test_a$", r"\[  2/2\].*, ~0:00 left fail .*test_b: why$"]
    )
    assert "\x1b" not in done.stdout.str() and "\r" not in done.stdout.str()


def test_a_killed_run_keeps_its_events(pytester: pytest.Pytester) -> None:
    """Kill -9 in the middle of a test loses nothing that was found before."""
    file = pytester.makepyfile("import time\ndef test_a(): pass\ndef test_b(): time.sleep(60)")
    argv = [
        sys.executable,
        "-m",
        "pytest",
        "-p",
        "offload.suite.report.record.plugin",
        "--events",
        "e",
        "-q",
        str(file),
    ]
    child = subprocess.Popen(argv, cwd=pytester.path, stdout=subprocess.DEVNULL)
    path = Path(pytester.path) / "e"
    with suppress(RigError):
        wait_until(
            lambda: path.exists() and b'::test_b", "n": 2' in path.read_bytes(), 120, "the second test"
        )
    child.send_signal(signal.SIGKILL)
    child.wait(10)
    events = [json.loads(line) for line in path.read_text().splitlines()]
    assert results(events) == [("pass", "")] and events[-1]["event"] == "progress"


def test_without_a_file_nothing_is_written(pytester: pytest.Pytester) -> None:
    """The plug-in alone changes neither the exit code nor the folder."""
    pytester.makepyfile("import pytest\ndef test(evidence): evidence['x'] = 1; pytest.skip('x')")
    done = pytester.runpytest_inprocess("-p", "offload.suite.report.record.plugin", "-p", "no:cacheprovider")
    assert done.ret == 0 and not list(pytester.path.glob("*.jsonl"))


def test_replay_runs_what_failed_in_its_former_impairment(pytester: pytest.Pytester) -> None:
    """--replay leaves out what passed, hands out the recorded impairment, and compares."""
    body = """
def test_good(): pass
def test_bad(evidence):
    rules = evidence["replay"]["rules"] if "replay" in evidence else ["b>a first drop"]
    evidence["impairment"] = {"rules": rules, "actions": [], "seed": 1}
    assert 0, "lost"
"""
    _, first = play(pytester, body)
    (pytester.path / "e.jsonl").rename(pytester.path / "then.jsonl")
    code, events = play(pytester, body.replace("first", "last"), "--replay", "then.jsonl")
    assert code == 1 and results(events) == [("fail", "lost")]
    (head,) = [event for event in events if event["event"] == "replay"]
    assert [row["outcome"] for row in head["tests"]] == ["fail"] and head["kernel"] == "6.1.0"
    (test,) = [event for event in events if event["event"] == "test"]
    assert test["evidence"]["impairment"]["rules"] == ["b>a first drop"]
    reported = {"then": "fail", "same": True, "same_reason": True, "impairment": "no rule matched a frame"}
    assert test["evidence"]["replay"] == reported
    plan = next(event for event in events if event["event"] == "plan")
    assert [row["id"].rpartition("::")[2] for row in plan["deselected"]] == ["test_good"]


def test_replay_of_nothing_is_a_usage_error(pytester: pytest.Pytester) -> None:
    """A result that cannot be repeated stops the run before the first test."""
    play(pytester, "def test(): pass")
    done = pytester.runpytest_inprocess("-p", "offload.suite.report.record.plugin", "--replay", "e.jsonl")
    assert done.ret == pytest.ExitCode.USAGE_ERROR
    done.stderr.fnmatch_lines(["*no test of * failed: there is nothing to repeat*"])


FULL = """
import resource

@pytest.fixture(scope="session", autouse=True)
def switched():
    yield
    open("undone", "w").close()

@pytest.mark.parametrize("n", range(6))
def test(n):
    if n == 3:
        most = os.path.getsize("e.jsonl") + 100  # as a disk with so much room left: the next line is torn
        resource.setrlimit(resource.RLIMIT_FSIZE, (most, most))
"""


def test_full_disk_loses_nothing(pytester: pytest.Pytester) -> None:
    """A disk that fills up under the tests is one sentence; undos run, no line is torn."""
    pytester.makepyfile(HEAD + FULL)
    pytester.makeini(f"[pytest]\naddopts = {LEFT_OUT}")
    done = pytester.runpytest_subprocess(
        "-p", "offload.suite.report.record.plugin", "--events", "e.jsonl", "-q"
    )
    said = [line for line in done.outlines + done.errlines if "cannot write" in line]
    events = [json.loads(line) for line in (pytester.path / "e.jsonl").read_text().splitlines()]
    assert done.ret == RigError.exit_code and len(said) == 1 and "File too large" in said[0]
    assert not [line for line in done.outlines + done.errlines if "Traceback" in line or "INTERNAL" in line]
    assert results(events) == [("pass", "")] * 3 and (pytester.path / "undone").exists()
