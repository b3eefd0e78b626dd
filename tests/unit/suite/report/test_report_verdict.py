"""The verdict: every outcome word, alone and beside others, and that nothing can be left out."""

import dataclasses
from typing import Any

import pytest

from offload.suite.report.criteria import Criteria, Criterion, Level, load
from offload.suite.report.document import build
from offload.suite.report.events import Log
from offload.suite.report.facts import Facts, from_event, of, to_event
from offload.suite.report.verdict import Gap, PromiseState, State, _counts, judge

TX, SW = ("tx", "1.2", "aes-gcm-128"), ("tx", "1.3", "aes-gcm-128")
FACTS = Facts("card", "A Card", "V", "drv", (TX, SW), frozenset({TX}), {"L1": "known"}, {SW: "kernel"})


def promise(name: str, **keys: Any) -> Criterion:
    """A promise, needed once, unless told otherwise."""
    base = {"title": name, "blocker": True, "applies": "always", "tests": 1, "cells": None, "levels": {}}
    return Criterion(name, **(base | keys))


BAR = [
    promise("payload.tx", applies="tx", cells="promised"),
    promise("payload.rx", applies="rx"),
    promise("fallback.expected", applies="unpromised", cells="unpromised"),
    promise("counters", levels={"percent": Level(min=90)}),
    promise("nice", blocker=False),
]
CRITERIA = Criteria({criterion.id: criterion for criterion in BAR}, "0" * 64)


def case(name: str, about: str | None, outcome: str = "pass", **keys: Any) -> dict[str, Any]:
    """One test event."""
    base = {
        "id": name,
        "promise": about,
        "cell": None,
        "outcome": outcome,
        "seconds": 1.0,
        "reason": "",
        "evidence": {},
    }
    return {"event": "test", **base, **keys}


def cell(found: tuple[str, str, str]) -> dict[str, str]:
    """A cell as events hold it."""
    return dict(zip(("direction", "version", "cipher"), found, strict=True))


GOOD = [
    case("tx", "payload.tx", cell=cell(TX), evidence={"offload": "hw"}),
    case("sw", "fallback.expected", cell=cell(SW), evidence={"offload": "sw"}),
    case("counts", "counters", evidence={"percent": 95}),
    case("nice", "nice"),
]


def run(tests: list[dict[str, Any]], /, exit: int | None = None, **plan: Any) -> Log:
    """A whole run with these tests."""
    bad = any(test["outcome"] in ("fail", "error") for test in tests)
    ids = [{"id": test["id"], "promise": test["promise"]} for test in tests]
    events = [
        {"event": "run-start", "rig": {"k": "1"}, "profile": "card", "simulated": True, "kernel": "6.1"},
        {"event": "plan", "tests": ids, "deselected": [], **plan},
        *tests,
        {"event": "run-end", "exit": int(bad) if exit is None else exit, "seconds": 1.0},
    ]
    return Log([{"seq": seq, "time": "", **event} for seq, event in enumerate(events)])


def swap(number: int, **keys: Any) -> list[dict[str, Any]]:
    """The good tests with one of them changed."""
    return [test | keys if place == number else test for place, test in enumerate(GOOD)]


