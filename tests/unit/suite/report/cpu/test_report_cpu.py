"""The report's section on active cores: figures, what is too uncertain to tell, hostile evidence."""

from __future__ import annotations

import json
import math
from typing import Any

import pytest

from offload.suite.measure.cpu.published import published
from offload.suite.report.cpu import rows as cpu_rows
from offload.suite.report.cpu import section as cpu
from offload.suite.report.cpu.words import MARK, label, summary
from offload.suite.report.render import render
from offload.suite.report.render.summary import text
from tests.lib.rig.schemas import checker
from tests.unit.suite.report import cpu_documents as made
from tests.unit.suite.report.render.test_report_render import EVIL
from tests.unit.suite.report.test_report_impairment import document as report
from tests.unit.suite.report.test_report_impairment import met


def section(*documents: Any, outcome: str = "pass", simulated: bool = False) -> dict[str, Any]:
    """The section on tests with this evidence."""
    tests = [met(f"test_{n}", outcome, cpu=found) for n, found in enumerate(documents)]
    return cpu.section(tests, simulated)


def pairs_of(found: dict[str, Any]) -> dict[tuple[str, str, str], dict[str, Any]]:
    """The comparisons of the first setting by base, arm, side."""
    compared = found["settings"][0]["compared"]
    return {(one["base"], one["arm"], one.get("side", "")): one for one in compared}


def test_published_rows_give_the_published_figures() -> None:
    """The rows of the ASPLOS'21 artifact come out as 39 % and 67 % saved."""
    row = next(row for row in published().nginx if (row.file_kib, row.workers) == (1024, 8))
    arms = {"sw": row.arms["software"], "hw": row.arms["offload"], "hw-zc": row.arms["zerocopy"]}
    rows = [
        made.row(arm, "nginx", size=1 << 20, samples=[made.sample(one.cores, one.gbits)] * 5)
        for arm, one in {**arms, "plain": row.arms["plain"]}.items()
    ]
    found = section(made.document(rows, simulated=False))
    said = pairs_of(found)
    assert [round(said["sw", arm, ""]["saved_percent"]) for arm in ("hw", "hw-zc")] == [39, 67]
    assert [round(arm["per_100g"]["mean"], 2) for arm in found["settings"][0]["arms"]] == [
        13.88,
        8.41,
        4.61,
        3.54,
    ]
    assert said["sw", "hw", ""]["recovered_percent"] == pytest.approx(
        100 * (13.883 - 8.415) / (13.883 - 3.539), abs=0.1
    )


def test_bars_and_ratio_agree() -> None:
    """The ratio that is told is that of the means that are drawn, in its interval."""
    found = section(made.document(made.streams()))
    for setting in found["settings"]:
        means = {arm["arm"]: arm["per_100g"]["mean"] for arm in setting["arms"]}
        assert list(means) == list(made.ARMS)
        for pair in setting["compared"]:
            assert pair["ratio"] == pytest.approx(means[pair["arm"]] / means[pair["base"]], rel=1e-4)
            assert pair["low"] <= pair["ratio"] <= pair["high"] and pair["state"] == "less"
    assert found["complete"] and [label(s) for s in found["settings"]][0] == (
        "stream Tx, TLS 1.2 aes_gcm_128, 1 connection"
    )


