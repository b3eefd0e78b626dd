"""The tests of a card by profile, with promise and needs: one pytest collects them for all workers."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

from offload.card.profile import load_all

ROOT = Path(__file__).parents[2]
PROFILES = tuple(sorted(profile.id for profile in load_all()))  # nicsim promises all that the kernel offloads
COLLECT = """
import json, sys
import pytest
from offload.suite.report.record.testinfo import promise_of

class Reported:
    def pytest_collection_finish(self, session):
        self.tests = {item.nodeid: [promise_of(item), self.needs(item)] for item in session.items}

    def needs(self, item):
        return sorted({name for mark in item.iter_markers("requires") for name in mark.args})

found = {}
for profile in sys.argv[1:]:
    reported = Reported()
    argv = ["-q", "--collect-only", "-p", "no:cacheprovider", "--profile", profile, "tests/hw"]
    if code := pytest.main(argv, plugins=[reported]):
        sys.exit(code)
    found[profile] = reported.tests
print("REPORTED " + json.dumps(found))
"""
Tests = dict[str, dict[str, tuple[str | None, list[str]]]]  # profile -> test -> promise, needs


def shared(base: Path) -> Tests:
    """Every test of tests/hw that a card gets. The first worker to ask collects them, below `base`."""
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID")
    file = base.parent / f"hw-tests-{run}.json" if run else base / "hw-tests.json"
    with file.with_suffix(".lock").open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not file.exists():
            file.write_text(_collected())
    found: Tests = json.loads(file.read_text())
    return found


def _collected() -> str:
    argv = [sys.executable, "-c", COLLECT, *PROFILES]
    done = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, timeout=300)
    reported = [line for line in done.stdout.splitlines() if line.startswith("REPORTED ")]
    assert done.returncode == 0 and reported, done.stdout + done.stderr
    return reported[0].removeprefix("REPORTED ")
