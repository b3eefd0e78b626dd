"""The wire in the report: proofs per cell, what counts as proven, and no difference that is overlooked."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from offload.card.profile import find
from offload.suite.report import facts, wire
from offload.suite.report.criteria import load
from offload.suite.report.document import build
from offload.suite.report.events import Log, Writer
from offload.suite.report.files import compute, write
from offload.suite.report.render import render
from offload.suite.report.render.summary import text
from offload.suite.report.verdict import PromiseState, judge
from tests.lib.rig.schemas import checker

FACTS = facts.of(find("nicsim"))
TX, TX256 = ("tx", "1.2", "aes-gcm-128"), ("tx", "1.2", "aes-gcm-256")
SW, RX = ("tx", "1.3", "aes-gcm-128"), ("rx", "1.2", "aes-gcm-128")
WORDS = "record 412, ciphertext byte 2817: expected 3f, got 3e: bit flip"
EVIL = "<img src=//evil.example/x onerror=alert(1)>\"'\x1b[2J" + "long " * 300


def seen(proof: str, outcome: str = "equal", **keys: Any) -> dict[str, Any]:
    """What a test of the wire writes as evidence."""
    engine = "core" if proof == "B" else ""
    base = {"proof": proof, "outcome": outcome, "engine": engine, "records": 100, "bytes": 1 << 20}
    return {"wire": base | {"difference": WORDS if outcome == "different" else ""} | keys}


def case(
    name: str, promise: str | None, cell: Any = None, outcome: str = "pass", **keys: Any
) -> dict[str, Any]:
    """One test event."""
    named = dict(zip(("direction", "version", "cipher"), cell, strict=True)) if cell else None
    base = {"id": name, "promise": promise, "cell": named, "outcome": outcome, "seconds": 1.0, "reason": ""}
    return {"event": "test", "evidence": {}, **base, **keys}


SENT = {"bytes": 1000, "sha256": "ab", "offload": "hw"}
GOOD = [
    case("sent", "payload.tx", TX, evidence=SENT),
    case("sent256", "payload.tx", TX256, evidence=SENT),
    case("b", "wire.records", TX, evidence=seen("B")),
    case("b256", "wire.records", TX256, evidence=seen("B", engine="python", records=1)),
    case("b-sw", "wire.records", SW, evidence=seen("B") | {"offload": "sw"}),
    case("c1", "wire.stream", TX, evidence=seen("C")),
    case("c2", "wire.stream", evidence=seen("C")),
    case("w1", "wire.where", TX, evidence=seen("where", records=0)),
    case("w2", "wire.where", evidence=seen("where")),
    case("forged", "wire.forged"),
]


def run(tests: list[dict[str, Any]]) -> Log:
    bad = any(test["outcome"] in ("fail", "error") for test in tests)
    ids = [{"id": test["id"], "promise": test["promise"]} for test in tests]
    events = [
        {"event": "run-start", "rig": {"k": "1"}, "profile": "nicsim", "simulated": True, "kernel": "6.1"},
        {"event": "plan", "tests": ids, "deselected": []},
        *tests,
        {"event": "run-end", "exit": int(bad), "seconds": 1.0},
    ]
    stamp = "2026-01-02T03:04:05.678Z"
    return Log([{"seq": seq, "time": stamp, **event} for seq, event in enumerate(events)], sha256="a" * 64)


def swap(name: str, **keys: Any) -> list[dict[str, Any]]:
    """The good tests with one of them changed."""
    assert any(test["id"] == name for test in GOOD)
    return [test | keys if test["id"] == name else test for test in GOOD]


def document(tests: list[dict[str, Any]]) -> dict[str, Any]:
    """The report on a run of these tests; it fits its schema."""
    found = build(run(tests), load(), FACTS)
    checker("report").validate(found)
    return found


def proof(tests: list[dict[str, Any]], name: str, cell: tuple[str, str, str]) -> dict[str, Any]:
    rows = document(tests)["wire"]
    (row,) = [row for row in rows if (row["direction"], row["version"], row["cipher"]) == cell]
    return dict(row["proofs"][name])


def promise(tests: list[dict[str, Any]], name: str) -> PromiseState:
    (found,) = [p for p in judge(run(tests), load(), FACTS).promises if p.criterion.id == name]
    return found


def test_each_cell_has_its_proofs() -> None:
    """Every cell says of each proof what is proven, in records and bytes, by which engine."""
    rows = document(GOOD)["wire"]
    assert [(r["direction"], r["version"], r["cipher"]) for r in rows] == [*FACTS.cells, ("", "", "")]
    found = proof(GOOD, "B", TX)
    assert (found["state"], found["tests"], found["proven"]) == ("proven", ["b"], 1)
    assert (found["records"], found["bytes"], found["engines"]) == (100, 1 << 20, ["core"])
    assert (proof(GOOD, "A", TX)["bytes"], proof(GOOD, "A", TX)["records"]) == (1000, 0)
    assert proof(GOOD, "C", ("", "", ""))["tests"] == ["c2"]
    states = [proof(GOOD, name, RX)["state"] for name in wire.PROOFS]
    assert states == ["not tested", "not asked", "not asked", "not asked"]


@pytest.mark.parametrize(
    ("keys", "state", "words"),
    [
        ({"outcome": "fail", "reason": "r", "evidence": seen("B", "different")}, "different", WORDS),
        (
            {"outcome": "fail", "reason": "r", "evidence": seen("B", "different", difference="")},
            "different",
            "r",
        ),
        ({"evidence": seen("B", "different")}, "different", WORDS),
        ({"evidence": seen("B", "inconclusive", difference="a gap")}, "inconclusive", "a gap"),
        ({"evidence": {}}, "inconclusive", "shows no proof B"),
        ({"evidence": seen("B", "maybe")}, "inconclusive", "shows no proof B"),
        ({"evidence": seen("B", records=0)}, "inconclusive", "shows no proof B"),
        ({"evidence": seen("B", records=True)}, "inconclusive", "shows no proof B"),
        ({"outcome": "fail", "reason": "no peer answer"}, "failed", "no peer answer"),
        ({"outcome": "xfail", "reason": "nicsim-is-not-a-card: x"}, "limited", "nicsim-is-not-a-card: x"),
        ({"outcome": "skip", "reason": "no tap"}, "not tested", "skipped: no tap"),
        ({"outcome": "error", "reason": "VM down"}, "not tested", "the rig broke: VM down"),
    ],
)
def test_only_equal_and_passed_is_proven(keys: dict[str, Any], state: str, words: str) -> None:
    """Whatever is not a passed test with an equal comparison counts nothing, and says why."""
    found = proof(swap("b", **keys), "B", TX)
    assert (found["state"], found["records"], found["bytes"]) == (state, 0, 0)
    assert words in (found["difference"] or found["reason"])
    assert bool(found["difference"]) == (state == "different")


@pytest.mark.parametrize(
    ("keys", "reason"),
    [
        ({"evidence": {}}, "passed, but its evidence shows no proof B [b256]"),
        ({"evidence": seen("C")}, "passed, but its evidence shows no proof B [b256]"),
        ({"evidence": seen("B", records=0)}, "passed, but its evidence shows no proof B [b256]"),
        ({"cell": None}, "not tested: Tx TLS 1.2 aes-gcm-256"),
        ({"promise": None}, "not tested: Tx TLS 1.2 aes-gcm-256"),
        ({"cell": {"direction": [], "version": {}}}, "not tested: Tx TLS 1.2 aes-gcm-256"),
    ],
)
def test_promised_cell_without_proof_is_incomplete(keys: dict[str, Any], reason: str) -> None:
    """A promised cell that was sent but never compared on the wire is not proved."""
    assert promise(GOOD, "wire.records").state == "kept"
    found = promise(swap("b256", **keys), "wire.records")
    assert (found.state, found.reason) == ("not proved", reason)
    alone = [test for test in swap("b256", **keys) if test["id"] in ("sent", "sent256", "b256")]
    assert promise(alone, "wire.records").state == "not proved"
    assert judge(run(swap("b256", **keys)), load(), FACTS).word == "incomplete"


@pytest.mark.parametrize("name", ["b", "b-sw", "c2", "w1"])
@pytest.mark.parametrize("outcome", ["different", "inconclusive", "maybe", None])
def test_passed_test_that_shows_a_difference_has_failed(name: str, outcome: Any) -> None:
    """No test passes against its own evidence of the wire, whichever proof it is."""
    (test,) = [test for test in GOOD if test["id"] == name]
    evidence = seen(test["evidence"]["wire"]["proof"], outcome, difference=WORDS)
    verdict = judge(run(swap(name, evidence=evidence)), load(), FACTS)
    assert verdict.word == "failed" and verdict.defect and verdict.defect.promise == test["promise"]
    assert f"[{name}]" in verdict.reasons[0] and (
        outcome is None or outcome == "maybe" or WORDS in verdict.reasons[0]
    )
    if test["cell"]:
        assert [c.state for c in verdict.cells if name in c.tests] == ["failed"]


@pytest.mark.parametrize("evidence", [{"wire": 3}, {"wire": []}, {"wire": None}, {"wire": {"proof": []}}])
def test_damaged_evidence_is_a_contradiction(evidence: dict[str, Any]) -> None:
    """Evidence of the wire that cannot be read is no proof, and no crash."""
    tests = swap("b", evidence=evidence)
    assert "not have the form" in promise(tests, "wire.records").reason
    assert "not have the form" in render.html(document(tests))
    stray = judge(run([*GOOD, case("x", None, evidence=evidence)]), load(), FACTS)
    assert stray.word == "failed" and stray.reasons[0].startswith("x: ")


def test_difference_of_a_payload_test_counts_too() -> None:
    """A test of another promise whose capture shows a difference fails that promise."""
    tests = swap("sent", evidence=SENT | seen("B", "different"))
    assert promise(tests, "payload.tx").state == "broken"
    assert proof(tests, "B", TX)["state"] == "different" and proof(tests, "A", TX)["state"] == "proven"


def test_proof_is_asked_once() -> None:
    """A proof seen in some cell is not asked again of tests without one; nor without Tx."""
    states = [proof(GOOD, name, ("", "", ""))["state"] for name in wire.PROOFS]
    assert states == ["not asked", "not asked", "proven", "proven"]
    celled = [test | {"cell": GOOD[0]["cell"]} for test in GOOD]
    assert len(document(celled)["wire"]) == len(FACTS.cells)
    assert proof([], "C", ("", "", ""))["state"] == "not tested"
    receiver = dataclasses.replace(FACTS, promised=frozenset({RX}))
    only_rx = build(run([]), load(), receiver)
    assert [row["proofs"]["C"]["state"] for row in only_rx["wire"]] == ["not asked"] * len(only_rx["wire"])
    assert "\nwire " not in text(only_rx)


def test_numbers_that_are_none_count_nothing() -> None:
    """An absurd number in the evidence is not added up."""
    for number in (-1, 1 << 70, 1.5, "7", None):
        assert proof(swap("b", evidence=seen("B", bytes=number)), "B", TX)["bytes"] == 0


def test_terminal_says_it_in_one_line() -> None:
    """The summary has the three proofs, their units, and that there is no difference."""
    (line,) = [line for line in text(document(GOOD), width=140).splitlines() if line.startswith("wire")]
    assert line == (
        "wire      B 3 cells, 201 records, 3.0 MiB proven; C 2 streams identical; where 2 tests; "
        "no difference"
    )


def test_terminal_says_the_first_difference() -> None:
    """A difference is told in whole words under the line, wrapped, and steers nothing."""
    lines = text(document(swap("b", evidence=seen("B", "different", difference=EVIL))), width=80)
    block = lines[lines.index("\nwire ") : lines.index("\ntime:")]
    assert "wire      B different (2 of 3 cells, 101 records, 2.0 MiB proven); C 2 streams" in block
    assert "first difference: Tx TLS 1.2 aes-gcm-128, B: <img" in block and "no difference" not in block
    assert "\x1b" not in lines and all(len(line) <= 80 for line in block.splitlines())


def test_nothing_tested_is_said() -> None:
    """A run without tests of the wire does not read as one without a difference."""
    lines = text(document(GOOD[:2]))
    assert "wire      B not tested; C not tested; where not tested\n" in lines


def test_page_has_the_section() -> None:
    """The page says per cell what is proven, and a long difference in words, harmless."""
    page = render.html(document(GOOD))
    assert '<h2 id="wire">' in page and "Verified by the native core and the Python oracle." in page
    assert "1.0\u00a0MiB" in page and "first difference" not in page
    page = render.html(document(swap("b", evidence=seen("B", "different", difference=EVIL))))
    assert "B first difference:</b> &lt;img src" in page and "<img" not in page and "long " * 180 in page
    assert "long " * 200 not in page[page.index("B first difference") :]


def test_reports_without_the_section_still_show() -> None:
    """A report made before there were proofs of the wire can be shown and fits the schema."""
    old = {key: value for key, value in document(GOOD).items() if key != "wire"}
    checker("report").validate(old)
    assert "\nwire " not in text(old) and 'id="wire"' not in render.html(old)


def test_recomputed_report_is_the_same(tmp_path: Path) -> None:
    """The section follows from the events on disk alone, byte for byte."""
    events = Writer(tmp_path / "events.jsonl")
    for event in run(GOOD).events:
        events.write(event["event"], **{k: v for k, v in event.items() if k not in ("event", "seq", "time")})
    events.close()
    first = write(tmp_path)
    assert first["wire"] == document(GOOD)["wire"]
    assert render.canonical(compute(tmp_path)) == (tmp_path / "report.json").read_bytes()


@pytest.mark.parametrize(
    ("count", "said"),
    [
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.0 KiB"),
        (1048575, "1.0 MiB"),
        (19_083_000, "18.2 MiB"),
        (5 << 30, "5.0 GiB"),
        (1 << 62, "4,194,304.0 TiB"),
    ],
)
def test_sizes_say_their_unit(count: int, said: str) -> None:
    """Bytes are shown in the unit that fits."""
    assert wire.size(count) == said
