"""A broken rig says nothing of the card: neither a certificate nor a failure comes of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from offload.cmd import wait_until
from offload.errors import RigError
from offload.suite.bench.vm.lab import Lab
from offload.suite.report.trust.saved import EVENTS
from tests.lib.catalogue.suite import Suite
from tests.lib.rig.rig import Labs

# what a fault in the middle of a test looks like from outside: a line of the kernel on the console
SAY = "for i in $(seq 600); do echo '<2>BUG: said by a test' > /dev/kmsg; sleep 0.2; done"
LIMIT = 300  # seconds: two boots, a test, an end, beside other load
LAB = re.compile(r"^ *lab (\S+): nicsim bench is up", re.M)
PANIC = "Kernel panic - not syncing: sysrq triggered crash"
SENDS = "test_20_wire.py::test_sends_to_stunnel[tx-12_aes_gcm_128-v4]"


@pytest.mark.parametrize("noisy", [False, True], ids=["quiet", "fault"])
def test_kernel_fault_voids_the_run(suite: Suite, labs: Labs, noisy: bool) -> None:
    """Without this an oops during a run could end in a verdict on the card."""
    rig = labs.get("nicsim")
    speaker = rig.lab.root.start(["sh", "-c", SAY if noisy else ":"])
    try:
        found = suite.run(SENDS)
    finally:
        speaker.kill(9)
        speaker.wait(120)
        rig.log_read = rig.lab.console_mark()  # what was said here is no fault of the next test's rig
    assert found.verdict.word == ("void" if noisy else "incomplete"), found.output
    assert ("BUG: said by a test" in found.verdict.headline) == noisy, found.verdict.headline


@pytest.mark.once
def test_panic_in_one_of_two_labs_voids_the_run(
    pytestconfig: pytest.Config, labs: Labs, tmp_path: Path
) -> None:
    """Without this a run over two labs could certify a card on whose driver one of the two kernels died."""
    labs.close()  # room for the labs of `certify`
    out, said = tmp_path / "run", tmp_path / "said"
    argv = [sys.executable, "-m", "offload", "certify", "--jobs", "2", "--only", "stunnel or every_size"]
    argv += ["--kernel", pytestconfig.getoption("--kernel"), "--out", str(out)]
    with said.open("wb") as file:
        child = subprocess.Popen(argv, stdout=file, stderr=file)
    try:
        wait_until(lambda: up(said) != "" or child.poll() is not None, LIMIT, "two labs")
        lab = Lab.attach(up(said))  # before the tests: who attaches late, on a busy machine, comes too late
        wait_until(lambda: ran(out) or child.poll() is not None, LIMIT, "a test that ended")
        _crash(lab)
        assert child.wait(LIMIT) == 22, said.read_text()[-2000:]
    finally:
        child.terminate()
        child.wait(LIMIT)
    report = json.loads((out / "report.json").read_text())
    assert report["verdict"] == "void" and "panic" in report["headline"], report["headline"]
    assert [PANIC in (out / name).read_text() for name in ("console.log", "console-2.log")].count(True) == 1


def ran(out: Path) -> bool:
    """Whether a test of this run has ended."""
    return (out / EVENTS).exists() and b'"event": "test"' in (out / EVENTS).read_bytes()


def up(said: Path) -> str:
    """The name of the second lab that has its bench; empty before."""
    found: list[str] = LAB.findall(said.read_text())
    return found[1] if len(found) > 1 else ""


def _crash(lab: Lab) -> None:
    """Let the kernel of a lab panic."""
    with suppress(RigError):  # who dies does not answer
        lab.root.run(["sh", "-c", "echo c > /proc/sysrq-trigger"], timeout=60)
    lab.detach()
