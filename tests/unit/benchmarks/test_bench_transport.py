"""What ssh costs is said of a whole suite, by the figure that other programs do not move."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks import transport, transport_meter
from benchmarks.transport import FIRST, QUIET, Took
from offload.errors import RigError

ROOT = Path(__file__).parents[3]
OTHERS = ("a", "b")


def run(wall: float, cpu: float, outcome: str = "pass", first: float = 5.0) -> transport.Run:
    """A run in which each test took this."""
    opening = {name: Took("pass", first, first, 50) for name in FIRST}
    return opening | {name: Took(outcome, wall, cpu, 30) for name in OTHERS}


def test_a_sample_is_every_so_many_th() -> None:
    """A sample is spread over the whole list, and the same each time."""
    names = [str(number) for number in range(20)]
    assert transport.sample(names, 8) == ["3", "11", "19"]
    assert transport.sample(names, 1) == names and transport.sample(names[:3], 8) == []


def test_the_suite_of_a_sample() -> None:
    """What opens the bench counts once, and what the sample took for all that it stands for."""
    names = [*FIRST, *OTHERS]
    found = transport.whole(run(2.0, 1.0), names, 20)
    assert found == transport.Whole(3 * 5.0 + 20 * 2.0, 3 * 5.0 + 20 * 1.0, 30)


def test_of_two_rounds_the_least() -> None:
    """A round in which the machine was busy costs nothing that the other one did not take."""
    found = transport.least([run(2.0, 1.5), run(9.0, 1.0)])
    assert found["a"] == Took("pass", 2.0, 1.0, 30)
    assert transport.between([run(1, 6.0, first=1.0), run(1, 3.5, first=1.0)], [*FIRST, *OTHERS]) == 0.5


def test_transports_that_do_not_say_the_same() -> None:
    """A test that only one way skips is left out, and any other difference is no result."""
    same, out = transport.alike(run(1, 1), run(1, 1, "skip"))
    assert same == list(FIRST) and out == list(OTHERS)
    with pytest.raises(RigError, match="do not say the same: a, b"):
        transport.alike(run(1, 1), run(1, 1, "xfail"))


@pytest.mark.parametrize(
    "wall, cpu, others, held, words",
    [
        (2.2, 1.5, 0.0, True, "the clock decides"),
        (2.6, 1.1, 0.0, False, "+30.0%, MISSED"),
        (9.0, 1.1, 1.3, True, "the processor decides: others took up to 1.30 cores"),
        (2.0, 1.5, QUIET, False, "+50.0%, MISSED"),
    ],
)
def test_the_verdict(
    capsys: pytest.CaptureFixture[str], wall: float, cpu: float, others: float, held: bool, words: str
) -> None:
    """The clock decides on an idle machine, the processors' time on one that others use."""
    agent, ssh = run(2.0, 1.0, first=0.0), run(wall, cpu, first=0.0)
    assert transport.report(agent, ssh, 100, others, 0.04) is held
    assert words in capsys.readouterr().out


def test_a_verdict_that_a_busy_machine_does_not_allow(capsys: pytest.CaptureFixture[str]) -> None:
    """Shares of rounds that differ among themselves are shown, and neither held nor missed."""
    with pytest.raises(RigError, match="not decided: others took up to 1.60 cores, .* differ by 22%"):
        transport.report(run(2.0, 1.0), run(2.0, 1.0), 100, 1.6, 0.22)
    assert "by the processor ssh costs +0.0%" in capsys.readouterr().out
    assert transport.report(run(2.0, 1.0), run(2.0, 1.0), 100, 0.0, 0.22), "the clock of an idle machine"


def test_what_the_first_tests_are() -> None:
    """The tests that go first exist, and are in no sample; nor is what a lab does elsewhere."""
    every = transport.collected("")
    some = transport.counted(every)
    assert set(FIRST) < set(every) and not set(FIRST) & set(some)
    for word in transport.ELSEWHERE:
        assert any(word in name for name in every) and not any(word in name for name in some), word


def test_the_meter(tmp_path: Path) -> None:
    """A test's line holds the processor time of its children, and those still there, too."""
    work = "import time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\n"
    (tmp_path / "test_it.py").write_text(
        f"import subprocess, sys\nWORK = [sys.executable, '-c', {work!r}]\n"
        f"STAY = [sys.executable, '-c', {work + 'time.sleep(600)'!r}]\n"
        "def test_one():\n    subprocess.run(WORK)\n"
        "def test_two():\n    test_two.child = subprocess.Popen(STAY, stdout=subprocess.PIPE)\n"
        "    test_two.child.stdout.readline()\n"
        "def test_three():\n    test_two.child.kill()\n    test_two.child.communicate()\n"
    )
    out = tmp_path / "meter"
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", os.devnull]
    argv += ["-p", "benchmarks.transport_meter", "--meter", str(out), "--meter-vm", str(os.getpid())]
    subprocess.run([*argv, str(tmp_path / "test_it.py")], cwd=ROOT, check=True, capture_output=True)
    rows = transport.rows(out)
    assert [str(row["id"]).rpartition("::")[2] for row in rows] == ["test_one", "test_two", "test_three"]
    took = [transport.taken("pass", row, 0.0) for row in rows]
    assert min(took[0].cpu, took[1].cpu) >= 0.28 and took[2].cpu < 0.28 and took[0].requests == 0, took
    assert transport_meter.spent(os.getpid()) > 0
