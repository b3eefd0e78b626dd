"""`certify --jobs N`: labs side by side give the report of one lab; how many there may be."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from offload.errors import ConfigError, RigError
from offload.suite.certify import labs
from offload.suite.certify.labs import all_ready, at_once, how_many, start_all, working
from offload.suite.certify.plan import plan
from offload.suite.certify.request import Request
from offload.suite.certify.tests import command
from tests.unit.suite.certify.fake_certify import FakeLab, add, call, checkout

TIMES = ("started", "finished", "phases", "memory", "digests")


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A checkout whose tests pass, on a lab that is only a name."""
    yield from checkout(tmp_path, monkeypatch, sys.executable)


def test_too_little_memory_is_one_line(tmp_path: Path) -> None:
    """A machine that is too small is refused before anything starts, or gets fewer labs than it has cores."""
    meminfo = tmp_path / "meminfo"
    meminfo.write_text("MemTotal: 900000 kB\nMemAvailable:  800000 kB\n")
    with pytest.raises(RigError, match="781 MiB are available, the lab needs 1536 MiB"):
        how_many(None, False, 1, meminfo)
    meminfo.write_text(f"MemAvailable:  {2000 << 10} kB\n")
    assert how_many(None, False, 1, meminfo) == how_many(None, False, 1, meminfo, waits=True) == 1
    with pytest.raises(RigError, match="2000 MiB are available, 2 labs need 2816 MiB"):
        how_many(2, False, 1, meminfo)


def test_labs_that_wait_are_four_per_core(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As far as the memory goes and up to sixteen; what the user asked for comes first."""
    meminfo = tmp_path / "meminfo"
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(4)))
    meminfo.write_text(f"MemAvailable:  {64 << 20} kB\n")
    assert (how_many(None, False, 1, meminfo), how_many(None, False, 1, meminfo, waits=True)) == (4, 16)
    assert how_many(None, False, 2, meminfo, waits=True) == 8 and how_many(3, False, 1, waits=True) == 3
    assert how_many(None, True, 1, meminfo, waits=True) == 1
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(64)))
    assert how_many(None, False, 1, meminfo, waits=True) == 16
    meminfo.write_text(f"MemAvailable:  {5 << 20} kB\n")
    assert how_many(None, False, 1, meminfo, waits=True) == 3


def test_three_labs_work_at_once_for_two_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are; a lab of two processors needs two cores, and one lab always works."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1})
    assert (at_once(1), at_once(2), at_once(3)) == (2, 1, 1)
    assert (working(1), working(2), working(3)) == (3, 1, 1)
    monkeypatch.setattr(labs, "available", lambda _: 64 << 30)
    words = " ".join(command(plan(Request(jobs=6, out=tmp_path / "run")), "lab"))
    assert "-n 6 --dist load --max-worker-restart 0 --working 3 " in words


@pytest.mark.parametrize("asked", [0, 17, -1])
def test_number_of_labs_that_makes_no_sense(asked: int) -> None:
    """A number of labs that no machine has is refused with the option that it clashes with."""
    with pytest.raises(ConfigError, match=f"--jobs {asked}"):
        how_many(asked, False, 1)


def test_lab_that_does_not_boot_ends_the_others() -> None:
    """If one of the labs does not come up, none is left running, and the cause is reported."""

    class Bad(FakeLab):
        def ready(self) -> FakeLab:
            raise RigError("the lab VM did not boot")

    FakeLab.up = 0
    kinds = iter([FakeLab, Bad])
    booting: Any = start_all(2, lambda: next(kinds).start(None, personality=FakeLab.pair, cpus=None))
    assert FakeLab.up == 2
    with pytest.raises(RigError, match="did not boot"):
        all_ready(booting)
    assert FakeLab.up == 0


def timeless(report: dict[str, Any]) -> dict[str, Any]:
    """A report without what differs from run to run."""
    for test in report["tests"]:
        del test["seconds"], test["spent"]
    report["rig"].pop("labs", "")
    return {name: part for name, part in report.items() if name not in TIMES}


def test_two_labs_give_the_report_of_one(root: Path) -> None:
    """Labs side by side share the tests; but for times the report is that of one lab."""
    one = call(root)
    (root / "run").rename(root / "first")
    two = call(root, "--jobs", "2")
    assert two[0] == 0 and two[1]["rig"]["labs"] == "2 in parallel"
    assert (one[0], timeless(one[1])) == (two[0], timeless(two[1]))
    assert (root / "run/console-2.log").read_text() == "[    0.0] Linux\n"
    events = [json.loads(line) for line in (root / "run/events.jsonl").read_text().splitlines()]
    kinds = [event["event"] for event in events]
    assert [kinds.count(name) for name in ("plan", "run-start", "run-end")] == [1, 1, 1]
    assert [event["seq"] for event in events] == list(range(len(events)))
    assert kinds.count("progress") == kinds.count("test") == len(two[1]["tests"])


def test_runner_that_dies_alongside_another_voids_the_run(root: Path) -> None:
    """A test process that dies under a test voids the run, which names the test."""
    add(root, "import os\n    os._exit(3)")
    code, report = call(root, "--jobs", "2")
    assert (code, report["verdict"]) == (22, "void")
    assert any("test_more" in reason and "crashed" in reason for reason in report["reasons"])


def test_kernel_that_dies_behind_its_last_test_voids_the_run(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The end of a run looks at every console: no test of a lab that has done its share looks any more."""
    monkeypatch.setattr(FakeLab, "said", "[    9.0] Kernel panic - not syncing: too late for a test\n")
    code, report = call(root, "--jobs", "2")
    assert (code, report["verdict"]) == (22, "void")
    assert "too late for a test" in report["headline"], report["headline"]
