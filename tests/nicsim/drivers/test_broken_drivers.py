"""Three broken mlx5_core: `certify --driver` catches and names each; skipped unless the driver is built."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from offload.debian.kernels import fetch
from offload.driver.build import origin, place
from offload.driver.kinds import kind
from tests.lib.rig.rig import Labs

PATCHES = Path(__file__).parent
NOTES = (".*.cmd", "*.mod", "modules.order")  # of kbuild: they name each file by its whole path
# a test that meets the defect, and what it says of it
CAUGHT = {
    "dump-skipped": (
        "test_retransmits_the_same_records and storm",
        r"[1-9]\d* packets were out of order.* the card got 0 DUMPs",
    ),
    "record-number-wrong": ("test_records_it_sends and tx-12_aes_gcm_128-v4", "bad record mac"),
    "resync-answer-dropped": ("test_receive_resynchronizes and inside", r"resync: \d+ answered, 0 taken"),
}


@pytest.fixture(scope="module")
def tree(pytestconfig: pytest.Config, labs: Labs, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A build folder of its own with all objects, so that only what is changed is compiled."""
    kernel = fetch(pytestconfig.getoption("--kernel"))
    built = place(kind("mlx5"), kernel.release, None)
    if origin(built) != kernel.version:
        pytest.skip(f"no mlx5_core for {kernel.release}: ktls-offload driver build mlx5")
    labs.close()
    mine = tmp_path_factory.mktemp("driver") / built.name
    shutil.copytree(built, mine)
    for note in (path for name in NOTES for path in mine.rglob(name)):
        note.write_text(note.read_text().replace(str(built), str(mine)))
    yield mine
    shutil.rmtree(mine)


@pytest.mark.long
@pytest.mark.parametrize("name", CAUGHT)
def test_a_broken_driver_is_caught_and_named(
    name: str, tree: Path, tmp_path: Path, pytestconfig: pytest.Config
) -> None:
    """The suite fails it at a promise, says what is wrong, and the report names whose driver it was."""
    only, why = CAUGHT[name]
    patched(tree, name)
    try:
        code, report = certified(tree, tmp_path / "run", only, pytestconfig.getoption("--kernel"))
    finally:
        patched(tree, name, "--reverse")
    failed = [test for test in report["tests"] if test["outcome"] == "fail"]
    assert code == 20 and failed, report["reasons"]
    assert any(re.search(why, test["reason"]) for test in failed), [test["reason"] for test in failed]
    assert report["rig"]["driver under test"].startswith(f"mlx5_core of your own, {tree}/")


def patched(tree: Path, name: str, *more: str) -> None:
    """Apply a patch to the source in a build folder, or take it back."""
    argv = ["patch", "-p0", "--batch", *more, "-d", str(tree), "-i", str(PATCHES / f"{name}.patch")]
    subprocess.run(argv, check=True, capture_output=True)


def certified(tree: Path, out: Path, only: str, kernel: str) -> tuple[int, dict[str, Any]]:
    """Run what a person types: its exit code and report."""
    argv = [sys.executable, "-m", "offload", "certify", "--card", "mlx5", "--kernel", kernel]
    argv += ["--driver", str(tree), "--only", only, "--out", str(out)]
    ran = subprocess.run(argv, capture_output=True, text=True, timeout=900, check=False)
    assert (out / "report.json").exists(), ran.stdout + ran.stderr
    return ran.returncode, json.loads((out / "report.json").read_text())