@pytest.mark.parametrize(
    ("tests", "word", "reason"),
    [
        (GOOD, "certified", ""),
        (swap(0, outcome="fail", reason="12 bytes missing"), "failed", "payload.tx: 12 bytes missing"),
        (swap(0, outcome="skip", reason="no peer"), "incomplete", "payload.tx: skipped: no peer"),
        (swap(0, outcome="error", reason="oops"), "void", "the rig broke in tx: oops"),
        ([*swap(0, outcome="error", reason="oops"), case("x", "nice", "fail")], "void", "rig broke"),
        (swap(0, outcome="xfail", reason="L1: known"), "certified with limitations", "payload.tx: L1: known"),
        (swap(0, outcome="xfail", reason="L2: own idea"), "failed", "that the profile does not list"),
        (GOOD[1:], "incomplete", "payload.tx: no test of it ran"),
        (swap(0, cell=None), "incomplete", "not tested: Tx TLS 1.2 aes-gcm-128"),
        (swap(1, cell=None), "incomplete", "not tested: Tx TLS 1.3 aes-gcm-128"),
        (swap(0, evidence={"offload": "sw"}), "failed", "wanted TLS offload 'hw'"),
        (swap(1, evidence={"offload": "hw"}), "failed", "wanted TLS offload 'sw'"),
        (swap(2, evidence={"percent": 89.9}), "failed", "percent is 89.9, wanted at least 90"),
        (swap(2, evidence={}), "incomplete", "no test measured percent"),
        (swap(2, evidence={"percent": "95"}), "incomplete", "no test measured percent"),
        (swap(3, outcome="fail", reason="slow"), "certified with limitations", "nice: slow"),
        (swap(3, outcome="skip", reason="no tool"), "certified", ""),
        (GOOD[:3], "certified with limitations", "nice: no test of it ran"),
        ([*GOOD, case("x", None, "fail", reason="odd")], "failed", "x: odd"),
        ([*GOOD, case("x", None, "xfail", reason="L2: own idea")], "failed", "x: L2: own idea"),
        ([*GOOD, case("x", None, "xfail", reason="L1: known")], "certified with limitations", "n L1"),
        ([*GOOD, case("x", None, "error", reason="odd")], "void", "the rig broke in x"),
        ([*GOOD, case("x", None, "skip", reason="odd")], "certified", ""),
        ([*GOOD, case("x", "payload.rx", "fail", reason="odd")], "failed", "payload.rx: odd"),
        ([*GOOD, case("x", "payload.tv")], "void", "unknown promise 'payload.tv'"),
        ([*GOOD, GOOD[0]], "void", "tx has 2 results"),
        ([], "incomplete", "payload.tx: no test of it ran"),
        ([case("x", "nice", "fail"), *swap(0, outcome="skip")], "incomplete", "payload.tx"),
        ([*swap(0, outcome="skip"), case("x", "counters", "fail", reason="r")], "failed", "counters: r"),
    ],
)
def test_word_of_a_run(tests: list[dict[str, Any]], word: str, reason: str) -> None:
    """Each outcome leads to its word, and the first reason says why."""
    verdict = judge(run(tests), CRITERIA, FACTS)
    assert verdict.word == word, verdict
    assert (reason in verdict.reasons[0]) if reason else not verdict.reasons


def test_failed_run_says_what_the_card_does_wrong() -> None:
    """The headline is the fault of the first broken promise and what was seen; the test stands apart."""
    promise = CRITERIA.promises["payload.tx"]
    reported = dataclasses.replace(
        CRITERIA,
        promises={**CRITERIA.promises, "payload.tx": dataclasses.replace(promise, fault="loses data")},
    )
    found = judge(run(swap(0, outcome="fail", reason="3 bytes are gone")), reported, FACTS)
    assert found.headline == "A Card loses data: 3 bytes are gone"
    assert found.defect == ("payload.tx", "loses data", "3 bytes are gone", GOOD[0]["id"])
    assert judge(run(GOOD), reported, FACTS).defect is None
    stray = judge(run([*GOOD, case("x", None, "fail", reason="odd")]), reported, FACTS)
    assert stray.defect == ("", "fails a test that belongs to no promise", "odd", "x")


@pytest.mark.parametrize(
    ("tests", "said"),
    [
        (GOOD, "A Card keeps all 3 required and all 1 optional promises"),
        (
            swap(3, outcome="skip", reason="nginx is not installed"),
            "A Card keeps all 3 required promises; 1 optional not tested: nginx is not installed",
        ),
        (
            swap(3, outcome="fail", reason="slow"),
            "A Card keeps all 3 required promises, with limitations; 1 optional broken: nice",
        ),
        (
            GOOD[:3],
            "A Card keeps all 3 required promises, with limitations; 1 optional not tested: too few tests",
        ),
    ],
)
def test_headline_counts_what_counts(tests: list[dict[str, Any]], said: str) -> None:
    """A certificate says that all it requires is kept, and why the rest was not tested."""
    assert judge(run(tests), CRITERIA, FACTS).headline == said


