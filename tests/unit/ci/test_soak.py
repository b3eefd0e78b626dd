"""make soak: how often each test fails beside a load, how sure that is, and that no load stays behind."""

from __future__ import annotations

import os
import runpy
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from offload.cmd import wait_until
from tests.unit.conftest import LEFT_OUT

pytest_plugins = "pytester"
ROOT = Path(__file__).parents[3]
# stress-ng is a fake that says who it is: no unit test loads the machine
STRESS = '#!/bin/sh\necho "$@" >>"$HERE/load"\necho $$ >>"$HERE/pids"\nexec sleep 900\n'
TESTS = """
from pathlib import Path
import pytest

def ran(name):
    note = Path(name); note.write_text(note.read_text() + "x" if note.exists() else "x")
    return len(note.read_text())

def test_sound(): ran("sound")
def test_flaky(): assert ran("flaky") % 2
def test_skipped(): pytest.skip("no rig")
@pytest.fixture
def lab():
    yield
    assert ran("leak") != 1
def test_leaks(lab): pass
"""


WAITS = """
import os, time
def test_a():
    with open("pids", "a") as file: file.write(f"{os.getpid()}\\n")
    open("runs", "w").close()
    time.sleep(600)
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with tests, and a stress-ng that is a fake."""
    (tmp_path / "stress-ng").write_text(STRESS)
    (tmp_path / "stress-ng").chmod(0o755)
    (tmp_path / "test_a.py").write_text(TESTS)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")
    return tmp_path


def start(home: Path, runs: int, number: int = 8, python: str = sys.executable) -> subprocess.Popen[str]:
    """Start a soak of the tests that this Python runs."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    env |= {"PATH": f"{home}:{os.environ['PATH']}", "HERE": str(home), "PYTHONPATH": str(ROOT)}
    argv = [python, "-m", "pytest", "-q", *LEFT_OUT.split(), "test_a.py"]
    return subprocess.Popen(
        [ROOT / "ci/soak", str(runs), str(number), "out", *argv],
        cwd=home,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def loads(home: Path) -> list[int]:
    """The loads that run, and the test that says so."""
    note = home / "pids"
    pids = [int(line) for line in note.read_text().split()] if note.exists() else []
    return [pid for pid in pids if Path(f"/proc/{pid}").exists()]


def test_rates_are_counted(home: Path, warm_python: str) -> None:
    """A soak counts the failures of each test, set-up and tear-down too, and leaves no load."""
    soak = start(home, 4, python=warm_python)
    said, _ = soak.communicate(timeout=300)
    rows = {line.split(maxsplit=4)[-1]: line.split()[:4] for line in said.splitlines() if "%" in line}
    assert soak.returncode == 1 and not loads(home), said
    assert rows["test_a::test_flaky"] == ["2", "4", "50.00%", "90.24%"]
    assert rows["test_a::test_leaks"] == ["1", "4", "25.00%", "75.14%"]
    assert rows["each of 1 tests that never failed"][:3] == ["0", "4", "0.00%"]
    assert rows["all runs of all tests"][:2] == ["3", "12"] and "skipped" not in " ".join(rows)
    assert (home / "load").read_text() == "--quiet --cpu 1\n" * 8
    assert "all runs of all tests" in (home / "out/table.txt").read_text()


def test_no_failure_is_exit_0_and_a_broken_run_1(home: Path, warm_python: str) -> None:
    """A soak without a failure ends with 0; a run that is broken off is no pass."""
    (home / "test_a.py").write_text("def test_a(): pass\n")
    soak = start(home, 2, 0, warm_python)
    said, _ = soak.communicate(timeout=300)
    assert soak.returncode == 0 and not (home / "load").exists(), said
    (home / "test_a.py").write_text("import os\ndef test_a(): os.kill(os.getpid(), 9)\n")
    (home / "out").rename(home / "before")
    soak = start(home, 1, 0, warm_python)
    said, _ = soak.communicate(timeout=300)
    assert soak.returncode == 1 and "run 1" in said and "broken off" in said


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=lambda s: s.name)
def test_no_load_stays_behind(home: Path, how: signal.Signals) -> None:
    """The load ends with the soak, by Ctrl-C, by kill and by kill -9, and so do the tests."""
    (home / "test_a.py").write_text(WAITS)
    soak = start(home, 2)
    wait_until((home / "runs").exists, 120, "the test to run")
    wait_until(lambda: len(loads(home)) == 9, 60, "all of the load")
    assert len({os.getsid(pid) for pid in loads(home)}) == 9, "the kernel shares by session"
    soak.send_signal(how)
    if how != signal.SIGKILL:
        said, _ = soak.communicate(timeout=300)
        assert soak.returncode == 1 and "interrupted" in said
    wait_until(lambda: not loads(home), 60, "load and test to end")
    soak.kill()
    soak.stdout.close() if soak.stdout else None
    soak.wait()


@pytest.mark.parametrize(
    ("failed", "runs", "below"), [(0, 10, 0.2589), (1, 20, 0.2161), (0, 1497, 0.002), (3, 3, 1)]
)
def test_bound(failed: int, runs: int, below: float) -> None:
    """The bound is that of Clopper and Pearson: 1,497 runs without a failure are 1 in 500."""
    assert runpy.run_path(str(ROOT / "ci/soak"))["bound"](failed, runs) == pytest.approx(below, abs=5e-5)


def test_shuffle_mixes_and_keeps_files_together(pytester: pytest.Pytester) -> None:
    """Another seed is another order, the same seed the same; a file's tests stay together."""
    body = "\n".join(f"def test_{n}(): pass" for n in range(6))
    pytester.makepyfile(**{f"test_{letter}": body for letter in "abc"})

    def order(seed: int) -> list[str]:
        found = pytester.runpytest(
            "-p", "tests.lib.rig.shuffle", f"--shuffle={seed}", "-v", *LEFT_OUT.split()
        )
        found.assert_outcomes(passed=18)
        return [line.split()[0] for line in found.outlines if "PASSED" in line]

    orders = [order(seed) for seed in (1, 1, 2)]
    assert orders[0] == orders[1] != orders[2] and sorted(orders[0]) == sorted(orders[2])
    for one in orders:
        files = [name.partition("::")[0] for name in one]
        assert sum(a != b for a, b in zip(files, files[1:], strict=False)) == 2
