"""The page's section on active cores: plots that fit and can be read aloud, published apart from measured."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from offload.suite.measure.cost.compared import compared
from offload.suite.report.cpu import page as cpu_page
from offload.suite.report.cpu import plots as cpu_plots
from offload.suite.report.cpu.rows import ARMS
from offload.suite.report.cpu.words import MARK
from offload.suite.report.render import render, svg
from offload.suite.report.render.summary import text
from tests.unit.suite.report import cpu_documents as made
from tests.unit.suite.report.cpu.test_report_cpu import section
from tests.unit.suite.report.render.test_report_render import EVIL, Page
from tests.unit.suite.report.test_report_impairment import document as report
from tests.unit.suite.report.test_report_impairment import met

WIDTH = 394


def whole(simulated: bool = True, **more: Any) -> dict[str, Any]:
    """A report with everything: streams, a sweep of nginx, cost mode."""
    found = (
        made.document(made.streams(count=5), simulated=simulated, **more),
        made.document(made.sweep(count=5), simulated=simulated),
        made.document(made.cost(), "icount", simulated=simulated),
    )
    return report(*(met(f"test_{n}", cpu=one) for n, one in enumerate(found)), simulated=simulated)


@pytest.fixture(scope="module")
def sim() -> dict[str, Any]:
    """The report of a simulated run."""
    return whole()


@pytest.fixture(scope="module")
def real() -> dict[str, Any]:
    """The report of the same on a card."""
    return whole(simulated=False)


def test_plots_say_simulated_or_published(sim: dict[str, Any], real: dict[str, Any]) -> None:
    """Each plot of a simulated run says so, and what was published stands alone."""
    ours = re.findall(r'<svg class="plot".*?</svg>', render.html(sim), re.S)
    assert ours and all(MARK in plot and ">SIMULATED<" in plot for plot in ours)
    plots = re.findall(r'<svg class="plot".*?</svg>', render.html(real), re.S)
    theirs = [plot for plot in plots if "published by others, not measured here" in plot]
    assert len(theirs) == 4 and len(plots) == 17 and not any(MARK in plot for plot in plots)
    page = cpu_page.page(sim["cpu"])
    assert not page["bars"] and not page["lines"] and not page["maps"]
    page = cpu_page.page(real["cpu"])
    every = [*page["bars"], *page["lines"], *page["maps"], *page["cost"]]
    assert not any(plot["simulated"] for plot in every)
    assert all("ConnectX-6 Dx" in plot["published"] for plot in every if plot["published"])


def test_what_to_compare_with_is_shown_once() -> None:
    """Several tests have the same boot: nicsim's and the published figure come once."""
    about = {**made.ABOUT, **compared("6.1")}
    counted = [made.document(made.cost(), "icount", about=about) for _ in range(2)]
    found = report(*(met(f"test_{n}", cpu=one) for n, one in enumerate(counted)), simulated=True)
    page = cpu_page.page(found["cpu"])
    assert [note.partition(":")[0] for note in page["notes"]] == ["Saved elsewhere", "Not counted"]
    assert render.html(found).count("Not counted: what memory, PCIe and the clock cost") == 1
    assert cpu_page.page(whole()["cpu"])["notes"] == []


def test_real_run_is_not_called_simulated() -> None:
    """The report on a card has the same plots without that word."""
    tree = report(met("a", cpu=made.document(made.streams(count=1), simulated=False)), simulated=False)
    page = render.html(tree)
    assert "SIMULATED" not in page and "<b>a card</b>" in page and "published by others" in page


def test_times_of_a_simulated_card_are_not_shown(sim: dict[str, Any], real: dict[str, Any]) -> None:
    """Of a simulated card page and terminal show what was counted; what was timed stays in the JSON."""
    timed = [one for one in sim["cpu"]["settings"] if one["method"] == "time"]
    page, lines = render.html(sim), text(sim)
    assert f"{len(timed)} settings were timed on a simulated card" in page
    assert "100 Gbit/s" not in page and "100 Gbit/s" in render.html(real)
    assert not [pair for one in timed for pair in one["compared"] if pair["words"] in lines]
    assert "instructions per byte" in page and "sender: offload is" in lines


