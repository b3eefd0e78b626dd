"""ci/again: a test of a lab stage that fails once and then passes three times is a flake; nothing else is."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from offload.cmd import wait_until
from tests.unit.conftest import LEFT_OUT

ROOT = Path(__file__).parents[3]
AGAIN = ROOT / "ci/again"
# a test that counts its runs in a file: how the first ends, and how those after it
BODY = """
import os, pytest
from pathlib import Path

def ran(name):
    note = Path(name); before = len(note.read_text()) if note.exists() else 0
    note.write_text("x" * (before + 1))
    return before + 1
"""


@dataclass
class Stage:
    """A folder with a stage of fake tests in it."""

    home: Path
    python: str

    def tests(self, body: str, name: str = "test_a.py") -> None:
        """Write a file of tests."""
        (self.home / "tests/lab" / name).write_text(BODY + body)

    def argv(self, *options: str) -> list[str]:
        """The command of the stage."""
        return [str(AGAIN), self.python, "-m", "pytest", "-q", *options, "tests/lab", *LEFT_OUT.split()]

    def env(self, again: bool = True) -> dict[str, str]:
        """The environment, with a second chance or without."""
        env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST_", "AGAIN"))}
        return env | {"PYTHONPATH": str(ROOT)} | ({"AGAIN": str(self.home / "flakes")} if again else {})

    def run(self, *options: str, again: bool = True) -> tuple[int, str]:
        """Run the stage: exit code and what it said."""
        done = subprocess.run(
            self.argv(*options), cwd=self.home, env=self.env(again), capture_output=True, text=True
        )
        return done.returncode, done.stdout + done.stderr

    def runs(self, name: str) -> int:
        """How often a test ran."""
        note = self.home / name
        return len(note.read_text()) if note.exists() else 0

    def flakes(self) -> str:
        """What is noted for the end of the gate."""
        note = self.home / "flakes/flakes"
        return note.read_text() if note.exists() else ""


@pytest.fixture
def stage(tmp_path: Path, warm_python: str) -> Stage:
    (tmp_path / "tests/lab").mkdir(parents=True)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return Stage(tmp_path, warm_python)


def test_a_flake_passes_the_stage_and_keeps_its_evidence(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A test that fails once and passes three times alone is named, and the stage passes."""
    stage.tests('def test_b():\n assert ran("b") != 1, "the clock"\ndef test_c():\n ran("c")\n')
    monkeypatch.setenv("LAB_CPUS", "2")
    rc, said = stage.run("--color=no")
    assert rc == 0 and (stage.runs("b"), stage.runs("c")) == (4, 1)
    line = stage.flakes().strip()
    assert line in said and line.startswith("FLAKE tests/lab/test_a.py::test_b   repeat it: LAB_CPUS=2 ")
    assert said.index("1 failed, 1 passed") < said.index("FLAKE")
    again = line.partition("repeat it: ")[2].partition("   evidence: ")[0]
    assert again.endswith(f"-q --color=no {LEFT_OUT} tests/lab/test_a.py::test_b")
    folder = Path(line.partition("evidence: ")[2])
    assert "AssertionError: the clock" in (folder / "first.txt").read_text()
    assert len(list(folder.glob("test-0/again-*.txt"))) == 3


@pytest.mark.parametrize("bad", [2, 4], ids=["first", "last"])
def test_one_failure_more_is_a_failure(stage: Stage, bad: int) -> None:
    """A test that fails in one of the three repetitions fails the stage, at once."""
    stage.tests(f'def test_b():\n assert ran("b") not in (1, {bad})\n')
    rc, said = stage.run()
    assert rc == 1 and stage.runs("b") == bad and "FAILED again: tests/lab/test_a.py::test_b" in said
    assert not stage.flakes() and "FLAKE" not in said


def test_of_two_failed_tests_both_have_to_be_flakes(stage: Stage) -> None:
    """One flake beside one real failure passes nothing."""
    stage.tests('def test_b():\n assert ran("b") != 1\ndef test_c():\n assert not ran("c")\n')
    rc, said = stage.run()
    assert rc == 1 and stage.runs("b") == 4 and stage.runs("c") == 2 and not stage.flakes()


@pytest.mark.parametrize("when", ["set-up", "tear-down"])
def test_an_error_has_the_same_chance(stage: Stage, when: str) -> None:
    """A broken rig counts as a failure, before a test and after it."""
    body = (
        '@pytest.fixture\ndef lab():\n before = "set-up" == WHEN\n if before: assert ran("b") != 1\n yield\n'
    )
    body += ' if not before: assert ran("b") != 1\ndef test_b(lab): pass\n'
    stage.tests(body.replace("WHEN", repr(when)))
    rc, said = stage.run()
    assert rc == 0 and stage.runs("b") == 4 and "FLAKE tests/lab/test_a.py::test_b" in said


def test_a_skip_is_no_pass(stage: Stage) -> None:
    """A failed test whose repetition is skipped is not forgiven, though pytest ends with 0."""
    stage.tests('def test_b():\n if ran("b") > 1: pytest.skip("no rig")\n assert False\n')
    rc, said = stage.run()
    assert rc == 1 and stage.runs("b") == 2 and "FAILED again" in said


