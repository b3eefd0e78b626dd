"""The report as files: canonical JSON that fits its schema, and a page that is safe, whole and readable."""

import json
from html.parser import HTMLParser
from typing import Any

import jsonschema
import pytest

from offload.card.profile import find
from offload.suite.report import facts
from offload.suite.report.criteria import load
from offload.suite.report.document import build
from offload.suite.report.events import Log
from offload.suite.report.render import render
from offload.suite.report.render.summary import text
from tests.lib.rig.schemas import checker, schema

SCHEMA = schema("report")
EVIL = "<script>alert(1)</script><img src=//evil.example/x onerror=alert(1)>\"'\x1b[2J"


def document(outcome: str = "pass", name: str = "test_a", simulated: bool = True) -> dict[str, Any]:
    """A report on a run of one test whose every text is `name`."""
    evidence = {"counters": {name: 5, "still": 0}, name: name, "n": 1234567, "offloaded_bytes_percent": 99.5}
    test = {"id": name, "promise": "counters.move-when-on", "cell": None, "outcome": outcome, "seconds": 1.25}
    events: list[dict[str, Any]] = [
        {"event": "phase", "name": name, "seconds": 3.5},
        {
            "event": "run-start",
            "rig": {name: name},
            "profile": "nicsim",
            "simulated": simulated,
            "kernel": name,
        },
        {"event": "plan", "tests": [{"id": name, "promise": "counters.move-when-on"}], "deselected": []},
        {"event": "test", "reason": name, "details": name, "evidence": evidence, **test},
        {"event": "run-end", "exit": 0 if outcome == "pass" else 1, "seconds": 1.5},
    ]
    stamped = [event | {"seq": seq, "time": "2026-01-02T03:04:05.678Z"} for seq, event in enumerate(events)]
    return build(Log(stamped, sha256="a" * 64), load(), facts.of(find("nicsim")))


class Page(HTMLParser):
    """What the page is made of: tags with attributes, text."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.depth: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "use", "path", "rect", "circle", "br"):
            self.depth.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.depth.pop() == tag, f"{tag} is closed where it was not open"

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("outcome", ["pass", "fail", "xfail", "skip", "error"])
def test_document_fits_its_schema(outcome: str) -> None:
    """report.json is what its schema says, whatever happened."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    checker("report").validate(document(outcome))
    checker("report").validate(document(outcome, EVIL))
    assert {"verdict", "simulated", "profile", "rig", "kernel"} <= document().keys()


def test_empty_run_fits_too() -> None:
    """A run that wrote nothing at all has a report: void."""
    empty = build(Log([], sha256="a" * 64), load(), facts.of(find("nicsim")))
    checker("report").validate(empty)
    assert empty["verdict"] == "void" and "void" in Page(render.html(empty)).text


def test_time_of_a_run_that_broke_off_is_not_the_whole() -> None:
    """Without its last phase a run's phases are not how long it took: boot alone read as all of it."""
    assert "did not come to its end" in Page(render.html(document("pass"))).text
    assert "whole run 3.5 s" in Page(render.html(document("pass", "tests"))).text


def test_canonical_json_is_stable() -> None:
    """The same content is the same bytes, in whatever order it was put together."""
    tree = document()
    turned = {key: tree[key] for key in reversed(tree)}
    assert render.canonical(tree) == render.canonical(turned)
    assert render.canonical(json.loads(render.canonical(tree))) == render.canonical(tree)
    assert render.canonical({"b": 1.5, "a": "\u00e9"}) == '{\n "a": "\u00e9",\n "b": 1.5\n}\n'.encode()


def test_page_has_landmarks_and_table_headers() -> None:
    """The page can be read aloud: language, landmarks, labelled sections, header cells."""
    page = Page(render.html(document("fail")))
    names = [tag for tag, _ in page.tags]
    assert {"header", "main", "footer", "title", "caption"} <= set(names) and not page.depth
    assert dict(page.tags)["html"] == {"lang": "en"} and names.count("main") == names.count("h1") == 1
    assert all(
        attrs.get("scope") in ("row", "col", "rowgroup", "colgroup")
        for tag, attrs in page.tags
        if tag == "th"
    )
    ids = {attrs.get("id") for _, attrs in page.tags}
    assert all(attrs.get("aria-labelledby") in ids for tag, attrs in page.tags if tag == "section")
    shapes = [attrs for tag, attrs in page.tags if tag == "svg" and "aria-hidden" not in attrs]
    assert all(attrs.get("aria-label") and attrs.get("role") == "img" for attrs in shapes)


