"""Known kernel bugs in the report: a note beside a failure, and never another outcome."""

import json
from typing import Any

import pytest

from offload.card.profile import find
from offload.errata.match import explain, kernel
from offload.suite.report import facts, known
from offload.suite.report.criteria import load
from offload.suite.report.document import build
from offload.suite.report.events import Log
from offload.suite.report.render import render
from offload.suite.report.render.summary import text
from tests.lib.rig.schemas import checker

pytest_plugins = "pytester"

RIG: dict[str, Any] = {
    "rig": {"kernel-package": "6.12.95-1~bpo12+1", "driver": "nicsim"},
    "profile": "nicsim",
    "kernel": "6.12.95+deb12-amd64",
    "simulated": True,
}
NODE, REASON = "tests/x.py::test_sends[sendfile]", "1032192 of 1048576 bytes arrived"
EVIL = "<script>alert(1)</script>\x1b[2J"


def document(outcome: str, notes: Any) -> dict[str, Any]:
    """A report on a run of one test, with these notes in its event."""
    test = {"id": NODE, "promise": "payload.tx", "cell": None, "outcome": outcome, "seconds": 1.0}
    events: list[dict[str, Any]] = [
        {"event": "run-start", **RIG},
        {"event": "plan", "tests": [{"id": NODE, "promise": "payload.tx"}], "deselected": []},
        {"event": "test", "reason": REASON, "details": "", "evidence": {}, "known_bugs": notes, **test},
        {"event": "run-end", "exit": 1, "seconds": 1.5},
    ]
    stamped = [event | {"seq": seq, "time": "2026-01-02T03:04:05.678Z"} for seq, event in enumerate(events)]
    return build(Log(stamped, sha256="a" * 64), load(), facts.of(find("nicsim")))


@pytest.mark.parametrize("outcome", ["pass", "xfail", "skip", "fail", "error"])
def test_only_what_failed_gets_a_note(outcome: str) -> None:
    """A failure and a broken rig are explained, and what went as it should is not."""
    found = known.notes(NODE, outcome, REASON, RIG)
    assert [note["id"] for note in found] == (["tls-splice-eof"] if outcome in ("fail", "error") else [])
    assert all({*note} == {*known.KEYS} for note in found)


def test_a_rig_that_says_little_is_no_trouble() -> None:
    """A run that does not know its kernel gets no note; without its package, a doubtful one."""
    assert known.notes(NODE, "fail", REASON, RIG | {"rig": {}, "kernel": ""}) == []
    alone = known.notes(NODE, "fail", REASON, RIG | {"rig": {}, "kernel": "6.1.0-56-amd64"})
    assert {note["standing"] for note in alone} == {"unknown"}
    assert all("if this kernel has it" in known.line(note) for note in alone)


def test_package_and_driver_of_the_rig_count() -> None:
    """The package's version makes a note sure; other drivers' bugs are left out."""
    debian = RIG | {"rig": {"kernel-package": "6.1.192-2"}, "kernel": "6.1.0-56-amd64"}
    assert known.notes(NODE, "fail", REASON, debian)[0]["standing"] == "affected"
    few = "the card decrypted too little"
    with_driver = [note["id"] for note in known.notes("x::test_a", "fail", few, RIG)]
    assert with_driver == ["rx-starts-out-of-step"]


def test_there_are_never_many_notes() -> None:
    """A message that fits many bugs names the first few: a long list explains nothing."""
    rig, name = (
        RIG | {"rig": {}, "kernel": "6.1.0-56-amd64"},
        "x::test_loss_resync_sendfile_splice_stunnel_ktls",
    )
    reason = "the receiver ended with EBADMSG after 0 of 9 bytes: SHA-256 differs"
    assert len(explain(reason, kernel("6.1.0-56-amd64"), test=name)) > known.MOST
    assert len(known.notes(name, "fail", reason, rig)) == known.MOST


@pytest.mark.parametrize("outcome", ["fail", "error"])
def test_a_note_changes_nothing_but_itself(outcome: str) -> None:
    """The report with a note is the report without it, but for the note in the test's row."""
    notes = known.notes(NODE, outcome, REASON, RIG)
    with_it, without = document(outcome, notes), document(outcome, [])
    checker("report").validate(with_it)
    assert with_it["tests"][0].pop("known_bugs") == notes
    assert with_it == without and "known_bugs" not in without["tests"][0]


def test_page_and_summary_name_the_bug() -> None:
    """The failure and the row of the test name the bug, its fix, and what to do."""
    tree = document("fail", known.notes(NODE, "fail", REASON, RIG))
    page, lines = render.html(tree), text(tree)
    assert page.count("Known kernel bug?") == 2 and page.count("<code>tls-splice-eof</code>") == 2
    assert "commit eaa39f9f8ac8" in page and "the fix is in 6.12.101-1" in page
    assert "give sendfile() the exact count" in page and "The outcome stays" in page
    place = lines.index("known kernel bug? tls-splice-eof")
    assert lines.index(REASON) < place < lines.index("promises:")
    assert "Known kernel" not in render.html(document("fail", []))


@pytest.mark.parametrize(
    "notes",
    [
        None,
        "x",
        7,
        {"id": "x"},
        ["x", 7, None],
        [{}],
        [dict.fromkeys(known.KEYS, EVIL * 99)] * 50,
        [{"id": ["x"], "marks": {"a": 1}}],
    ],
    ids=repr,
)
def test_notes_of_a_hostile_file_do_no_harm(notes: Any) -> None:
    """Notes that somebody wrote into the events are bounded, escaped, or left out."""
    tree = document("fail", notes)
    checker("report").validate(tree)
    page, lines = render.html(tree), text(tree)
    assert "<script" not in page and "\x1b" not in lines and len(page) < 100_000
    assert len(tree["tests"][0].get("known_bugs", [])) <= known.MOST


def test_behavior_is_not_called_a_bug() -> None:
    """What the kernel means to do is asked about as behavior."""
    (note,) = known.notes("x::test_link_down", "fail", "inet_diag shows transmit as hw", RIG)
    assert known.question(note) == "known kernel behavior?" and note["kind"] == "behavior"
    assert known.question(note | {"kind": "behaviour"}) == "known kernel behavior?", "of an earlier version"


def test_the_plug_in_notes_it_in_event_and_terminal(pytester: pytest.Pytester) -> None:
    """A failing test on a bad kernel is noted where it fails, and fails all the same."""
    pytester.makepyfile(
        f"""
import pytest
from offload.suite.report.record.plugin import set_rig
from tests.lib.rig.schemas import checker

@pytest.fixture(autouse=True, scope="session")
def bench(pytestconfig):
    set_rig(pytestconfig, {RIG["rig"]!r}, profile="nicsim", kernel={RIG["kernel"]!r}, simulated=True)

def test_sendfile(): assert 0, {REASON!r}
def test_splice(): pass
def test_write(): assert 0, {REASON!r}
"""
    )
    done = pytester.runpytest_inprocess(
        "-p", "offload.suite.report.record.plugin", "--events", "e.jsonl", "-q"
    )
    lines = (pytester.path / "e.jsonl").read_text().splitlines()
    tests = [event for event in map(json.loads, lines) if event["event"] == "test"]
    notes = [[note["id"] for note in test.get("known_bugs", [])] for test in tests]
    assert (done.ret, [test["outcome"] for test in tests]) == (1, ["fail", "pass", "fail"])
    assert notes == [["tls-splice-eof"], [], []]
    done.stdout.fnmatch_lines(["*fail *test_sendfile: *", "*known kernel bug? tls-splice-eof (commit*"])