@pytest.mark.parametrize("gone", range(len(run(GOOD).events)))
def test_no_single_event_can_be_missing(gone: int) -> None:
    """A run that lost any one event is not certified."""
    log = run(GOOD)
    assert judge(log, CRITERIA, FACTS).word == "certified"
    assert judge(Log(log.events[:gone] + log.events[gone + 1 :]), CRITERIA, FACTS).word in (
        "void",
        "incomplete",
    )


@pytest.mark.parametrize("outcome", ["fail", "skip", "error", "xfail"])
@pytest.mark.parametrize("renumber", [False, True])
@pytest.mark.parametrize("gone", range(len(run([*GOOD, GOOD[0]]).events)))
def test_losing_an_event_never_certifies(outcome: str, renumber: bool, gone: int) -> None:
    """Taking one event out of a bad run, numbers mended or not, never certifies it."""
    extra = case("more", "payload.tx", outcome, reason="bad", cell=cell(TX))
    log = run([*GOOD, extra])
    assert judge(log, CRITERIA, FACTS).word != "certified"
    left = log.events[:gone] + log.events[gone + 1 :]
    left = [event | {"seq": seq} for seq, event in enumerate(left)] if renumber else left
    assert not judge(Log(left), CRITERIA, FACTS).word.startswith("certified")


@pytest.mark.parametrize(
    ("log", "reason"),
    [
        (Log(run(GOOD).events[:-1]), "did not finish"),
        (Log([]), "the tests did not start"),
        (run(GOOD, exit=2), "exit code 2"),
        (run(GOOD, exit=3), "exit code 3"),
        (run(GOOD, exit=-9), "exit code -9"),
        (Log([run(GOOD).events[0], *run(GOOD).events[2:]]), "plan of tests is missing"),
        (run(GOOD, exit=1), "no test failed"),
        (dataclasses.replace(run(GOOD), problems=["line 3: not JSON"]), "line 3"),
        (Log([*run(GOOD).events, {"seq": 7, "event": "abort", "reason": "Ctrl-C"}]), "stopped: Ctrl-C"),
        (Log([*run(GOOD).events, *run(GOOD).events]), "number 7 is missing"),
    ],
)
def test_void_says_why(log: Log, reason: str) -> None:
    """A run that cannot be trusted is void and says what happened."""
    verdict = judge(log, CRITERIA, FACTS)
    assert verdict.word == "void" and any(reason in found for found in verdict.reasons), verdict.reasons


def test_killed_run_names_the_running_test() -> None:
    events = [*run(GOOD).events[:2], {"seq": 2, "event": "progress", "id": "test_x", "n": 1, "of": 4}]
    assert judge(Log(events), CRITERIA, FACTS).reasons == ("the run did not finish (during test_x)",)


def test_tests_left_out_leave_a_gap() -> None:
    """A blocker with a deselected or unfinished test is not proved, however many passed."""
    out = run(GOOD, deselected=[{"id": "gone", "promise": "counters"}])
    assert judge(out, CRITERIA, FACTS).reasons == ("counters: left out of this run [gone]",)
    lost = run(GOOD, tests=[{"id": "lost", "promise": "counters"}])
    assert judge(lost, CRITERIA, FACTS).reasons == ("counters: planned, but has no result [lost]",)


def test_wrong_profile_is_void() -> None:
    """Events of one card say nothing about another."""
    other = dataclasses.replace(FACTS, id="other")
    assert "used profile 'card'" in judge(run(GOOD), CRITERIA, other).reasons[0]