def test_no_character_turns_the_page_round() -> None:
    """What turns the order of letters, or is none, is shown as one that is no letter."""
    odd = "\u202edeifitrec\u2066\x00\x1b\x9b\x7f"
    made = render.html(document("fail", odd) | {"headline": odd})
    assert "\ufffddeifitrec\ufffd\ufffd\ufffd\ufffd\ufffd" in made
    assert not set("\u202e\u2066\x00\x1b\x9b\x7f") & set(made)
    assert "t\u00e9st\n\t\u05d0" in render.html(document("fail", "t\u00e9st\n\t\u05d0"))


@pytest.mark.parametrize("name", ["test_a", EVIL])
@pytest.mark.parametrize("outcome", ["pass", "fail", "xfail", "error"])
def test_page_asks_nobody_and_runs_nothing(name: str, outcome: str) -> None:
    """No text from a test, a counter or the rig becomes a tag, and nothing is fetched."""
    page = render.html(document(outcome, name))
    found = Page(page)
    assert not {tag for tag, _ in found.tags} & {"script", "img", "link", "iframe", "object", "form", "base"}
    for _, attrs in found.tags:
        assert not any(key.startswith("on") or key == "src" for key in attrs)
        assert all((value or "#").startswith("#") for key, value in attrs.items() if key == "href")
    style = page[page.index("<style>") : page.index("</style>")]
    assert "url(" not in style and "@import" not in style and "evil" not in style


@pytest.mark.parametrize("simulated", [True, False])
def test_simulated_is_plain(simulated: bool) -> None:
    """A simulated run says so in title, banner and on every printed page; a real one never."""
    tree = document(simulated=simulated)
    page = render.html(tree)
    assert ("SIMULATED" in Page(page).text) is simulated
    assert ("@top-center" in page, 'class="watermark"' in page) == (simulated, simulated)
    assert ("SIMULATED" in text(tree)) is simulated


def test_state_is_word_and_shape() -> None:
    """No state is told by color alone: each badge has its word and its shape."""
    page = Page(render.html(document("fail")))
    badges = [attrs for tag, attrs in page.tags if tag == "span" and "badge" in str(attrs.get("class"))]
    shapes = [attrs for tag, attrs in page.tags if tag == "use"]
    assert len(shapes) == len(badges) + 1 and "broken" in page.text and "not proved" in page.text


def test_summary_puts_failures_before_promises() -> None:
    """The terminal says verdict, failures, promises, time; and nothing steers it."""
    lines = text(document("fail", EVIL), color=False)
    places = [lines.index(word) for word in ("verdict: FAILED", "failures:", "promises:", "time:")]
    assert places == sorted(places) and "\x1b" not in lines
    assert "\x1b[1;31mFAILED" in text(document("fail"), color=True)


def test_summary_has_the_whole_command_that_repeats_a_scenario() -> None:
    """A command that is cut cannot be copied; the words before it are wrapped, and end."""
    line = ",".join(f"name{number}=value" for number in range(30))
    why = f"{'records leave in plaintext: ' * 30}; repeat it: certify --scenario {line} (found as another)"
    shown = text(document("fail", why), width=80).splitlines()
    assert f"        repeat it: certify --scenario {line}" in shown
    at = shown.index("failures:") + 2
    assert shown[at + 7].endswith("...") and all("plaintext" in one for one in shown[at : at + 8])
    assert max(map(len, shown[at : at + 8])) <= 80


def test_summary_has_the_whole_of_what_is_known() -> None:
    """A limitation limits the certificate: no word of it is cut, on a narrow terminal either."""
    words = " ".join(f"word{number}" for number in range(40))
    known = [{"id": "a-limit", "message": words}]
    shown = text(document() | {"limitations": known, "notes": known}, width=60)
    assert " ".join(shown.split()).count(f"a-limit: {words}") == 2
    assert max(len(line) for line in shown.splitlines() if "word" in line) <= 60


def test_summary_of_a_part_ends_in_one_line_for_the_rest() -> None:
    """Promises whose tests were not part of the run (--only) share one line, and no `also:` names them."""
    found = document("pass")
    shown = text(found)
    unrun = [p for p in found["promises"] if p["state"] == "not proved" and not p["tests"]]
    assert len(unrun) > 20
    assert f"{len(unrun)} more promises, whose tests were not part of this run" in shown
    also = [line for line in shown.splitlines() if line.startswith("  also:")]
    assert not [p for p in unrun if p["title"] in shown or any(p["id"] in line for line in also)]