def test_plots_can_be_read_aloud(real: dict[str, Any]) -> None:
    """Each plot has name, title and description; tables have its numbers."""
    html = render.html(real)
    page = Page(html)
    assert not page.depth
    for plot in re.findall(r'<svg class="plot".*?</svg>', html, re.S):
        assert 'role="img"' in plot and 'aria-label="' in plot and "<title>" in plot
        assert len(re.search(r"<desc>(.*?)</desc>", plot, re.S)[1].split(";")) > 2  # type: ignore[index]
    tables = "".join(re.findall(r'<table class="cpu">.*?</table>', html, re.S))
    for setting in real["cpu"]["settings"]:
        for arm in setting["arms"]:
            values = (
                [cost["mean"] for cost in arm["cost"]]
                if "cost" in arm
                else [arm["per_100g"]["mean"], arm["gbits"]]
            )
            assert all(f">{svg.figure(value)}" in tables for value in values), (setting, arm)
        assert all(
            cpu_page.held(pair["words"]) in tables for pair in setting["compared"] if "side" not in pair
        )


def test_hostile_words_stay_words() -> None:
    """No name in the evidence becomes a tag, and nothing is fetched or run."""
    rows = [made.row("sw", cipher=EVIL[:40], version=EVIL[:40], samples=[made.sample(1, 5)])]
    skipped = [{"arm": EVIL, "workload": EVIL, "reason": EVIL}, {"arm": ["x"]}, 3, {"reason": EVIL * 100}]
    many = {f"n{n}": {f"m{m}": "x" * 200 for m in range(50)} for n in range(50)}
    odd = {EVIL: EVIL, "tools": {EVIL: EVIL, "deep": {"x": {"y": 1}}}, "long": "x" * 10**5, "n": 10**400}
    about = {**odd, "l": [1], **many}
    hostile = made.document(rows, about=about, skipped=skipped, warnings=[EVIL, 3, None, ["x"], "y" * 10**5])
    tree = report(met(EVIL, cpu=hostile))
    html = render.html(tree)
    page = Page(html)
    assert not {tag for tag, _ in page.tags} & {"script", "img", "link", "iframe", "object", "form", "base"}
    assert not [key for _, attrs in page.tags for key in attrs if key.startswith("on") or key == "src"]
    assert all((attrs.get("href") or "#").startswith("#") for _, attrs in page.tags) and not page.depth
    assert "url(" not in html[html.index("<style>") : html.index("</style>")]
    assert len(json.dumps(tree["cpu"])) < 40_000 and "x" * 300 not in json.dumps(tree["cpu"])


def test_everything_lies_within_its_drawing(real: dict[str, Any]) -> None:
    """Bars start at 0 and end at their value, and no text runs out of the drawing."""
    page = cpu_page.page(real["cpu"])
    for plot in [*page["bars"], *page["cost"]]:
        for row in plot["rows"]:
            assert 0 < row["width"] <= cpu_plots.RIGHT - cpu_plots.LEFT
            assert row["text_x"] + 6 * len(row["text"]) <= WIDTH and row["y"] + 13 <= plot["foot"]
            assert (
                row["low"] is None or row["low"] <= cpu_plots.LEFT + row["width"] + 0.01 <= row["high"] + 0.02
            )
    for plot in page["lines"]:
        for line in plot["series"]:
            assert 253 + 5.6 * len(line["text"]) <= WIDTH
            assert all(cpu_plots.TOP <= at["y"] <= cpu_plots.TOP + cpu_plots.HEIGHT for at in line["points"])
        places = sorted(line["label_y"] for line in plot["series"])
        assert all(b - a >= 11.99 for a, b in zip(places, places[1:], strict=False))
    for plot in page["maps"]:
        assert all(cell["x"] + 44 <= plot["end"] for row in plot["rows"] for cell in row["cells"])


def test_bars_are_in_proportion() -> None:
    """A bar is as long as its value, on an axis from 0; a whisker beyond the axis is cut."""
    spreads = {"sw": (14.0, None, None), "hw": (7.0, 6.0, 8.0), "plain": (3.5, 0.5, 1e9)}
    rows = [(arm, dict(zip(("mean", "low", "high"), spread, strict=True))) for arm, spread in spreads.items()]
    drawn = {row["arm"]: row for row in cpu_plots.bars([("", rows)])["rows"]}
    assert drawn["hw"]["width"] == pytest.approx(drawn["sw"]["width"] / 2, abs=0.02)
    assert drawn["plain"]["width"] == pytest.approx(drawn["sw"]["width"] / 4, abs=0.02)
    assert drawn["plain"]["cut"] and drawn["plain"]["high"] == cpu_plots.RIGHT and not drawn["hw"]["cut"]