@pytest.mark.parametrize(
    ("count", "noise", "gain", "state", "wide", "words"),
    [
        (3, 0.001, 0.6, "few", True, "too few pairs to conclude; 5 are needed"),
        (1, 0.001, 0.6, "few", True, "(1 pair): too few pairs to conclude"),
        (7, 0.3, 1.0, "unclear", True, "the interval is too wide to conclude by how much"),
        (
            7,
            0.12,
            0.5,
            "less",
            True,
            "the interval is too wide to conclude by how much, though less it is",
        ),
        (9, 0.004, 1.0, "same", False, "no difference shown"),
        (9, 0.004, 1.3, "more", False, "% more"),
    ],
)
def test_uncertainty_is_reported(
    count: int, noise: float, gain: float, state: str, wide: bool, words: str
) -> None:
    """A saving that the samples do not show is not claimed: in report, page and terminal."""
    rows = [
        made.row(arm, samples=made.rounds(10 * part, 5, count, noise, seed=n))
        for n, (arm, part) in enumerate({"sw": 1.0, "hw": gain}.items())
    ]
    tree = report(met("a", cpu=made.document(rows, simulated=False)), simulated=False)
    (pair,) = tree["cpu"]["settings"][0]["compared"]
    assert (pair["state"], pair["wide"]) == (state, wide) and words in pair["words"]
    shown = render.html(tree).replace("\u00a0", " ")
    assert words in shown and ("unsure</span>" in shown) is wide
    assert words in " ".join(text(tree).split())


def test_rounds_that_do_not_pair_give_no_ratio() -> None:
    """An arm that lost a round is not compared, and the report says so."""
    rows = made.streams()[:5]
    rows[2]["samples"] = rows[2]["samples"][:-1]
    tree = report(met("a", cpu=made.document(rows, simulated=False)), simulated=False)
    checker("report").validate(tree)
    said = {(one["base"], one["arm"]): one for one in tree["cpu"]["settings"][0]["compared"]}
    assert said["sw", "hw"]["ratio"] is None and "no pairs" in said["sw", "hw"]["words"]
    assert said["sw", "hw-zc"]["state"] == "less" and "no pairs" in render.html(tree)


def test_cost_mode_is_compared_by_side() -> None:
    """Instructions per byte are compared on each side over the boots that both arms have."""
    rows = made.cost()
    rows[2]["cost"] = [entry for entry in rows[2]["cost"] if entry["boot"] != 2]
    found = section(made.document(rows, "icount"))
    said = pairs_of(found)
    assert said["sw", "hw", "sender"]["saved_percent"] == pytest.approx(100 * (1 - 3.4 / 6.2), abs=0.01)
    assert said["sw", "hw", "sender"]["pairs"] == 2 and said["sw", "hw-zc", "sender"]["pairs"] == 3
    assert said["sw", "hw", "receiver"]["recovered_percent"] == pytest.approx(80.0, abs=0.1)
    assert not [key for key in said if key[2] == "card"]
    assert "3 boots within 0.01 %" in said["sw", "hw-zc", "sender"]["words"]
    assert found["settings"][0]["arms"][0]["cost"][0]["apart_percent"] == pytest.approx(0.04, abs=0.001)


def test_only_passed_tests_give_figures() -> None:
    """A test that failed has no figures in the report; it is named, with its reason."""
    found = section(made.document(made.streams(count=1)), outcome="fail")
    assert found["settings"] == [] and found["sources"][0]["problem"].startswith(
        "not shown: the test ended with fail"
    )
    tree = report(met("test_x", "fail", cpu=made.document(made.streams(count=1))))
    assert "not shown: the test ended with fail" in render.html(tree) and "not shown" in text(tree)
    assert "cpu" not in report(met("a")) and "Active cores" not in render.html(report(met("a")))


@pytest.mark.parametrize(
    ("said", "run", "simulated"),
    [
        (False, False, False),
        (True, False, True),
        (False, True, True),
        (None, False, True),
        ("no", False, True),
    ],
)
def test_simulated_unless_both_deny_it(said: Any, run: bool, simulated: bool) -> None:
    """Figures count as those of a card only if evidence and run both say so."""
    evidence = made.document(made.streams(count=1)[:5], simulated=said)
    page = render.html(report(met("a", cpu=evidence), simulated=run))
    assert (MARK in page) is simulated
    assert section(evidence, simulated=run)["sources"][0]["simulated"] is simulated


