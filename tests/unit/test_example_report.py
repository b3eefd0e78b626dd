"""The example report of docs/: whole, small, and what the program of today would write."""

from __future__ import annotations

import json
from pathlib import Path

from offload.report.files import compute
from offload.report.verify import check
from tests.lib import example_report

EXAMPLE = Path(__file__).parents[2] / "docs" / "example-report"


def test_it_is_intact_and_small() -> None:
    """Without a NIC the example is a result that can be verified, below 1 MiB, and says that it is none."""
    found = check(EXAMPLE)
    assert not found.problems and found.files == 7
    assert sum(path.stat().st_size for path in EXAMPLE.iterdir()) < 1 << 20
    for name in ("report.html", "summary.txt", "report.ktap", "junit.xml"):
        assert example_report.NAME in (EXAMPLE / name).read_text(), name


def test_it_is_of_today(tmp_path: Path) -> None:
    """Without a NIC the example is made again byte for byte, unless the criteria are other ones by now."""
    then, now = json.loads((EXAMPLE / "report.json").read_text())["digests"], compute(EXAMPLE)["digests"]
    example_report.write(tmp_path / "example")
    for path in sorted(EXAMPLE.iterdir()):
        made = tmp_path / "example" / path.name
        same = made.read_bytes() == path.read_bytes()
        assert same or then["criteria"] != now["criteria"], f"{path.name}: `make example` makes it anew"
