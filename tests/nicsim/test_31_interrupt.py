"""A person who presses Ctrl-C twice: what is there is a whole record, and nothing runs on behind it."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from offload.cmd import settles, wait_until
from offload.suite.bench.vm.rundir import names
from offload.suite.report.trust.saved import EVENTS
from tests.lib.rig.rig import Labs

GAP = 1.5  # seconds: pytest has been told, and has its undos to run
LIMIT = 300  # seconds: a boot, two tests, an end, beside other load
LAB = re.compile(r"^ *lab (\S+): .* answers after", re.M)
TESTED = re.compile(rb'"event": "test"')


def of_session(leader: int) -> list[str]:
    """The processes of a session but its leader, which is ours to wait for: id and command line."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            fields = (entry / "stat").read_text().rpartition(")")[2].split()
            if int(fields[3]) == leader != int(entry.name) and fields[0] != "Z":
                found.append(f"{entry.name} {(entry / 'cmdline').read_bytes()[:80]!r}")
        except OSError:  # it has ended meanwhile
            continue
    return found


@pytest.mark.once
def test_two_interrupts_leave_a_whole_record(pytestconfig: pytest.Config, labs: Labs, tmp_path: Path) -> None:
    """Without this a run that was ended in haste could leave a manifest of files that still change."""
    labs.close()  # room for the lab of `certify`
    interrupted(pytestconfig.getoption("--kernel"), tmp_path, GAP)


def interrupted(kernel: str, folder: Path, gap: float) -> None:
    """Run `certify` and press Ctrl-C twice once a test has ended, so many seconds apart."""
    out = folder / "run"
    argv = [sys.executable, "-m", "offload", "certify", "--jobs", "1", "--out", str(out)]
    argv += ["--kernel", kernel]
    with (folder / "said").open("wb") as said:
        child = subprocess.Popen(argv, stdout=said, stderr=said, start_new_session=True)
    try:
        wait_until(lambda: _tested(out / EVENTS) or child.poll() is not None, LIMIT, "a test that ended")
        child.send_signal(signal.SIGINT)
        time.sleep(gap)
        child.send_signal(signal.SIGINT)
        code = child.wait(LIMIT)
    finally:
        child.kill()
        child.wait()
    words = (folder / "said").read_text()
    assert code == 130 and (out / "manifest.json").exists(), words
    assert settles(lambda: not of_session(child.pid), 60), of_session(child.pid)
    labs = set(LAB.findall(words))
    assert labs and settles(lambda: not labs & set(names()), 60), labs & set(names())
    done = subprocess.run(
        [sys.executable, "-m", "offload", "report", "verify", str(out)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


def _tested(events: Path) -> bool:
    try:
        return TESTED.search(events.read_bytes()) is not None
    except FileNotFoundError:
        return False