def test_truth_table_says_who_did_it() -> None:
    """Each cell shows hardware, expected software with its reason, or what is missing."""
    found = judge(run(GOOD), CRITERIA, FACTS).cells
    assert [(c.state, c.reason) for c in found] == [("hw", ""), ("sw expected", "kernel")]
    found = judge(run(swap(0, outcome="skip", reason="no peer")), CRITERIA, FACTS).cells
    assert (found[0].state, found[0].reason) == ("not tested", "no peer")
    found = judge(
        run([*GOOD, case("s", "sizes", "fail", cell=cell(TX), reason="odd")]), CRITERIA, FACTS
    ).cells
    assert (found[0].state, found[0].tests) == ("failed", ("tx", "s"))


def test_promise_not_made_is_not_asked() -> None:
    """A card without Rx is not judged by it."""
    states = {state.criterion.id: state.state for state in judge(run(GOOD), CRITERIA, FACTS).promises}
    assert states["payload.rx"] == "not promised" and states["payload.tx"] == "kept"


@pytest.mark.parametrize(
    ("name", "reason", "word"),
    [
        ("tests/hw/a.py::b", "L1: known; seen: 3 rules LOST here", "certified with limitations"),
        ("tests/hw/a.py::b[tx]", "L1: rules lost", "certified with limitations"),
        ("tests/hw/a.py::b", "L1: known; seen: 1 byte differs", "failed"),
        ("tests/hw/a.py::bc", "L1: known; seen: rules lost", "failed"),
        ("tests/hw/a.py::b", "L3: known; seen: anything", "failed"),
        ("tests/hw/a.py::b", "see L1: rules lost", "failed"),
    ],
)
def test_limitation_excuses_one_test_and_one_failure(name: str, reason: str, word: str) -> None:
    """A limitation excuses the test that the profile names, failing as it says; no other."""
    excuses = {"L1": ("tests/hw/a.py::b", "rules lost"), "L3": ("", "")}
    strict = dataclasses.replace(FACTS, limitations={"L1": "known", "L3": "no test yet"}, excuses=excuses)
    assert from_event(to_event(strict)) == strict
    tests = swap(0, id=name, outcome="xfail", reason=reason)
    assert judge(run(tests), CRITERIA, strict).word == word
    old = {key: value for key, value in to_event(strict).items() if key != "excuses"}
    assert from_event(old) == dataclasses.replace(strict, excuses={})  # an event of an earlier version


def test_judging_changes_nothing() -> None:
    """The same events give the same document, twice."""
    log = run(GOOD)
    before = repr(log)
    assert build(log, CRITERIA, FACTS) == build(log, CRITERIA, FACTS) and repr(log) == before


def test_every_profile_can_be_judged() -> None:
    """The facts of each shipped profile survive the trip through an event."""
    from offload.card.profile import load_all

    for profile in load_all():
        facts = of(profile)
        assert from_event(to_event(facts)) == facts
        assert judge(Log([]), load(), facts).word == "void"


@pytest.mark.parametrize(
    "change",
    [
        {"id": 1},
        {"cells": "x"},
        {"cells": [[1, 2, 3, True, ""]]},
        {"limitations": 3},
        {"excuses": 3},
        {"excuses": {"L1": 3}},
        {"excuses": {"L1": ["x"]}},
        {"excuses": {"L1": ["x", 3]}},
    ],
)
def test_wrong_facts_are_refused(change: dict[str, Any]) -> None:
    """A profile event that says nonsense is refused."""
    assert isinstance(from_event(to_event(FACTS) | change), str)


@pytest.mark.parametrize(
    ("gap", "reason", "limits"),
    [
        (Gap.SKIPPED, "no peer", False),
        (Gap.TOO_FEW, "skipped: so it reads", True),
        (None, "skipped: it", True),
    ],
)
def test_a_gap_decides_and_not_its_words(gap: Gap | None, reason: str, limits: bool) -> None:
    """Only what the rig lacked limits no certificate, whatever its reason begins with."""
    state = State.UNPROVED if gap else State.BROKEN
    assert _counts(PromiseState(promise("nice", blocker=False), state, reason, (), gap)) is limits


