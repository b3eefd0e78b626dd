"""Two benches of a labgrid lab, each a VM: certified side by side, and one that dies while it is."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from offload.cmd import wait_until
from offload.fleet_grid import Grid
from offload.vm.kernels import fetch
from offload.vm.lab import Lab
from tests.lib import benches
from tests.lib.rig import Labs

ONE = "test_sends_to_stunnel and tx-12_aes_gcm_128-v4"
MANY = "test_sends_to_stunnel"
LIMIT = 300  # seconds


@pytest.fixture(scope="module")
def pair(pytestconfig: pytest.Config, labs: Labs) -> Iterator[tuple[Lab, Lab]]:
    """Two labs of this kernel, booted one after the other."""
    labs.close()
    kernel = fetch(pytestconfig.getoption("--kernel"))
    with ExitStack() as stack:
        first, second = (
            stack.enter_context(Lab.boot(kernel, kind="nicsim", say=lambda _: None)) for _ in "ab"
        )
        yield first, second


@pytest.fixture(scope="module")
def grid(pair: tuple[Lab, Lab], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Grid]:
    """A coordinator that has both as places."""
    labs = {"bench1": pair[0].name, "bench2": pair[1].name}
    tags = {name: {"nic": "sim"} for name in labs}
    with benches.coordinator(tmp_path_factory.mktemp("labgrid"), labs, tags) as address:
        yield Grid(address)


def certify(grid: Grid, out: Path, only: str) -> subprocess.Popen[str]:
    """What a person types."""
    argv = [sys.executable, "-m", "offload", "certify", "--all-benches", "nic=sim", "--out", str(out)]
    argv += ["--coordinator", grid.coordinator, "--only", only]
    return subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def outcomes(events: Path) -> dict[str, str]:
    """Each test's outcome in a run's events."""
    lines = [json.loads(line) for line in events.read_text().splitlines()]
    return {line["id"]: line["outcome"] for line in lines if line.get("event") == "test"}


def test_two_benches_say_the_same(grid: Grid, tmp_path: Path) -> None:
    """Without this benches side by side could disturb each other, or share a verdict."""
    child = certify(grid, tmp_path / "out", ONE)
    said = child.communicate(timeout=LIMIT)[0]
    document = json.loads((tmp_path / "out" / "benches.json").read_text())
    assert child.returncode == 21, said  # a part of the tests never certifies
    assert [b["word"] for b in document["benches"]] == ["incomplete"] * 2, said
    each = [outcomes(tmp_path / "out" / name / "events.jsonl") for name in ("bench1", "bench2")]
    assert each[0] == each[1] and set(each[0].values()) == {"pass"}, each
    assert not [place for place in grid.places() if place.taken]


def test_bench_that_dies_is_void(grid: Grid, pair: tuple[Lab, Lab], tmp_path: Path) -> None:
    """Without this one dead machine could cost a lab its night, or be taken for a bad card."""
    child, out = certify(grid, tmp_path / "out", MANY), tmp_path / "out"
    events = [out / name / "events.jsonl" for name in ("bench1", "bench2")]
    wait_until(lambda: all(path.exists() and outcomes(path) for path in events), LIMIT, "tests of both")
    os.kill(pair[1].pid, signal.SIGKILL)
    said = child.communicate(timeout=LIMIT)[0]
    found = {b["place"]: b["word"] for b in json.loads((out / "benches.json").read_text())["benches"]}
    assert child.returncode == 22 and found == {"bench1": "incomplete", "bench2": "void"}, said
    assert set(outcomes(events[0]).values()) <= {"pass", "skip"}, outcomes(events[0])
    assert not [place for place in grid.places() if place.taken]
