"""`report diff`: what became worse is named, what was not tested is not blamed, figures have intervals."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import pytest

from offload.card.profile import find
from offload.errors import ConfigError
from offload.suite.report import facts
from offload.suite.report.compare.diff import compare, figures, text
from offload.suite.report.criteria import load
from offload.suite.report.document import build
from offload.suite.report.events import Log
from offload.suite.report.verbs import add_parser
from tests.unit.suite.report import cpu_documents as made

PROMISE = "counters.move-when-on"


def report(outcome: str = "pass", promise: str = PROMISE, **more: Any) -> dict[str, Any]:
    """A report on a run of one test; `more` goes into its evidence."""
    evidence = {"offloaded_bytes_percent": 99.5, "offloaded_packets_percent": 99.5} | more
    test = {"id": "test_a", "promise": promise, "cell": None, "outcome": outcome, "seconds": 1.0}
    head = {"rig": {"openssl": "3.0"}, "profile": "nicsim", "kernel": "6.1.0", "simulated": True}
    events: list[dict[str, Any]] = [
        {"event": "run-start", **head},
        {"event": "plan", "tests": [{"id": "test_a", "promise": promise}], "deselected": []},
        {"event": "test", "reason": "why", "evidence": evidence, **test},
        {"event": "run-end", "exit": 0 if outcome == "pass" else 1, "seconds": 1.5},
    ]
    stamped = [event | {"seq": seq, "time": "2026-01-02T03:04:05.678Z"} for seq, event in enumerate(events)]
    return build(Log(stamped, sha256="a" * 64), load(), facts.of(find("nicsim")))


def states(promise: str, cell: str = "hw", verdict: str = "failed") -> dict[str, Any]:
    """A report whose first promise and first cell have these states."""
    found = report()
    found["verdict"] = verdict
    found["promises"][0] |= {"state": promise, "reason": "because"}
    found["cells"][0] |= {"state": cell, "reason": "because"}
    return found


def test_nothing_changed_is_nothing_said() -> None:
    """A result is no worse than itself, and its bench is the same."""
    found = compare(report(), report())
    assert (found["exit"], found["changes"], found["differs"]) == (0, [], [])
    assert text(found).startswith("no regression\n") and "worse" not in text(found)


@pytest.mark.parametrize(
    ("old", "new", "kind", "code"),
    [
        ("kept", "broken", "worse", 1),
        ("kept", "limited", "worse", 1),
        ("limited", "broken", "worse", 1),
        ("not proved", "broken", "worse", 1),
        ("not promised", "broken", "worse", 1),
        ("kept", "not proved", "less", 21),
        ("kept", "not promised", "less", 21),
        ("limited", "not proved", "less", 21),
        ("broken", "kept", "better", 0),
        ("limited", "kept", "better", 0),
        ("not proved", "kept", "better", 0),
        ("broken", "not proved", "other", 0),
        ("not proved", "limited", "other", 0),
        ("not proved", "not promised", "other", 0),
    ],
)
def test_promise_that_changed(old: str, new: str, kind: str, code: int) -> None:
    """A promise broken now is a regression, one that was not tested is none; each is named."""
    found = compare(states(old), states(new))
    assert [(row["what"], row["name"], row["kind"]) for row in found["changes"]] == [
        ("promise", "payload.tx", kind)
    ]
    assert found["exit"] == code and f"payload.tx: {old} -> {new}: because" in text(found)


@pytest.mark.parametrize(
    ("old", "new", "kind", "code"),
    [
        ("hw", "failed", "worse", 1),
        ("hw", "sw expected", "worse", 1),
        ("sw expected", "hw", "better", 0),
        ("hw", "not tested", "less", 21),
        ("not tested", "hw", "better", 0),
        ("failed", "not tested", "other", 0),
    ],
)
def test_cell_that_changed(old: str, new: str, kind: str, code: int) -> None:
    """A cell of the truth table that the card did and does no more is a regression."""
    found = compare(states("kept", old), states("kept", new))
    assert [(row["what"], row["kind"]) for row in found["changes"]] == [("cell", kind)]
    assert found["exit"] == code


def test_void_run_blames_nobody() -> None:
    """A run that broke says nothing of the card, whichever of the two it is."""
    for pair in (
        (states("kept"), states("broken", verdict="void")),
        (states("kept", verdict="void"), states("kept")),
    ):
        found = compare(*pair)
        assert found["exit"] == 22 and text(found).startswith("no comparison")


def test_tests_and_promises_that_come_and_go() -> None:
    """A test that fails now is told; what one result does not have is no regression."""
    found = compare(report("pass"), report("fail"))
    assert {(row["what"], row["kind"]) for row in found["changes"]} == {
        ("promise", "worse"),
        ("test", "worse"),
    }
    assert found["exit"] == 1 and "REGRESSION: 1 promise worse" in text(found)
    less = report()
    less["promises"] = [row for row in less["promises"] if row["id"] != PROMISE]
    assert compare(report(), less)["exit"] == 21 and compare(less, report())["exit"] == 0


def test_bench_that_is_not_the_same_is_reported() -> None:
    """Another kernel, program, card or bar is told beside what changed."""
    new = report() | {"kernel": "7.2.0", "rig": {"openssl": "3.5", "wrk": "4.1"}, "simulated": False}
    new["digests"] = {"events": "b" * 64, "criteria": "c" * 64}
    found = compare(report(), new)["differs"]
    assert [line.partition(":")[0] for line in found] == ["kernel", "simulated", "openssl", "wrk", "criteria"]
    assert "openssl: 3.0 then, 3.5 now" in found


def measured(gain: float, rounds: int = 7) -> dict[str, Any]:
    """A report on software and offload that takes `gain` of its cores."""
    rows = [
        made.row(arm, samples=made.rounds(14 * part, 30.0, rounds, 0.01, seed=n))
        for n, (arm, part) in enumerate({"sw": 1.0, "hw": gain}.items())
    ]
    return report(promise="cpu.saving", cpu=made.document(rows))


@pytest.mark.parametrize(
    ("old", "new", "rounds", "kind"),
    [(0.6, 0.8, 7, "worse"), (0.8, 0.6, 7, "better"), (0.6, 0.601, 7, "same"), (0.6, 0.8, 3, "unsure")],
)
def test_figures_are_compared_by_interval(old: float, new: float, rounds: int, kind: str) -> None:
    """A figure is worse only where the intervals do not touch, and it decides nothing."""
    found = compare(measured(old, rounds), measured(new, rounds))
    (row,) = found["figures"]
    assert row["kind"] == kind and row["name"].startswith("cores, hw to sw: stream Tx, TLS 1.2 aes_gcm_128")
    assert found["exit"] == 0 and f"{row['old']['mean']:.3f}"[:4] in text(found)
    assert (row["old"]["low"] is None) == (rounds < 5)


def test_counted_instructions_have_a_side() -> None:
    """The figures of cost mode are told by side, and less than 1 % is no difference."""
    old = report(promise="cpu.cost", cpu=made.document(made.cost(), method="icount"))
    names = [name for name in figures(old) if name.startswith("instructions")]
    assert {name.split(", ")[1] for name in names} >= {"sender", "receiver", "host"}
    new = json.loads(json.dumps(old))
    for setting in new["cpu"]["settings"]:
        for pair in setting["compared"]:
            pair |= {key: pair[key] * 1.005 for key in ("ratio", "low", "high")}
    assert {row["kind"] for row in compare(old, new)["figures"]} == {"same"}


def call(*words: str | Path) -> int:
    """Run `ktls-offload report WORDS`."""
    parser = argparse.ArgumentParser()
    add_parser(parser.add_subparsers())
    args = parser.parse_args(["report", *map(str, words)])
    return int(args.func(args))


def test_command_takes_folders_and_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Two results are compared by folder or by file, in words or as JSON."""
    (tmp_path / "report.json").write_text(json.dumps(report()))
    (tmp_path / "new.json").write_text(json.dumps(report("fail", evil="\x1b[2J")))
    assert call("diff", tmp_path, tmp_path / "new.json") == 1
    assert capsys.readouterr().out.startswith("REGRESSION: 1 promise worse\n")
    assert call("diff", "--json", tmp_path, tmp_path) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == "ktls-offload/diff/1"


@pytest.mark.parametrize(
    "change", [{"promises": 3}, {"promises": [{}]}, {"tests": None}, {"cpu": {}}, {"rig": []}]
)
def test_damaged_result_is_one_line(tmp_path: Path, change: dict[str, Any]) -> None:
    """A result that is none, or is damaged, is refused with its name."""
    (tmp_path / "old.json").write_text(json.dumps(report()))
    (tmp_path / "new.json").write_text(json.dumps(report() | change))
    with pytest.raises(ConfigError, match=r"new\.json is damaged"):
        call("diff", tmp_path / "old.json", tmp_path / "new.json")
    with pytest.raises(ConfigError, match="No such file"):
        call("diff", tmp_path / "none", tmp_path / "new.json")


def test_nothing_in_a_result_steers_the_terminal() -> None:
    """What a hostile result says is shown without control characters."""
    new = states("broken")
    new["promises"][0]["reason"] = new["rig"]["x\x1b"] = new["kernel"] = "\x1b[2J\u202e"
    shown = text(compare(states("kept"), new))
    assert "\x1b" not in shown and "\u202e" not in shown
