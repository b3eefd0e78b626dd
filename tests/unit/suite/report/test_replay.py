"""What can be repeated of a former run, what is refused, and how a repetition compares."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from offload.errors import ConfigError
from offload.suite.certify.replay import check_suite, plan_replay
from offload.suite.certify.request import Request
from offload.suite.report.events import Log
from offload.suite.report.events import read as read_events
from offload.suite.report.former import Former, choose, command, event, read
from offload.suite.report.replay import compare, frames, section

LATE, TAG = "tests/hw/test_30.py::test_rx[late]", "tests/hw/test_30.py::test_rx[tag]"
RIG = {"vm": "2 vCPU, 1024 MiB", "qemu": "7.2"}


def impairment(
    *actions: tuple[int, str, int], rules: tuple[str, ...] = ("b>a tag 3 drop",)
) -> dict[str, Any]:
    """A record of impairments; an action is (rule, what, place): a record, or chance's number if negative."""
    rows = [
        {"rule": rule, "action": what, "direction": "to-dut", "record": None if place < 0 else place}
        | {"number": max(0, -place)}
        for rule, what, place in actions
    ]
    return {"schema": 1, "seed": 1, "rules": list(rules), "actions": rows, "summary": {}}


def result(folder: Path, *, kernel: str = "6.1.0-56-amd64", **change: Any) -> Path:
    """The folder of a run of two tests, of which one failed under impairment."""
    folder.mkdir(exist_ok=True)
    rig = {"rig": RIG, "profile": "connectx-6-dx", "kernel": kernel, "simulated": True} | change
    failed = {
        "outcome": "fail",
        "reason": "not resynchronized: 12 %",
        "evidence": {"impairment": impairment()},
    }
    events = [
        {"event": "run-start", **rig},
        {"event": "test", "id": LATE, "promise": None, "seconds": 1.0, **failed},
        {"event": "test", "id": TAG, "outcome": "pass", "reason": "", "seconds": 1.0, "evidence": {}},
    ]
    lines = [json.dumps({"schema": 2, "seq": seq, **found}) for seq, found in enumerate(events)]
    (folder / "events.jsonl").write_text("\n".join(lines) + "\n")
    return folder


def planned(path: Path, **options: Any) -> Any:
    """What `certify --replay` makes of a result."""
    return plan_replay(path, Request(**options))


def test_kernel_profile_cpus_and_faults_are_taken_over(tmp_path: Path) -> None:
    """The former run says on what it is repeated, down to the faults of its card."""
    found = planned(result(tmp_path / "run", rig=RIG | {"knobs": "0/rx_noresync=1"}))
    assert (found.kernel, found.former.profile, found.cpus) == ("6.1", "connectx-6-dx", 2)
    assert (found.knobs, found.tests) == ("0/rx_noresync=1", (LATE,))
    assert found.words() == "repeating 1 test of run, with the fault that its card had: 0/rx_noresync=1"
    assert planned(result(tmp_path / "run", kernel="7.2.12+deb-amd64", rig={})).kernel == "7.2"


def test_folder_events_and_report_say_the_same(tmp_path: Path) -> None:
    """A run is read from its folder, its events (whole or cut off), or only its report."""
    folder = result(tmp_path / "run")
    whole = read(folder)
    tests = [whole.tests[name] for name in (LATE, TAG)]
    rig = {"rig": RIG, "kernel": "6.1.0-56-amd64", "simulated": True, "profile": "connectx-6-dx"}
    digests = {"events": whole.sha256}
    (folder / "report.json").write_text(json.dumps({"schema": 2, "tests": tests, "digests": digests, **rig}))
    assert read(folder / "report.json") == whole == read(folder / "events.jsonl")
    with (folder / "events.jsonl").open("a") as out:
        out.write('{"event": "te')
    assert read(folder).tests == whole.tests
    (folder / "events.jsonl").unlink()
    assert read(folder) == whole


