"""The example report of `make example`: whole, small, and the same bytes each time."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from offload.report.verify import check
from tests.lib import example_report

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report as `make example` writes it."""
    return make(tmp_path_factory.mktemp("made") / "example", "1")


def make(folder: Path, seed: str) -> Path:
    """Have a process of its own write the report, with sets in an order of its own."""
    argv = [sys.executable, "-m", "tests.lib.example_report", str(folder)]
    subprocess.run(argv, cwd=ROOT, env={**os.environ, "PYTHONHASHSEED": seed}, check=True)
    return folder


def test_it_is_intact_and_small(built: Path) -> None:
    """The example is a result that can be verified, below 1 MiB, and says that it is none."""
    found = check(built)
    assert not found.problems and found.files == 7
    assert sum(path.stat().st_size for path in built.iterdir()) < 1 << 20
    for name in ("report.html", "summary.txt", "report.ktap", "junit.xml"):
        assert example_report.NAME in (built / name).read_text(), name


def test_it_is_the_same_each_time(built: Path, tmp_path: Path) -> None:
    """The example is made again byte for byte: no clock, order or folder of a machine gets in."""
    again = make(tmp_path / "example", "2")
    for path in sorted(built.iterdir()):
        assert path.read_bytes() == (again / path.name).read_bytes(), path.name