WHERE = promise("wire.where", tests=2, proof=None, frames="explained")
STRAY = {"code": "stray-data", "at": 1036, "between": "192.0.2.1:4433 > 192.0.2.2:50000"}


def captured(*first: dict[str, Any], **changed: Any) -> dict[str, Any]:
    """Evidence of captures with these frames left over."""
    return {"captured": {"frames": 2048, "unexplained": len(first), "first": list(first)} | changed}


def where(*tests: dict[str, Any]) -> tuple[str, str, tuple[str, ...]]:
    """State, reason and tests of the promise that every frame counts for; two good tests are its own."""
    good = [case("w1", "wire.where", evidence=captured()), case("w2", "wire.where")]
    bar = Criteria(CRITERIA.promises | {"wire.where": WHERE}, "0" * 64)
    found = judge(run([*GOOD, *good, *tests]), bar, FACTS)
    state = found.promises[-1]
    assert (found.word == "failed") is (state.state == "broken")
    return state.state, state.reason, state.tests


@pytest.mark.parametrize("about", ["nice", "payload.tx", None])
@pytest.mark.parametrize("outcome", ["pass", "fail", "skip", "xfail"])
def test_a_leaked_frame_counts_wherever_it_is_met(about: str | None, outcome: str) -> None:
    """One frame that nothing explains breaks wire.where, whatever the test is of and however it ended."""
    state, reason, tests = where(
        case("met", about, outcome, reason="L1: x", cell=cell(TX), evidence=captured(STRAY))
    )
    assert state == "broken" and tests == ("w1", "w2", "met")
    assert reason == (
        "1 of 2048 captured frames are unexplained: stray-data at 1036 "
        "(192.0.2.1:4433 > 192.0.2.2:50000) [met]"
    )


def test_a_test_that_failed_for_a_leaked_frame_says_so_itself() -> None:
    """The reason of wire.where is that test's own headline, which names the conditions."""
    own = "sent records leave with frames of the card over IPv6: 1 of 9 captured frames are unexplained"
    assert where(case("met", "nice", "fail", reason=own, evidence=captured(STRAY)))[1] == f"{own} [met]"
    assert "over IPv6" not in where(case("met", "nice", "pass", reason=own, evidence=captured(STRAY)))[1]


def test_leaked_frames_of_many_tests_are_counted() -> None:
    """The first test is named, and how many more met such frames."""
    met = [case(f"met{number}", "nice", "fail", evidence=captured(STRAY, STRAY)) for number in range(3)]
    assert where(*met)[1].endswith("(and in 2 more tests) [met0]")


def test_explained_frames_break_nothing() -> None:
    """A capture without a stray frame, and a test that captures nothing, deny nothing."""
    assert where(case("clean", "nice", evidence=captured()), case("none", "nice"))[0] == "kept"


@pytest.mark.parametrize(
    "changed",
    [
        {"captured": 3},
        {"captured": {}},
        captured(unexplained=-1),
        captured(frames=True),
        captured({"code": "a new device", "at": 1, "between": ""}),
        captured({"code": "stray-data", "at": "1", "between": ""}),
        captured(first=["x"]),
    ],
)
def test_evidence_of_captures_has_a_form(changed: dict[str, Any]) -> None:
    """What is said of captures in another form breaks the promise instead of being skipped."""
    state, reason, _ = where(case("odd", "nice", evidence=changed))
    assert state == "broken" and "not have the form" in reason


def test_shipped_criteria_count_frames_for_one_promise() -> None:
    """It is wire.where that each captured frame of the run counts for."""
    assert [name for name, one in load().promises.items() if one.frames] == ["wire.where"]
