"""Two benches of a labgrid lab, each a VM: side by side, and one that dies in mid-run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from offload.cmd import wait_until
from offload.debian.kernels import fetch
from offload.suite.bench.vm.lab import Lab
from offload.suite.certify.fleet.grid import Grid
from offload.suite.report import events
from tests.lib.rig import benches
from tests.lib.rig.rig import Labs

ONE = "test_sends_to_stunnel and tx-12_aes_gcm_128-v4"
MANY = "test_sends_to_stunnel"
LIMIT = 900  # seconds


@pytest.fixture(scope="module")
def pair(pytestconfig: pytest.Config, labs: Labs) -> Iterator[tuple[Lab, Lab]]:
    """Two labs of this kernel, booted in turn; the peer of the first has a plain card."""
    labs.close()
    kernel = fetch(pytestconfig.getoption("--kernel"))
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(Lab.boot(kernel, kind="nicsim", personality=cards, say=lambda _: None))
            for cards in ("connectx-6-dx,plain", "connectx-6-dx")
        )
        yield first, second


@pytest.fixture(scope="module")
def grid(pair: tuple[Lab, Lab], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    """A coordinator that has both as places."""
    labs = {"bench1": pair[0].name, "bench2": pair[1].name}
    tags = {name: {"nic": "sim"} for name in labs}
    with benches.coordinator(tmp_path_factory.mktemp("labgrid"), labs, tags) as address:
        yield Grid(address)


@contextmanager
def certify(grid: Grid, out: Path, only: str) -> Iterator[subprocess.Popen[str]]:
    """What a person types; Ctrl-C ends it if the test has failed meanwhile."""
    argv = [sys.executable, "-m", "offload", "certify", "--all-benches", "nic=sim", "--out", str(out)]
    argv += ["--coordinator", grid.coordinator, "--only", only]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as child:
        try:
            yield child
        except BaseException:
            child.send_signal(signal.SIGINT)
            raise


def outcomes(path: Path) -> dict[str, str]:
    """Each test's outcome in a run's events; a line that is half written is none yet."""
    return {event["id"]: event["outcome"] for event in events.read(path).results()}


@pytest.mark.turns("side by side")
def test_two_benches_say_the_same(grid: Grid, tmp_path: Path) -> None:
    """Without this benches side by side could disturb each other, or share a verdict."""
    with certify(grid, tmp_path / "out", ONE) as child:
        said = child.communicate(timeout=LIMIT)[0]
    document = json.loads((tmp_path / "out" / "benches.json").read_text())
    assert child.returncode == 21, said  # a part of the tests never certifies
    assert [b["word"] for b in document["benches"]] == ["incomplete"] * 2, said
    each = [outcomes(tmp_path / "out" / name / "events.jsonl") for name in ("bench1", "bench2")]
    assert each[0] == each[1] and set(each[0].values()) == {"pass"}, each
    assert not [place for place in grid.places() if place.taken]


@pytest.mark.turns("side by side")
def test_bench_that_dies_is_void(grid: Grid, pair: tuple[Lab, Lab], tmp_path: Path) -> None:
    """Without this one dead machine could cost a lab its night, or be taken for a bad card."""
    out = tmp_path / "out"
    logs = [out / name / "events.jsonl" for name in ("bench1", "bench2")]
    with certify(grid, out, MANY) as child:
        # not also for one of the other: it may begin when this one is done
        wait_until(lambda: logs[1].exists() and bool(outcomes(logs[1])), LIMIT, "a test of the second")
        os.kill(pair[1].pid, signal.SIGKILL)
        said = child.communicate(timeout=LIMIT)[0]
    found = {b["place"]: b["word"] for b in json.loads((out / "benches.json").read_text())["benches"]}
    assert child.returncode == 22 and found == {"bench1": "incomplete", "bench2": "void"}, said
    assert set(outcomes(logs[0]).values()) <= {"pass", "skip"}, outcomes(logs[0])
    assert not [place for place in grid.places() if place.taken]
