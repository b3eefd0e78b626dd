"""The first pages of the report: verdict and why, promises by need, what to do; the rest is folded."""

from __future__ import annotations

import re
from typing import Any

import pytest

from offload.suite.report.render import front, render
from offload.suite.report.verdict import Gap
from tests.unit.suite.report import report_whole as made

PARTS = [
    "truth",
    "wire",
    "impairment",
    "crossed",
    "cpu",
    "migration",
    "counters",
    "phases",
    "tests",
    "spec",
    "recompute",
]


def promise(name: str, state: str = "kept", gap: str = "", **more: Any) -> dict[str, Any]:
    text = {"title": f"does {name}", "reason": f"{gap}: of {name}" if gap else ""}
    return {"id": name, "state": state, "gap": gap, "blocker": True, **text, **more}


def headings(page: str) -> list[str]:
    """The ids of the page's sections, in order."""
    return re.findall(r'<h2 id="([\w-]+)"', page)


def test_first_pages_come_first() -> None:
    """Verdict, promises, limitations and rig stand before the appendix, whose every part is folded."""
    page = render.html(made.document(worst="xfail"))
    found = headings(page)
    first, appendix = found[: found.index("appendix")], found[found.index("appendix") + 1 :]
    assert first == ["why", "replay", "promises", "limits", "rig"] and appendix == PARTS
    for part in PARTS:
        assert f'<summary><h2 id="{part}">' in page, part
    assert "<details open" not in page


def test_appendix_says_where_each_promise_comes_from() -> None:
    """Kernel document, RFC and OCP feature are next to each promise; an older report has no such part."""
    tree = made.document()
    (row,) = re.findall(r"<code>wire.frames</code></th>\n(<td><p>kernel.*)</tr>", render.html(tree))
    for part in (
        "kernel: Documentation/networking/tls-offload.rst 7.2:564-579",
        "RFC 9293",
        "OCP: checksum offload",
    ):
        assert f"<p>{part}" in row
    old = [{key: value for key, value in one.items() if key != "spec"} for one in tree["promises"]]
    assert "spec" not in headings(render.html(tree | {"promises": old}))


def test_failed_report_begins_with_the_defect() -> None:
    """What the card does wrong, the test and the line that repeats it stand above everything else."""
    tree = made.document(worst="fail")
    top = render.html(tree).partition("<nav")[0]
    defect = tree["defect"]
    places = [top.index(f"This card {defect['fault']}."), top.index(defect["seen"])]
    places += [
        top.index(f"Test <code>{defect['test']}</code>"),
        top.index("Reproduce it: <code>ktls-offload"),
    ]
    assert places == sorted(places) and "headline defect" in top
    assert defect["promise"] in top and tree["headline"] not in top


def test_report_of_an_earlier_version_keeps_its_headline() -> None:
    """A failed report without `defect` is shown with the headline that it has."""
    tree = {key: value for key, value in made.document(worst="fail").items() if key != "defect"}
    assert f'<p class="headline">{tree["headline"]}' in render.html(tree)


@pytest.mark.parametrize(
    ("verdict", "capping"),
    [
        ("certified", []),
        ("certified with limitations", ["limited", "open", "optional"]),
        ("incomplete", ["open"]),
        ("failed", ["broken"]),
        ("void", []),
    ],
)
def test_why_names_what_capped_the_verdict(verdict: str, capping: list[str]) -> None:
    """Each verdict is explained by the promises that led to it, and by no other."""
    promises = [promise("kept"), promise("limited", "limited")]
    promises += [promise("open", "not proved", Gap.UNCOVERED), promise("optional", "broken", blocker=False)]
    promises += [promise("nginx", "not proved", Gap.SKIPPED, blocker=False)]
    promises += [promise("broken", "broken")] if verdict == "failed" else []
    found = front.capped({"verdict": verdict, "promises": promises})
    assert [one["id"] for one in found] == capping


def test_not_proved_says_what_to_do() -> None:
    """Promises with the same reason share a row, which says what to install or how to run."""
    why = "nginx is not installed"
    promises = [promise("kept"), promise("a", "not proved", Gap.SKIPPED, why=why)]
    promises += [promise(name, "not proved", Gap.LEFT_OUT) for name in ("b", "c")]
    promises += [promise("d", "not proved", Gap.SKIPPED, why=why), promise("e", "not proved", Gap.UNCROSSED)]
    found = front.unproved({"promises": promises})
    assert [(row.why, row.promises) for row in found] == [
        (f"skipped: {why}", ["a", "d"]),
        (Gap.LEFT_OUT, ["b", "c"]),
        (f"{Gap.UNCROSSED}: of e", ["e"]),
    ]
    assert found[1].remedy == "Run the whole suite: omit --only." and set(front.REMEDIES) == set(Gap)


def test_skipped_promise_is_reported_on_the_page() -> None:
    """The page has the section, and its reason is a sentence."""
    page = render.html(made.document(worst="skip"))
    assert "unproved" in headings(page) and "skipped: the reason of this skip" in page
    assert front.REMEDIES[Gap.SKIPPED] in page and "the rig lacks" not in page


def test_required_promises_come_first() -> None:
    """Promises are listed by need; one whose failure blocks is optional and says so."""
    tree = made.document()
    groups = {name.partition(" ")[0]: [one["id"] for one in found] for name, found in front.by_need(tree)}
    assert "payload.tx" in groups["Required"] and "conditions.crossed" in groups["Optional"]
    assert sum(map(len, groups.values())) == len(tree["promises"])
    assert render.html(tree).index("Required (") < render.html(tree).index("Optional (")


def test_three_figures() -> None:
    """The figures are of the wire, the payload and the cost; a run without them says so."""
    wire, payload, cost = front.figures(made.document())
    assert "records" in wire.words and wire.value != "none" and "MiB" in payload.value
    assert cost.value.endswith(" %") and "instructions per byte" in cost.words
    nothing = [one.value for one in front.figures({})]
    assert nothing == ["none", "none", "\u2013"]


def test_digests_are_short_and_whole_on_hover() -> None:
    """A digest shows its first digits; the page has the whole one as a title."""
    digest, page = made.JUDGED["profile"]["sha256"], render.html(made.document())
    assert f"{digest[:12]}\u2026" in page and f">{digest}" not in page
    assert re.search(f'title="{digest}[^"]*"', page)
    assert render.shortened("commit " + "a" * 40) == "commit aaaaaaaaaaaa\u2026"
    assert render.shortened("bb662ac316bfde89") == "bb662ac316bfde89"
