"""`ktls-wire bench`: it prints each figure of benchmarks/wire.py, and only for a capture that is right."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks import wire
from benchmarks.bulk import Bulk, make
from offload.paths import BUILD

CORE = BUILD / "ktls-wire"


@pytest.fixture(scope="module")
def bulk(tmp_path_factory: pytest.TempPathFactory) -> Bulk:
    """A capture of one connection that sends 1 MiB."""
    return make(tmp_path_factory.mktemp("bulk"), "small", 1 << 20, 1448)


def bench(bulk: Bulk, payload: Path) -> subprocess.CompletedProcess[str]:
    """Three turns with two threads."""
    argv = [str(CORE), "bench", str(bulk.capture), "--keylog", str(bulk.keylog), "--payload", str(payload)]
    return subprocess.run([*argv, "--threads", "2", "--repeat", "3"], capture_output=True, text=True)


def test_each_figure_is_positive(bulk: Bulk) -> None:
    found = json.loads(bench(bulk, bulk.payload).stdout)
    assert found["outcome"] == "equal" and found["app_bytes"] >= 1 << 20
    figures = {"threads_to_one", "apart_to_one", "threads_to_apart", "threads_cpu", "read_one", "read_all"}
    assert all(found[name] > 0 for name in figures)


def test_nothing_is_measured_of_a_capture_that_differs(bulk: Bulk, tmp_path: Path) -> None:
    payload = bytearray(bulk.payload.read_bytes())
    payload[1000] ^= 1
    (tmp_path / "payload").write_bytes(payload)
    done = bench(bulk, tmp_path / "payload")
    assert (done.returncode, done.stdout) == (2, "") and "does not match its payload" in done.stderr


@pytest.mark.parametrize(
    ("gain", "limit", "word", "held"),
    [(1.9, 1.95, "held", True), (1.7, 1.75, "out of reach", True), (1.7, 1.9, "MISSED", False)],
)
def test_a_bar_is_out_of_reach_only_by_the_limit(
    gain: float, limit: float, word: str, held: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    found = {"threads_to_one": gain, "apart_to_one": limit, "threads_to_apart": 0.97, "threads_cpu": 1.1}
    assert all(wire.threads("name", found | {"read_one": 2e10, "read_all": 3e10})) is held
    assert f"| {word} " in capsys.readouterr().out
