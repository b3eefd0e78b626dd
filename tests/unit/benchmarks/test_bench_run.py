"""A simulated bench's run is judged by what ran, recorded, and one host is described as one."""

from __future__ import annotations

import base64
import dataclasses
import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from offload.suite.bench.lab.file import load
from offload.suite.report.verdict import judge
from tests.lib.catalogue import bench_run
from tests.lib.catalogue.bench_run import Done, as_server, of_what_ran
from tests.unit.suite.report.test_report_verdict import CRITERIA, FACTS, GOOD, run, swap

KEY = base64.b64encode(b"\0\0\0\x0bssh-ed25519\0\0\0 " + bytes(32)).decode()
RACK = """\
targets:
  dut:
    resources:
      NetworkService: {address: 127.0.0.1, username: root, port: 4001}
      OffloadHost: {hostkeys: ["ssh-ed25519 {KEY}"]}
      OffloadNic: {ifname: nicsim0, profile: connectx-6-dx, v4: 192.0.2.1, v6: "fd00:2::1"}
  wire:
    resources:
      NetworkService: {address: 127.0.0.1, username: root, port: 4002}
      OffloadHost: {hostkeys: ["ssh-ed25519 {KEY}"]}
      OffloadWire: {ports: [nswire0, nswire1]}
  peer:
    resources:
      NetworkService: {address: 127.0.0.1, username: root, port: 4003}
      OffloadHost: {hostkeys: ["ssh-ed25519 {KEY}"]}
      OffloadNic: {ifname: nicsim1, v4: 192.0.2.2, v6: "fd00:2::2"}
"""


def done(tests: list[dict[str, Any]], word: str = "certified") -> Done:
    """A run with these tests, whose report says this word."""
    report = {"verdict": word, "headline": "", "tests": tests, "started": "2026-11-23T18:00:01Z"}
    report |= {"judged": {"commit": "c0de", "dirty": True}}
    return Done(report, judge(run(tests), CRITERIA, FACTS), 61.2, 10.4, 50.0)


def test_a_certified_bench_is_right() -> None:
    """What is not promised, or blocks nothing, is nothing wrong."""
    assert done(GOOD).wrong() == [] and done(GOOD).proved() == (3, 3)


@pytest.mark.parametrize(
    ("tests", "lines", "proved"),
    [
        (GOOD[:2], ["incomplete: not proved: counters: no test of it ran", "counters: no test of it ran"], 2),
        (swap(0, outcome="error", reason="oops"), ["void: says nothing about the NIC: ", "payload.tx: "], 2),
    ],
)
def test_what_is_wrong_is_named(tests: list[dict[str, Any]], lines: list[str], proved: int) -> None:
    """Another word is told with its headline, and a required promise that is not kept."""
    found = done(tests)
    assert [one.startswith(line) for one, line in zip(found.wrong(), lines, strict=True)] == [True, True]
    assert found.proved() == (proved, 3)


def test_a_sample_is_judged_by_what_ran(monkeypatch: pytest.MonkeyPatch) -> None:
    """A required promise with a test that was left out is proved by those that ran, and not without one."""
    monkeypatch.setattr(bench_run.criteria, "load", lambda: CRITERIA)
    monkeypatch.setattr(bench_run.facts, "from_event", lambda event: FACTS)
    for tests, word in ((GOOD, "certified"), (GOOD[:2], "incomplete")):
        log = run(tests, deselected=[{"id": "gone", "promise": "counters"}])
        log.events.append({"event": "profile", "seq": len(log.events), "time": ""})
        assert judge(log, CRITERIA, FACTS).word == "incomplete"
        assert of_what_ran(log).word == word


def test_a_row_of_the_record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A row tells what ran where and what it came to; a word that only what ran has is marked."""
    file = tmp_path / "benches.md"
    monkeypatch.setattr(bench_run, "RECORD", file)
    bench_run.record(done(GOOD).row("a,b", "6.1", ""))
    bench_run.record(done(GOOD, word="incomplete").row("c,d", "6.1", "required"))
    assert file.read_text().splitlines() == [
        "| 2026-11-23T18:00Z | c0de+ | a,b | 6.1 | whole | 4 pass | 3 of 3 | certified | 61 | 10 | 50 |",
        "| 2026-11-23T18:00Z | c0de+ | c,d | 6.1 | required | 4 pass | 3 of 3 | certified * | 61 | 10 | 50 |",
    ]


def test_benches_take_turns_and_miss_no_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of two benches has every other day, and each of its turns is the sample's next day."""
    seen: dict[str, list[int]] = {"a,b": [], "c,d": []}
    for today in range(738000, 738008):
        monkeypatch.setattr(bench_run, "day_of", lambda word, today=today: today)
        sample = bench_run.day("required", 0, 2).partition(":")[2]
        seen[bench_run.of_today(["a,b", "c,d"])].append(datetime.date.fromisoformat(sample).toordinal())
    assert seen == {"a,b": [369000, 369001, 369002, 369003], "c,d": [369000, 369001, 369002, 369003]}


def test_one_host_has_one_login(tmp_path: Path) -> None:
    """DUT, peer and wire box are one machine, told apart by their namespaces."""
    rack = tmp_path / "lab.yaml"
    rack.write_text(RACK.replace("{KEY}", KEY))
    found = load(as_server(rack))
    assert {dataclasses.replace(one.login, name="") for one in found.targets if one.login} == {
        dataclasses.replace(found.dut.login, name="") if found.dut.login else None
    }
    assert [one.netns for one in (found.dut, found.peer)] == ["", "ktls-peer"]
    assert found.wire and (found.wire.netns, found.wire.wire) == ("ktls-wire", ("nswire0", "nswire1"))
    assert yaml.safe_load(rack.read_text())["targets"]["peer"]["resources"]["NetworkService"]["port"] == 4003
