"""The report's section on live migrations: figures by transport, gaps, hostile evidence."""

from __future__ import annotations

import json
from typing import Any

import pytest

from offload.suite.report import migration
from offload.suite.report.cpu.words import MARK
from offload.suite.report.events import plain
from offload.suite.report.render import render
from offload.suite.report.render.migration_page import UNTOLD
from offload.suite.report.render.summary import text
from tests.lib.rig.schemas import checker
from tests.unit.page_check import problems
from tests.unit.suite.report import migration_documents as made
from tests.unit.suite.report.render.test_report_render import EVIL, Page
from tests.unit.suite.report.test_report_impairment import document as report
from tests.unit.suite.report.test_report_impairment import met

TITLE = "Live migration, by transport"


def tree(*documents: Any, outcome: str = "pass", simulated: bool = True) -> dict[str, Any]:
    """A report on tests with this evidence, which fits its schema."""
    tests = [met(f"test_{n}", outcome, migrations=found) for n, found in enumerate(documents)]
    found = report(*tests, simulated=simulated)
    checker("report").validate(found)
    return found


def transports(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {transport["transport"]: transport for transport in found["migration"]["transports"]}


def test_medians_and_times_of_stunnel() -> None:
    """Each transport has its medians, and by how much stunnel takes longer, with an interval."""
    found = transports(tree(made.document(), simulated=False))
    assert list(found) == ["plain", "stunnel", "ktls-sw", "ktls-hw"]
    card = found["ktls-hw"]
    assert (card["runs"], card["seconds"], card["arrived"], card["downtime_ms"]) == (5, 1.02, 1.07, 70)
    assert (card["bytes"], card["rounds"], card["forced"]) == (260 << 20, 3, 0)
    assert card["ends"][0] == {"end": "source", "cpu_seconds": 0.5, "cores": 0.65, "margin": 0.1}
    comparison = card["stunnel"]
    assert comparison["ratio"] == pytest.approx(3020 / 1070, rel=1e-2) and comparison["pairs"] == 5
    assert comparison["low"] <= comparison["ratio"] <= comparison["high"] and comparison["state"] == "more"
    assert found["stunnel"]["stunnel"] is None


def test_one_round_is_too_few() -> None:
    """A ratio of one round has no interval and is unsure; cores nobody told are no column."""
    found = tree(made.document(1, cores=False, simulated=False), simulated=False)
    comparison = transports(found)["ktls-sw"]["stunnel"]
    assert (comparison["low"], comparison["state"]) == (None, "few") and "too few pairs" in comparison[
        "words"
    ]
    page = render.html(found)
    assert page.count('<span class="why">unsure</span>') == 3 and "active cores of the whole host" not in page


def test_cores_of_some_runs_are_none() -> None:
    """The cores of an end are told only where every migration told them; its seconds stay."""
    found = made.document()
    del found["transports"][0]["runs"][2]["source"]["cores"]
    near, far = transports(tree(found))["plain"]["ends"]
    assert (near["cores"], near["margin"], near["cpu_seconds"]) == (None, None, 0.4) and far["cores"] == 0.5


def test_page_and_terminal_have_the_table() -> None:
    """The page has a table by transport, and the terminal a line for each."""
    found = tree(made.document(simulated=False), simulated=False)
    page, shown = render.html(found), text(found)
    assert problems(page) == [] and not Page(page).depth
    assert page.count(TITLE) == 1 and MARK not in page
    for words in (
        "stunnel at both ends",
        "kernel TLS, the card",
        "260",
        "0.65 ±0.10 cores",
        "below it the active cores of the whole host",
        "2.82",
    ):
        assert words in page, words
    assert "Not measured: QEMU&#39;s own TLS: made up" in page and "Published by others" in page
    assert "live migration, by transport:" in shown
    assert (
        "kernel TLS, the card   1.07 s, down 70 ms, 260 MiB, CPU 0.50 s + 1.80 s; stunnel takes 2.82x\n"
        in shown
    )


def test_times_of_a_simulated_card_are_not_shown() -> None:
    """Of a simulated card page and terminal say that the guest arrived; its times stay in the JSON."""
    found = tree(made.document(), simulated=True)
    page, shown = render.html(found), text(found)
    assert "4 transports moved a guest" in page and UNTOLD in page and "2.82" not in page and MARK in page
    assert f"live migration, by transport ({MARK}):" in shown and "4 transports moved the guest" in shown
    assert "2.82x" not in shown and found["migration"]["transports"][0]["arrived"] and problems(page) == []


def test_a_card_is_not_called_simulated() -> None:
    """A table from a real bench is without that word, unless the run or the test says it."""
    real = made.document(simulated=False)
    assert "SIMULATED" not in render.html(tree(real, simulated=False))
    assert MARK in render.html(tree(real, simulated=True)) and MARK in render.html(
        tree(made.document(), simulated=False)
    )
    silent = {key: value for key, value in real.items() if key != "simulated"}
    assert tree(silent, simulated=False)["migration"]["sources"][0]["simulated"]


def test_nothing_is_drawn_where_nothing_was_measured() -> None:
    """A run without migrations has no such section, on the page or in the terminal."""
    found = report(met("a"))
    assert "migration" not in found and TITLE not in render.html(found) and "migration" not in text(found)


@pytest.mark.parametrize("outcome", ["fail", "skip", "error"])
def test_a_failed_test_gives_no_figure(outcome: str) -> None:
    """Figures of a test that did not pass are not shown, and why is."""
    found = tree(made.document(), outcome=outcome)
    assert found["migration"]["transports"] == []
    assert f"not shown: the test ended with {outcome}" in render.html(found) and "Down ms" not in render.html(
        found
    )
    assert f"not shown: the test ended with {outcome}" in text(found)


DAMAGED: dict[str, Any] = {
    "no mapping": 3,
    "another schema": made.document(schema="ktls-offload/migration/1"),
    "no list": made.document(transports={"transport": "plain"}),
    "no transport": made.document(transports=[]),
    "an unknown transport": made.document(transports=[{"transport": EVIL, "runs": [made.run()]}]),
    "no name": made.document(transports=[{"transport": ["plain"], "runs": [made.run()]}]),
    "no run": made.document(transports=[{"transport": "plain", "runs": []}]),
    "no number of a CPU": made.document(
        transports=[{"transport": "plain", "runs": [made.run(source={"cpu_seconds": float("nan")})]}]
    ),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_evidence_gives_no_figure(name: str) -> None:
    """Evidence that is not of the form is left out, counted, and said."""
    found = tree(DAMAGED[name])
    (source,) = found["migration"]["sources"]
    assert (
        found["migration"]["transports"] == []
        and source["problem"]
        and source["problem"] in render.html(found)
    )


@pytest.mark.parametrize("name", ["ms", "arrived_ms", "bytes", "rounds", "source", "destination"])
def test_what_is_no_number_is_no_figure(name: str) -> None:
    """A migration with a number that cannot be one is left out, and its transport with it."""
    for value in (0, -1, True, 1.5, "5", None, 1 << 60, [1], {"cpu_seconds": -1}, {"cpu_seconds": 1e300}):
        runs = [made.run("plain"), made.run("plain", **{name: value})]
        found = migration.section(
            [met("a", migrations=made.document(transports=[{"transport": "plain", "runs": runs}]))], True
        )
        assert found["transports"] == [] and found["sources"][0]["lost"] == 1, value


def test_hostile_words_stay_words() -> None:
    """No name in the evidence becomes a tag, and much of it is not kept."""
    odd = {"tls": EVIL, EVIL: EVIL, "deep": {"x": 1}, **{f"n{n}": "x" * 10**5 for n in range(100)}}
    many = [{"transport": "plain", "runs": [made.run("plain")] * 2}] * 5000
    skipped = [{"transport": EVIL, "reason": EVIL}, 3, {"reason": [1]}] * 50
    found = tree(made.document(about=odd, transports=many, skipped=skipped, guest={"mib": EVIL}))
    page = Page(render.html(found))
    assert not {tag for tag, _ in page.tags} & {"script", "img", "link", "iframe"} and not page.depth
    assert len(json.dumps(found["migration"])) < 20_000 and found["migration"]["sources"][0]["lost"] == 4999
    many = migration.section([met(f"t{n}", migrations=made.document()) for n in range(100)], True)
    assert len(many["sources"]) == migration.MOST_SOURCES


def test_rounds_that_do_not_pair_have_no_ratio() -> None:
    """A transport that lost a round is not compared with stunnel; the others are."""
    found = made.document()
    found["transports"][2]["runs"].pop()
    said = transports(tree(found))
    assert said["ktls-sw"]["stunnel"] is None and said["ktls-hw"]["stunnel"] is not None
    alone = [transport for transport in made.document()["transports"] if transport["transport"] != "stunnel"]
    assert all(
        transport["stunnel"] is None
        for transport in transports(tree(made.document(transports=alone))).values()
    )


def test_figures_survive_the_events() -> None:
    """The evidence is written as it was measured: what nests deep is no text, which gives no figure."""
    found = made.document()
    assert plain({"test": {"evidence": {"migrations": found}}})["test"]["evidence"]["migrations"] == found


def test_a_guest_that_was_stopped_is_marked() -> None:
    """It is said how many migrations would not have ended by themselves."""
    runs = [made.run("plain", n, forced=n < 2, rounds=7) for n in range(3)]
    found = tree(
        made.document(transports=[{"transport": "plain", "runs": runs}], simulated=False), simulated=False
    )
    assert transports(found)["plain"]["forced"] == 2 and "2 stopped" in render.html(found)