HURT: dict[str, Any] = {
    "no row": {"rows": []},
    "rows no list": {"rows": {"a": 1}},
    "schema": {"schema": "x/2"},
    "method": {"method": ["time"]},
    "method unknown": {"method": "guess"},
    "about": {"about": [1]},
    "row no object": {"rows": [3, None, [], "x"]},
}
HURT_ROW: dict[str, Any] = {
    "arm": {"arm": "fpga"},
    "arm list": {"arm": []},
    "workload": {"workload": EVIL},
    "streams": {"streams": 0},
    "streams bool": {"streams": True},
    "streams huge": {"streams": 10**400},
    "size": {"size": -1},
    "size text": {"size": "1"},
    "close": {"close": 1},
    "no cipher": {"cipher": None},
    "long": {"cipher": "x" * 41},
    "segmentation": {"segmentation": 1},
    "direction": {"direction": {}},
}
HURT_SAMPLE: dict[str, Any] = {
    "nothing moved": {"bytes": 0},
    "below 0": {"bytes": -1},
    "no time": {"seconds": 0},
    "nan": {"cores": math.nan},
    "inf": {"cores": math.inf},
    "no cores": {"cores": 0},
    "text": {"cores": "1.5"},
    "bool": {"seconds": True},
    "huge": {"bytes": 10**400},
    "huge cores": {"cores": 10**400},
    "list": {"bytes": [1]},
}


@pytest.mark.parametrize(("simulated", "first"), [(True, "sender: offload is 0.548"), (False, "1 pair")])
def test_what_says_most_is_reported_first(simulated: bool, first: str) -> None:
    """The first sentence is of counted instructions in a simulation, of time on a card."""
    timed, counted = made.document(made.streams(count=1)[:5]), made.document(made.cost(), "icount")
    found = section(timed | {"simulated": simulated}, counted | {"simulated": simulated})
    assert first in summary(found)[0]


@pytest.mark.parametrize("hurt", HURT)
def test_hostile_document_gives_no_figure(hurt: str) -> None:
    """Evidence of another shape gives no figure and breaks nothing; the report says so."""
    tree = report(met("a", cpu=made.document(made.streams(count=1)[:5]) | HURT[hurt]))
    checker("report").validate(tree)
    (source,) = tree["cpu"]["sources"]
    assert hurt == "about" or (source["problem"] and not tree["cpu"]["settings"])
    assert "CPU cost" in render.html(tree) and text(tree)


@pytest.mark.parametrize("found", [None, 3, "x", [], {}, {"rows": None}, [{"rows": 1}]])
def test_evidence_of_any_type_is_met(found: Any) -> None:
    """Evidence that is no document at all is told as such."""
    tree = report(met("a", cpu=found))
    checker("report").validate(tree)
    assert "not have the form" in tree["cpu"]["sources"][0]["problem"] and "not have the form" in render.html(
        tree
    )


@pytest.mark.parametrize("hurt", [*HURT_ROW, *HURT_SAMPLE])
def test_hostile_row_is_left_out(hurt: str) -> None:
    """A row with a wrong type, a NaN, or no traffic behind it is left out and counted."""
    rows = made.streams(count=1)[:5]
    if hurt in HURT_ROW:
        rows[1] |= HURT_ROW[hurt]
    else:
        rows[1]["samples"][0] |= HURT_SAMPLE[hurt]
    found = section(made.document(rows))
    assert found["sources"][0]["lost"] == 1
    assert [arm["arm"] for arm in found["settings"][0]["arms"]] == ["user", "hw", "hw-zc", "plain"]


@pytest.mark.parametrize(
    "entry",
    [
        3,
        {},
        {"boot": 1, "side": "moon", "per_byte": 1},
        {"boot": 1, "side": [], "per_byte": 1},
        {"boot": 0, "side": "sender", "per_byte": 1},
        {"boot": 1, "side": "sender", "per_byte": math.nan},
        {"boot": 1, "side": "sender", "per_byte": 2.0},
    ],
)
def test_hostile_cost_is_left_out(entry: Any) -> None:
    """A cost of an unknown side, of no boot, without a value or told twice is left out."""
    rows = made.cost()[:5]
    rows[1]["cost"].append(entry)
    found = section(made.document(rows, "icount"))
    assert found["sources"][0]["lost"] == 1 and "sw" not in [
        arm["arm"] for arm in found["settings"][0]["arms"]
    ]