WRONG: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "kernel missing": ({"kernel": ""}, {}, "does not say on which kernel it ran"),
    "other kernel": ({"kernel": "5.10.0-1-amd64"}, {}, "kernel 5.10.0-1-amd64, which the lab does not boot"),
    "no such profile": ({"profile": "connectx-9"}, {}, "was of another profile: "),
    "no profile": ({"profile": ""}, {}, "was of another profile: "),
    "asked for another profile": (
        {},
        {"nic": "chelsio-t6"},
        "a run with --nic connectx-6-dx, not chelsio-t6",
    ),
    "asked for another kernel": ({}, {"kernel": "7.2"}, "a run with --kernel 6.1, not 7.2"),
    "physical": ({"simulated": False}, {}, "was a run on a physical card"),
    "knobs": ({"rig": RIG | {"knobs": "0/../../x=1"}}, {}, "are not knobs of the simulated card"),
    "pattern": ({}, {"only": "[none]"}, r"no test of run has '\[none\]' in its id"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_cannot_be_repeated_is_refused(tmp_path: Path, what: str) -> None:
    change, options, text = WRONG[what]
    with pytest.raises(ConfigError, match=text) as caught:
        planned(result(tmp_path / "run", **change), **options)
    assert "\n" not in str(caught.value).split("\n  hint")[0]


def test_what_is_no_result_is_refused(tmp_path: Path) -> None:
    """Another schema, another file, or nothing at all is refused by its name."""
    folder = result(tmp_path / "run")
    with pytest.raises(ConfigError, match=r"nowhere/events\.jsonl|nowhere: No such file"):
        read(tmp_path / "nowhere")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ConfigError, match=r"empty/events\.jsonl: No such file"):
        read(tmp_path / "empty")
    events = (folder / "events.jsonl").read_text()
    for text, why in (
        (events.replace('"schema": 2', '"schema": 1'), "schema 1, this program reads 2"),
        ("", "there are no events"),
        ("\x7fELF\n", "line 1: not JSON"),
    ):
        (folder / "events.jsonl").write_text(text)
        with pytest.raises(ConfigError, match=why):
            read(folder)
    for document in ({"schema": 1}, {"schema": 2}, {"schema": 2, "tests": [{}], "digests": {}}, []):
        (tmp_path / "report.json").write_text(json.dumps(document))
        with pytest.raises(
            ConfigError, match=r"report\.json(: (not a report|schema 1, this)| is not a result)"
        ):
            read(tmp_path / "report.json")


def former(outcome: str = "fail") -> Former:
    """A run of one test under impairment, and one that passed."""
    tests = {name: {"id": name, "outcome": "pass", "reason": "", "evidence": {}} for name in (LATE, TAG)}
    tests[LATE] |= {"outcome": outcome, "reason": "lost 3 of 4", "evidence": {"impairment": impairment()}}
    return Former("then", "a" * 64, "connectx-6-dx", "6.1.0", RIG, True, tests)


def test_failed_tests_are_chosen_or_those_asked_for() -> None:
    """The failed ones are repeated, broken rig included; a pattern picks by id."""
    assert choose(former()) == choose(former("error")) == (LATE,)
    assert choose(former(), "test_rx") == choose(former(), "test_30*[*]") == (LATE, TAG)
    assert choose(former(), TAG) == choose(former(), "[tag]") == (TAG,)
    with pytest.raises(ConfigError, match="no test of then failed: there is nothing to repeat") as caught:
        choose(former("pass"))
    assert "2 pass; --only PATTERN" in str(caught.value)


def test_suite_that_has_changed_is_reported(tmp_path: Path) -> None:
    """A test that the suite lost is named; if it lost all of them nothing starts."""
    found = planned(result(tmp_path / "run"), only="test_rx")
    assert check_suite(found, (LATE, TAG)).gone == ()
    assert f"no longer in tests/hw, so left out: {TAG}" in check_suite(found, (LATE,)).words()
    with pytest.raises(ConfigError, match=r"none of the tests to repeat is in tests/hw today: .* and 1 more"):
        check_suite(found, ("tests/hw/test_30.py::test_rx[head]",))


def test_command_can_be_pasted() -> None:
    """The command of a failed test survives the shell."""
    assert command("results/x", LATE) == f"ktls-offload certify --replay results/x --only '{LATE}'"


SAME = impairment((1, "drop", 3), (2, "drop", -7))


def moved(found: dict[str, Any], offset: int) -> dict[str, Any]:
    """The same impairment, whose frames began at this byte."""
    return found | {"actions": [action | {"offset": offset} for action in found["actions"]]}


