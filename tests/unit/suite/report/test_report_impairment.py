"""The report's section on impairment: cases in words, records under loss, the plot."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.profile import find
from offload.suite.report import facts
from offload.suite.report.cpu.words import MARK
from offload.suite.report.criteria import load
from offload.suite.report.document import build
from offload.suite.report.events import Log
from offload.suite.report.impairment import SHARES, section, words
from offload.suite.report.render import lossplot, render
from offload.suite.report.render.summary import text
from offload.suite.traffic.impair import Chosen, RandomImpairment
from tests.lib.rig.schemas import checker
from tests.unit.suite.report.render.test_report_render import EVIL, Page

WORDS = {
    "header of data record 10, to the DUT: lost": Chosen("header", 10, "drop", "to-dut", data=True),
    "tag of record 3, to the peer: late by 7 frames": Chosen("tag", 3, "delay", behind=7),
    "inside of record 0, to the peer (port 443): twice": Chosen("inside", 0, "duplicate", port=443),
    "first frame of data, to the peer: lost, 2 times": Chosen("first", times=2),
    "last frame, to the DUT: a bit flipped, checksum wrong": Chosen(
        "last", 0, "flip", "to-dut", repaired=False
    ),
    "byte 9, to the peer: a bit flipped, checksum right": Chosen("offset", 9, "flip", at=-1, bit=7),
    "frame 20, to the peer: lost": Chosen("frame", 20),
    "random frames, to the DUT: 2 % lost (seed 5)": RandomImpairment(loss=2, seed=5, direction="to-dut"),
    "random frames, both ways: 10 % lost, 0.5 % twice, 1 % late, 3 % damaged, jitter of 1.5 ms (seed 1)": (
        RandomImpairment(loss=10, duplicate=0.5, reorder=1, corrupt=3, jitter=1.5)
    ),
    "random frames, both ways: nothing (seed 1)": RandomImpairment(),
}


@pytest.mark.parametrize("said", WORDS)
def test_every_rule_has_words(said: str) -> None:
    """A rule is told in words, with the seed of its chance."""
    assert words([WORDS[said].text]) == [said]


def test_rules_of_one_kind_are_reported_together() -> None:
    """Rules that differ in place only are one line; one without words is shown as it is."""
    rules = [
        "b>a header +6 drop",
        "a>b first drop",
        "b>a tag +8 drop",
        "b>a header +7 drop",
        "impair both loss 1.0000%",
        EVIL,
    ]
    assert words(rules, 7) == [
        "header of data records 6, 7, tag of data record 8, to the DUT: lost",
        "first frame of data, to the peer: lost",
        "random frames, both ways: 1 % lost (seed 7)",
        EVIL,
    ]
    assert words([]) == []


def met(name: str, outcome: str = "pass", **evidence: Any) -> dict[str, Any]:
    """The event of a test."""
    head = {"event": "test", "id": name, "promise": "resync.loss", "cell": None, "outcome": outcome}
    return head | {"seconds": 1.0, "reason": "" if outcome == "pass" else name, "evidence": evidence}


def lossy(percent: Any, full: Any, part: Any, none: Any, **more: Any) -> dict[str, Any]:
    """Evidence of records under loss."""
    return {"loss": {"percent": percent, "records": 0, "full": full, "part": part, "none": none, **more}}


def record(*rules: str) -> dict[str, Any]:
    """A record of impairments in which the first rule acted once, and once found nothing to act on."""
    actions = [{"rule": 1, "action": "drop"}, {"rule": 1, "action": "none"}]
    return {"schema": 1, "seed": 4, "rules": [*rules, "clear"], "actions": actions, "summary": {}}


def test_levels_are_those_of_passed_tests() -> None:
    """The records of passed tests are added up by loss; damaged evidence is left out."""
    good = [
        met("a", **lossy(2, 20, 8, 4, resync_requests=3)),
        met("b", **lossy(0.0, 32, 0, 0)),
        met("c", **lossy(2.0, 1, 0, 1)),
    ]
    bad = [
        met("d", "fail", **lossy(2, 0, 0, 32)),
        met("e", loss=3),
        met("f", **lossy("2", 1, 1, 1)),
        met("g", **lossy(2, -1, 1, 1)),
        met("h", **lossy(2, True, 1, 1)),
        met("i", **lossy(3, 0, 0, 0)),
        met("j", **lossy(101, 1, 1, 1)),
        met("k", **lossy(3, 1, 1, None)),
    ]
    found = section(good + bad)["loss"]
    assert [(row["percent"], *(row[name] for name in SHARES)) for row in found] == [
        (0.0, 32, 0, 0),
        (2.0, 21, 8, 5),
    ]
    assert found[1]["resync_requests"] == 3


def test_cases_keep_rules_and_recovery() -> None:
    """Each test under impairment has its rules, the frames met, and the numbers of its recovery."""
    back = {"software_records": 3, "calm_decrypted_percent": 100.0, "odd": "x", "yes": True}
    (case,) = section([met("a", impairment=record("b>a first drop"), recovery=back), met("b")])["cases"]
    assert (case["rules"], case["seed"], case["met"]) == (["b>a first drop"], 4, 1)
    assert case["recovery"] == {"software_records": 3, "calm_decrypted_percent": 100.0}
    for damaged in ({}, {"rules": 3, "actions": 3, "seed": -1}, {"tool": "netem", "actions": [3]}):
        (case,) = section([met("a", "fail", impairment=damaged)])["cases"]
        assert (case["rules"], case["seed"], case["met"]) == ([], None, 0)


def document(*tests: dict[str, Any], simulated: bool = True) -> dict[str, Any]:
    """A report on these tests."""
    start = {"event": "run-start", "rig": {}, "profile": "nicsim", "simulated": simulated, "kernel": "6.1.0"}
    plan = {"event": "plan", "tests": [], "deselected": []}
    events = [start, plan, *tests, {"event": "run-end", "exit": 0, "seconds": 1.0}]
    stamped = [event | {"seq": seq, "time": "2026-01-02T03:04:05Z"} for seq, event in enumerate(events)]
    return build(Log(stamped, sha256="a" * 64), load(), facts.of(find("nicsim")))


STORMY = (
    met("test_a[0%]", **lossy(0.0, 32, 0, 0)),
    met("test_a[2%]", **lossy(2.0, 20, 8, 4), impairment=record("impair b>a seed 3 loss 2.0000%")),
    met(EVIL, "fail", impairment=record(EVIL), recovery={EVIL: 1, "resync_requests": 2}),
)


@pytest.mark.parametrize("simulated", [True, False])
def test_section_fits_schema_and_page(simulated: bool) -> None:
    """Impairment and plot are in report and page, labelled, with the numbers as tables."""
    tree = document(*STORMY, simulated=simulated)
    checker("report").validate(tree)
    page = Page(render.html(tree))
    assert not {tag for tag, _ in page.tags} & {"script", "img", "foreignobject"} and not page.depth
    plots = [attrs for tag, attrs in page.tags if tag == "svg" and attrs.get("class") == "plot"]
    assert len(plots) == 2 and all("Stacked bars" in str(attrs["aria-label"]) for attrs in plots)
    assert "random frames, to the DUT: 2 % lost (seed 3)" in page.text
    assert "62.5" in page.text and "84.1" in page.text  # ours at 2 %, the published at 0 %
    assert ("SIMULATED card" in page.text, MARK in page.text) == (simulated, simulated)
    assert page.text.count("published by others, not measured here") == 1
    assert ("certify --replay DIRECTORY-OF-THIS-REPORT" in page.text) is simulated
    assert "SIMULATED" in text(tree) or not simulated


def test_run_in_fair_impairment_has_no_section() -> None:
    """A report of a run without impairment is what it was before there was any."""
    tree = document(met("a"))
    assert not {"impairment", "replay"} & tree.keys()
    assert "ASPLOS 2021" not in Page(render.html(tree)).text
    only = document(met("a", impairment=record("b>a first drop")))
    assert "ASPLOS 2021" not in Page(render.html(only)).text and only["impairment"]["loss"] == []


def test_bars_fill_the_axis() -> None:
    """Each bar is a hundred percent high, and stands where its loss is."""
    ours, theirs = lossplot.panels(section(STORMY)["loss"])
    assert [bar["percent"] for bar in theirs["bars"]] == sorted(lossplot.PUBLISHED)
    for bar in (*ours["bars"], *theirs["bars"]):
        assert sum(part["height"] for part in bar["parts"]) == pytest.approx(lossplot.HEIGHT, abs=0.1)
        assert min(part["y"] for part in bar["parts"]) == pytest.approx(lossplot.TOP, abs=0.1)
        assert lossplot.LEFT <= bar["x"] <= lossplot.LEFT + lossplot.WIDTH - lossplot.BAR
    assert [part["share"] for part in ours["bars"][1]["parts"]] == [62.5, 25.0, 12.5]
    (storm, _) = lossplot.panels([{"percent": 50.0, "full": 1, "part": 0, "none": 0}])
    assert storm["bars"][0]["x"] == lossplot.LEFT + lossplot.WIDTH - 1.5 * lossplot.BAR
    assert lossplot.panels([]) == []


def test_published_figures_are_those_of_the_source() -> None:
    """The published shares are those of the authors' file, rounded as it was quoted."""
    quoted = {
        0.0: (84.1, 0.0, 15.9),
        1.52: (74.5, 3.0, 22.5),
        3.03: (61.0, 8.5, 30.6),
        5.0: (43.2, 11.2, 45.5),
    }
    for percent, shares in quoted.items():
        row = lossplot.PUBLISHED[percent]
        assert tuple(round(100 * count / sum(row), 1) for count in row) == shares