def test_a_million_rows_cost_little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Evidence that is far too long is read up to a limit; the rest is counted."""
    monkeypatch.setattr(cpu, "BUDGET", 20)
    many = [made.row("hw", streams=n + 1, samples=[made.sample(1, 5)] * 5) for n in range(700)]
    long = [made.row("sw", samples=[made.sample(1, 5)] * 10**5)]
    found = section(made.document([*long, *many, *[3] * 10**6]))
    assert found["sources"][0]["lost"] == 10**6 + 701 - cpu_rows.MOST_ROWS and not found["complete"]
    assert found["settings"][0]["arms"][0]["samples"] == cpu_rows.MOST_SAMPLES
    assert "not all have intervals" in render.html(report(met("a", cpu=made.document(many))))


def test_section_is_a_pure_function() -> None:
    """The same events give the same bytes, whatever the order of keys."""
    tests = [
        met("a", cpu=made.document(made.streams()[:5])),
        met("b", cpu=made.document(made.cost(), "icount")),
    ]
    first = render.canonical(report(*tests))
    turned = [dict(reversed(test.items())) for test in json.loads(json.dumps(tests))]
    assert render.canonical(report(*turned)) == first
    checker("report").validate(json.loads(first))
    assert summary(json.loads(first)["cpu"])


def test_esp_stands_next_to_every_cipher() -> None:
    """ESP, which has no TLS cipher, is drawn and compared where kernel TLS is."""
    rows = [
        made.row(arm, samples=made.rounds(cores, 9, 6, 0.01, n))
        for n, (arm, cores) in enumerate(
            {
                "sw": 14.0,
                "hw": 8.4,
                "plain": 3.5,
                "esp-null": 12.0,
                "esp-128": 21.0,
                "esp-256-hw": 9.0,
            }.items()
        )
    ]
    for row in rows:
        row |= {} if row["arm"] in ("sw", "hw") else {"version": "", "cipher": ""}
    part = [{**row, "segmentation": False, "only": "gso"} for row in rows]
    tree = report(met("a", cpu=made.document([*rows, *part], simulated=False)), simulated=False)
    checker("report").validate(tree)
    settings = tree["cpu"]["settings"]
    assert [[arm["arm"] for arm in one["arms"]] for one in settings] == [
        ["sw", "hw", "plain", "esp-null", "esp-128", "esp-256-hw"]
    ] * 2
    assert sorted(label(one) for one in settings) == [
        f"stream Tx, TLS 1.2 aes_gcm_128, 1 connection{more}" for more in ("", ", TSO, GRO off")
    ]
    said = {(one["base"], one["arm"]): one for one in settings[0]["compared"]}
    assert said["sw", "esp-128"]["saved_percent"] == pytest.approx(-50, abs=2)
    assert said["sw", "esp-128"]["recovered_percent"] is None
    shown = render.html(tree)
    assert shown.count('class="arm esp" fill="url(#f-esp)"') == 6 and "ESP, AES-128 is 1." in shown


@pytest.mark.parametrize("only", ["half", 7, None, ["gso"]])
def test_unknown_part_is_no_row(only: Any) -> None:
    """A row with segmentation offloads that nobody knows is counted and left out."""
    rows = [made.row("sw", samples=[made.sample(1, 1)], only=only)]
    (source,) = section(made.document(rows))["sources"]
    assert source["lost"] == 1 and source["problem"]


def test_what_two_tests_say_is_said_once() -> None:
    """A line of the summary is not repeated because two tests share their figures."""
    one = made.document(made.cost(), "icount")
    assert summary(section(one, one)) == summary(section(one)) != []