ODD = {"rules": [], "actions": [{"rule": "x", "number": [], "record": {}, "offset": "y", "direction": 3}]}
COMPARED: list[tuple[Any, Any, str]] = [
    (SAME, SAME, "the same 2 frames matched"),
    (SAME, impairment((1, "drop", 4), (2, "drop", -7)), "1 of 3 frames were the same; only then: rule 1"),
    # the second run was longer: what chance met beyond the end of the first one is not told against it
    (SAME, impairment((1, "drop", 3), (2, "drop", -7), (2, "drop", -9)), "the same 2 frames matched"),
    (
        SAME,
        impairment((1, "drop", 3), (2, "drop", -6), (2, "drop", -7)),
        "2 of 3 frames were the same; only now",
    ),
    (SAME, impairment((1, "drop", 3), rules=("b>a tag 4 drop",)), "the impairment rules differed"),
    (impairment((1, "none", 3)), impairment(), "no rule matched a frame"),
    (impairment((1, "drop", 3)), impairment((1, "drop", 3)), "the same frame matched"),
    (moved(SAME, 9), moved(SAME, 8), "the same 2 frames matched, 0 of 1 at the same byte of the stream"),
    (None, None, ""),
    (SAME, None, "no record of the frames that the rules matched"),
    (SAME, {"tool": "netem", "port": "w0"}, "no record of the frames that the rules matched"),
    (ODD, ODD, "the same frame matched"),
    (SAME, {"rules": 3, "actions": [3]}, "no record of the frames that the rules matched"),
]


@pytest.mark.parametrize(("then", "now", "words"), COMPARED)
def test_frames_are_compared(then: Any, now: Any, words: str) -> None:
    """It is told whether the impairment met the same frames, and the first that differs."""
    assert frames(then, now).startswith(words) and (words or frames(then, now) == "")


def replayed(outcome: str, reason: str, met: Any) -> dict[str, Any]:
    """The row of the report on a repeated test."""
    evidence: dict[str, Any] = {"impairment": met}
    evidence["replay"] = compare(former().tests[LATE], outcome, reason, evidence)
    test = {"event": "test", "id": LATE, "outcome": outcome, "evidence": evidence}
    head = {"event": "replay", **event(former(), (LATE,))}
    found = section(Log([head, {"event": "plan", "tests": [3, {"id": LATE}]}, test]), "6.1.0", RIG)
    assert found is not None and found["of"] == "then" and found["differs"] == []
    row: dict[str, Any] = found["tests"][0]
    return row


def test_outcomes_are_compared() -> None:
    """A repeated test is told to end as then, for another reason, or otherwise."""
    again = replayed("fail", "lost 2 of 7", impairment())
    assert again["same"] and (again["words"], again["impairment"]) == (
        "same outcome",
        "no rule matched a frame",
    )
    assert replayed("fail", "EBADMSG", impairment())["words"] == "same outcome, for another reason"
    reported = "record 5, byte 8,672: expected ab7e{}, got {}: wrong payload"
    pairs = ("1d", "ffb5"), ("2e", "33de")
    then, now = ({"outcome": "fail", "reason": reported.format(*pair)} for pair in pairs)
    assert compare({**then, "evidence": {}}, **now, evidence={})["same_reason"], "keys differ from run to run"
    mended = replayed("pass", "", None)
    assert not mended["same"] and mended["words"] == "another outcome"


def test_missing_results_and_another_rig_are_reported() -> None:
    """A test without result, one that is gone, and each changed part of the rig are named."""
    head = {"event": "replay", **event(former(), (LATE, TAG))}
    now = {"vm": RIG["vm"] + " (busy)", "knobs": "0/tx_leak=1", "openssl": "3"}
    found = section(Log([head, {"event": "plan", "tests": [{"id": LATE}]}]), "6.1.9", now)
    assert found is not None
    assert [row["words"] for row in found["tests"]] == [
        "planned, but has no result",
        "no longer in the suite",
    ]
    kernel, knob = "kernel: 6.1.0 then, 6.1.9 now", "knobs: none then, 0/tx_leak=1 now"
    assert found["differs"] == [kernel, knob, "qemu: 7.2 then, none now"]
    assert section(Log([]), "6.1.0", RIG) is None


def test_hostile_event_is_a_problem_of_the_log(tmp_path: Path) -> None:
    """A damaged event of a replay is named as such, and nothing falls over."""
    bad = {"schema": 2, "seq": 0, "event": "replay", "of": 3}
    (tmp_path / "events.jsonl").write_text(json.dumps(bad) + "\n")
    assert "replay: of is 3" in read_events(tmp_path / "events.jsonl").problems[0]
