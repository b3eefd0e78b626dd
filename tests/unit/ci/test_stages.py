"""ci/stages: what runs when, what stops all, and the table of time, processor time and memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

from offload.cmd import wait_until

ROOT = Path(__file__).parents[3]
MAKEFILE = f"""
good other:
	@echo $@ $(HOW) >>said; echo words of $@
bad:
	@echo $@ >>said; false
meet:
	@touch met.$(HOW); while [ ! -e met.a ] || [ ! -e met.b ]; do sleep 0.1; done
busy big:
	@{sys.executable} $@.py
"""
BUSY = "import time\nwhile time.process_time() < 1: pass\n"
BIG = "import time\nheld = bytearray(b'x') * (200 << 20)\nopen('said', 'w').write('big')\ntime.sleep(600)\n"

HOLDS = "import sys; held = bytearray(b'x') * (100 << 20); sys.stdin.read()"
PEAK = """
import subprocess, sys
from offload.cmd import wait_until
from offload.suite.certify.usage import Peak, memory, parents
import os
peak = Peak()
child = subprocess.Popen(sys.argv[1:], stdin=subprocess.PIPE)
wait_until(lambda: peak.bytes > 100 << 20, 120, "100 MiB seen")
child.communicate()
assert memory(os.getpid(), parents()) < 100 << 20 < peak.end() == peak.bytes < 300 << 20
print("ended")
"""


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A folder with a Makefile of our own."""
    for name, text in (("Makefile", MAKEFILE), ("busy.py", BUSY), ("big.py", BIG)):
        (tmp_path / name).write_text(text)
    return tmp_path


def stages(home: Path, *words: str) -> tuple[int, str, str]:
    """Run ci/stages: exit code, what it said, which targets ran."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("MAKE")}
    done = subprocess.run([ROOT / "ci/stages", *words], cwd=home, env=env, capture_output=True, text=True)
    said = home / "said"
    return done.returncode, done.stdout + done.stderr, said.read_text() if said.exists() else ""


def table(said: str) -> dict[str, list[str]]:
    """The cells of each stage: seconds, processor seconds, MiB, end."""
    lines = said.partition("\nstage ")[2].splitlines()[1:]
    return {match[1]: match[2].split() for line in lines if (match := re.match(r"(\S.*?) {2,}(\d.*)$", line))}


@pytest.fixture
def module(monkeypatch: pytest.MonkeyPatch) -> Any:
    """ci/stages as a module, which brings offload/suite/certify/usage.py."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    loader = SourceFileLoader("stages", str(ROOT / "ci/stages"))
    found = module_from_spec(spec_from_loader("stages", loader))  # type: ignore[arg-type]
    loader.exec_module(found)
    return found


def test_a_failure_does_not_stop_the_others(home: Path) -> None:
    """Every stage runs though one fails, and the whole has then failed."""
    rc, said, ran = stages(home, "!good", "bad", "other:HOW=fast")
    assert rc == 1 and sorted(ran.splitlines()) == ["bad", "good", "other fast"]
    ends = {title: cells[-1] for title, cells in table(said).items()}
    assert ends == {"good": "ok", "bad": "FAILED", "other HOW=fast": "ok", "in all": "FAILED"}


def test_nothing_follows_a_set_up_that_fails(home: Path) -> None:
    """A stage that dies of set-up stops all at once, wherever it stands in the line."""
    rc, said, ran = stages(home, "!good", "other", "!bad", "+good")
    assert rc == 1 and ran == "good\nbad\n" and list(table(said)) == ["good", "bad", "in all"]


def test_what_stands_before_a_set_up_runs_alongside(home: Path) -> None:
    """A light stage named before a set-up begins with it; what follows waits for both."""
    rc, said, ran = stages(home, "!good", "+meet:HOW=a", "!meet:HOW=b", "other")
    assert rc == 0 and ran.splitlines()[0] == "good" and ran.splitlines()[-1].startswith("other"), said
    rc, said, ran = stages(home, "+good", "!bad", "other")
    assert rc == 1 and "other" not in ran.splitlines()[2:] and list(table(said)) == ["good", "bad", "in all"]


def test_a_stage_that_uses_all_cores_leaves_one_lane(home: Path, module: Any) -> None:
    """One more runs beside a stage that uses all cores, and the next when that has ended."""
    assert [module.counts(name) for name in ("+a", "*a", "a")] == [0, module.CORES, 1]
    rc, said, ran = stages(home, "*meet:HOW=a", "meet:HOW=b", "other", "good")
    assert rc == 0 and sorted(word.strip() for word in ran.splitlines()) == ["good", "other"], said
    began = [said.index(f"=== make {name}") for name in ("meet HOW=a", "meet HOW=b", "other")]
    over = min(said.index(f"=== make meet HOW={name}: ok") for name in "ab")
    assert began[0] < began[1] < over < began[2], said


def test_processor_time_is_that_of_the_children(home: Path) -> None:
    """The table has the processor seconds that a stage's processes spent."""
    rc, said, _ = stages(home, "busy", "good")
    cells = table(said)
    assert rc == 0 and 1 <= int(cells["busy"][1]) <= 3 and cells["good"][1] == "0"
    assert int(cells["busy"][1]) <= int(cells["in all"][1]) <= 4


def test_memory_is_that_of_all_descendants(home: Path, module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A stage's memory is that of make's children too, and the peak of two that of both."""
    monkeypatch.chdir(home)
    runs, meter = [module.Run("big", shown=False) for _ in range(2)], module.Meter()
    try:
        for run in runs:
            wait_until(lambda run=run: run.look(module.usage.parents()) > 200 << 20, 60, "200 MiB held")
        meter.look(runs)
        assert all(200 << 20 <= run.peak < 300 << 20 for run in runs)
        assert 400 << 20 <= meter.peak < 600 << 20
    finally:
        for run in runs:
            for pid in reversed(module.usage.tree(run.make.pid, module.usage.parents())):
                os.kill(pid, 9)
            run.make.wait()
            run.log.close()


def test_a_shared_page_counts_once(module: Any) -> None:
    """A page that two processes share is not counted twice; one that ended, not at all."""
    fork = "import os,sys\nheld=bytearray(b'x')*(64<<20)\nos.fork()\nprint(flush=True)\nsys.stdin.read()"
    child = subprocess.Popen([sys.executable, "-c", fork], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdin and child.stdout and child.stdout.readline() and child.stdout.readline()
    known = module.usage.parents()
    assert len(module.usage.tree(child.pid, known)) == 2
    assert 64 << 20 <= module.usage.memory(child.pid, known) < 100 << 20
    child.communicate()
    assert module.usage.memory(child.pid, known) == 0


def test_peak_is_seen_though_it_has_passed() -> None:
    """The most that a process took with its children is known after they ended."""
    argv = [sys.executable, "-c", HOLDS]
    done = subprocess.run([sys.executable, "-c", PEAK, *argv], cwd=ROOT, capture_output=True, text=True)
    assert done.stdout == "ended\n" and done.returncode == 0, done.stderr