@pytest.mark.parametrize("value", [1e-30, 3e-5, 0.07, 0.999, 1, 9.99, 13.88, 93, 400, 12345, 7e8, 1e30])
def test_axis_reaches_any_value(value: float) -> None:
    """An axis has a few round ticks from 0 to the greatest value, whatever its size."""
    marks = svg.ticks(value)
    assert marks[0] == 0 and value * 0.998 <= marks[-1] <= 2.6 * value and 3 <= len(marks) <= 7
    assert len(svg.figure(value)) <= 8


def test_labels_move_apart_and_stay_inside() -> None:
    """Labels at one place are set below each other, in order, within the drawing."""
    assert svg.apart([50, 50, 90], 12, 0, 100) == [50, 62, 90]
    assert svg.apart([99, 98, 97], 12, 0, 100) == [100, 88, 76]
    assert svg.apart([], 12, 0, 100) == []


def test_a_sweep_shows_where_offload_pays(real: dict[str, Any]) -> None:
    """The map has a cell per size and connections, and a line where it pays."""
    points = {(one["arm"], one["streams"]): one for one in real["cpu"]["break_even"]}
    page = cpu_page.page(real["cpu"])
    ours = next(plot for plot in page["maps"] if not plot["published"] and plot["arm"] == ARMS["hw"])
    assert [row["name"] for row in ours["rows"]] == [
        "1 connection",
        *(f"{n} connections" for n in ("8", "64", "1,024")),
    ]
    for streams, row in zip((1, 8, 64, 1024), ours["rows"], strict=True):
        point = points["hw", streams]
        first = [cell["x"] for cell in row["cells"] if cell["state"] == "less"][:1]
        assert (row["edge"] is None) == (point["size"] is None)
        assert row["edge"] is None or row["edge"] >= first[0]
        assert row["words"] == point["words"]
    assert points["hw", 64]["size"] == 16 << 10 and points["hw", 64]["words"] == "pays from 16 KiB"
    shown = {
        plot["title"] for plot in page["bars"] if plot["title"].startswith("nginx") and not plot["published"]
    }
    assert shown and all("1 MiB" in title for title in shown)  # one size of the sweep, the published one


def test_break_even_wants_every_larger_size() -> None:
    """Offload pays from a size only if it pays at all larger ones too, with enough pairs."""

    def even(*gains: float, count: int = 5) -> Any:
        rows = []
        for n, gain in enumerate(gains):
            for arm, part in (("sw", 1.0), ("hw", gain)):
                samples = made.rounds(10 * part, 5, count, 0.002, seed=n)
                rows.append(made.row(arm, "nginx", size=4096 << n, samples=samples))
        return [(one["size"], one["words"]) for one in section(made.document(rows))["break_even"]]

    assert even(0.8, 1.2, 0.7) == [(16384, "pays from 16 KiB")]
    assert even(0.8, 0.7) == [(4096, "pays from 4 KiB, the smallest")]
    assert even(0.7, 1.2) == [(None, "not shown to pay at 8 KiB, the largest")]
    assert even(0.7, 0.7, count=4) == [(None, "not shown to pay at 8 KiB, the largest")]
    assert even(0.7) == []


def test_segmentation_and_close_are_settings_of_their_own() -> None:
    """What was measured without TSO, or with new connections, stands alone."""
    rows = [
        made.row(
            arm, "nginx", size=4096, segmentation=on, close=close, samples=[made.sample(1, 5, requests=300)]
        )
        for arm in ("sw", "hw")
        for on in (True, False)
        for close in (True, False)
    ]
    tree = report(met("a", cpu=made.document(rows, simulated=False)), simulated=False)
    page = render.html(tree)
    assert [(one["segmentation"], one["close"]) for one in tree["cpu"]["settings"]] == [
        (False, False),
        (False, True),
        (True, False),
        (True, True),
    ]
    assert (
        "a connection per request, TSO, GSO, GRO off" in page and ">Requests/s<" in page and ">150<" in page
    )