def test_many_failures_are_no_accident(stage: Stage) -> None:
    """Six failed tests are not repeated."""
    stage.tests('@pytest.mark.parametrize("n", range(6))\ndef test_b(n):\n assert ran("b") > 6\n')
    rc, said = stage.run()
    assert rc == 1 and stage.runs("b") == 6 and "6 tests failed, more than 5" in said


def test_a_test_that_runs_certify_is_not_forgiven(stage: Stage) -> None:
    (stage.home / "tests/nicsim").mkdir()
    (stage.home / "tests/nicsim/test_42_probe.py").write_text(BODY + 'def test_b():\n assert ran("b") > 1\n')
    rc, said = stage.run("tests/nicsim")
    assert rc == 1 and stage.runs("b") == 1 and "runs certify, which gets no second chance" in said


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ('def test_b():\n ran("b"); os.kill(os.getpid(), 9)\n', 256 - 9),
        ('def test_b():\n ran("b"); pytest.exit("the disk is full", returncode=7)\n', 7),
        ("def test_b(:\n", 2),
        ("", 5),
        ('def test_b():\n ran("b"); raise KeyboardInterrupt\n', 2),
    ],
    ids=["crash", "exit", "unreadable", "nothing", "interrupt"],
)
def test_a_run_that_broke_gets_no_second_chance(stage: Stage, body: str, code: int) -> None:
    """Only "tests failed" is repeated: no crash, early end, bad file or empty stage."""
    stage.tests(body)
    rc, said = stage.run()
    assert rc == code and stage.runs("b") <= 1 and "no second chance: pytest ended with" in said
    assert not stage.flakes()


def test_several_workers(stage: Stage) -> None:
    """A parallel run's flake is repeated by one process; a crash of a worker is none."""
    many = ("-n", "2", "--max-worker-restart", "0")
    body = 'def test_b():\n assert ran("b") != 1\ndef test_c(pytestconfig):\n pass\n'
    stage.tests(body)
    rc, said = stage.run(*many)
    assert rc == 0 and stage.runs("b") == 4 and " -n0 tests/lab/test_a.py::test_b " in stage.flakes()
    stage.tests('def test_d():\n if ran("d") == 1: os.kill(os.getpid(), 9)\n' + body.replace("!=", ">="))
    rc, said = stage.run(*many)
    assert rc == 3 and stage.runs("d") == 1 and "no second chance: pytest ended with 3" in said


def test_a_person_gets_no_second_chance(stage: Stage) -> None:
    """Nothing is repeated unless AGAIN is set, and a good stage is run once in any case."""
    stage.tests('def test_b():\n assert ran("b") != 1\n')
    rc, said = stage.run(again=False)
    assert rc == 1 and stage.runs("b") == 1 and "again:" not in said and "FLAKE" not in said
    rc, said = stage.run()
    assert rc == 0 and stage.runs("b") == 2 and "again:" not in said


def test_the_sample_of_the_day_does_not_hide_the_test(stage: Stage) -> None:
    """A repetition after midnight is not in another half of the tests."""
    (stage.home / "conftest.py").write_text("def pytest_addoption(parser): parser.addoption('--sample')\n")
    stage.tests('def test_b(pytestconfig):\n assert ran("b") != 1\n assert not pytestconfig.option.sample\n')
    assert stage.run("--sample=today")[0] == 0 and stage.runs("b") == 4


def test_the_console_of_the_lab_is_kept(stage: Stage) -> None:
    """A failed test's evidence ends with what the kernel said."""
    lab = 'class Lab:\n def console_text(self, since=0): return "BUG: a bad day\\n"\nclass Rig: lab = Lab()\n'
    stage.tests(f'{lab}@pytest.fixture\ndef rig(): return Rig()\ndef test_b(rig):\n assert ran("b") != 1\n')
    assert stage.run()[0] == 0
    assert "BUG: a bad day" in next((stage.home / "flakes").glob("*/first.txt")).read_text()


def test_ctrl_c_ends_pytest_too(stage: Stage) -> None:
    """An interrupted stage leaves no pytest behind, and repeats nothing."""
    stage.python = sys.executable
    stage.tests('import time\ndef test_b():\n Path("pid").write_text(str(os.getpid())); time.sleep(600)\n')
    child = subprocess.Popen(
        stage.argv(), cwd=stage.home, env=stage.env(), stdout=subprocess.DEVNULL, start_new_session=True
    )
    note = stage.home / "pid"
    wait_until(lambda: note.exists() and bool(note.read_text()), 60, "the test to run")
    os.killpg(child.pid, signal.SIGINT)
    assert child.wait(60) in (2, 130) and not Path(f"/proc/{note.read_text()}").exists()


def test_every_stage_test_that_runs_certify_is_final() -> None:
    files = [
        p for folder in ("hw", "sw-fallback", "nicsim") for p in (ROOT / "tests" / folder).rglob("test_*.py")
    ]
    runs = [p for p in files if re.search(r'"-m", "offload", "certify"', p.read_text())]
    assert runs
    final = AGAIN.read_text()
    assert all(f'"{p.relative_to(ROOT)}"' in final for p in runs)
