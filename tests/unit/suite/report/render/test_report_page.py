"""The page for every reader: aloud, by keyboard, in light and dark, on paper; whole, small and soon there."""

import hashlib
import json
import re
import time
from functools import cache
from pathlib import Path

import pytest

from offload.suite.measure.cpu.pairs import draws
from offload.suite.report import files
from offload.suite.report.render import render
from offload.suite.report.trust.kept import Kept
from tests.unit.page_check import contrast, problems, themes
from tests.unit.suite.report import report_whole as made
from tests.unit.suite.report.render.test_report_render import EVIL, SCHEMA, Page
from tests.unit.suite.report.render.test_report_render import document as small

STYLE = "".join((render.TEMPLATES / name).read_text() for name in ("style.css", "cpu.css"))
# text on ground, and shapes on ground; WCAG 2.2: 1.4.3 wants 4.5, 1.4.11 wants 3
TEXTS = [
    ("text", "bg"),
    ("soft", "bg"),
    ("text", "panel"),
    ("soft", "panel"),
    ("accent", "bg"),
    ("accent", "panel"),
    ("warn", "bg"),
    ("bad", "bg"),
    ("bg", "accent"),
    *((look, f"{look}-bg") for look in ("good", "bad", "warn", "calm", "void")),
]
SHAPES = [
    ("bar", "bg"),
    ("accent", "bg"),
    ("good", "bg"),
    ("bad", "bg"),
    ("warn", "bg"),
    ("soft", "bg"),
    ("void", "bg"),
]
FILES = [Kept("events.jsonl", 5, "a" * 64), Kept("captures/javascript:alert(1) & <b>.pcapng", 5, "b" * 64)]
BREAKS = {
    "no language": ('<html lang="en">', "<html>"),
    "2 h1": ("<h2", "<h1>x</h1><h2"),
    "h3 after h1": ('<h2 id="why">', "<h3>x</h3><h2 id='why'>"),
    "a table without caption": ("<caption>", "<i></i><caption>"),
    "a header cell without scope": ('<th scope="col">', "<th>"),
    "a picture without a name": ('role="img" aria-label=', 'role="img" title='),
    "is there 2 times": ('id="wire"', 'id="truth"'),
    "which is not there": ('href="#promises"', 'href="#promise"'),
    "a box that the keyboard cannot scroll": (' tabindex="0"', ""),
    "the first link does not skip ahead": ('class="skip-link"', ""),
    "a section without a name": ('<section aria-labelledby="rig">', "<section>"),
    "a link without words": (">Promises</a>", "></a>"),
    "an order of tabs": ('tabindex="0"', 'tabindex="3"'),
    "main is never closed": ("</main>", ""),
}


@pytest.mark.parametrize("worst", ["pass", "fail", "xfail", "skip", "error"])
def test_everyone_can_read_it(worst: str) -> None:
    """The page has landmarks, headings, captions, scopes and names, whatever it says."""
    assert problems(render.html(made.document(worst=worst), FILES)) == []
    assert problems(render.html(small(worst, EVIL))) == []


@cache
def short_page() -> str:
    """A page with every section, and few tests in it."""
    tree = made.document(worst="fail")
    kept = {test["promise"]: test for test in tree["tests"][:3]}
    promises = [promise for promise in tree["promises"] if promise["id"] in kept]
    page = render.html(tree | {"tests": [*kept.values()], "promises": promises}, FILES)
    assert problems(page) == []
    return page


@pytest.mark.parametrize("said", BREAKS)
def test_checker_finds(said: str) -> None:
    """The checker itself goes red for each thing that it looks at."""
    (old, new), page = BREAKS[said], short_page()
    assert old in page and any(said in one for one in problems(page.replace(old, new, 1))), said


@pytest.mark.parametrize("theme", ["light", "dark", "print"])
def test_colors_can_be_distinguished(theme: str) -> None:
    """Text and shapes stand out from their ground in light, in dark and on paper."""
    colors = themes(STYLE)[theme]
    weak = [(*pair, contrast(*(colors[name] for name in pair))) for pair in TEXTS]
    weak = [row for row in weak if row[2] < 4.5]
    shapes = [(*pair, contrast(*(colors[name] for name in pair))) for pair in SHAPES]
    assert weak == [] and [row for row in shapes if row[2] < 3] == []


def test_contrast_is_that_of_the_rule() -> None:
    """The contrast is computed as WCAG has it: black on white 21, its example of gray 4.54."""
    assert contrast("#000", "#ffffff") == pytest.approx(21) and contrast("#767676", "#fff") == pytest.approx(
        4.54, abs=0.005
    )


def test_every_color_is_a_named_one() -> None:
    """No color escapes the check: but for marks on paper, each is a name with its values."""
    names = set.intersection(*(set(colors) for colors in themes(STYLE).values()))
    rules = re.sub(r":root \{.*?\}", "", STYLE, flags=re.S)
    assert set(re.findall(r"var\(--([\w-]+)\)", rules)) <= names
    assert set(re.findall(r"#[0-9a-f]{3,8}\b", rules)) == {"#6b4200", "#444"}


def test_files_are_linked_by_digest() -> None:
    """Each file of the run is a link that stays in the folder, with size and digest."""
    page = Page(render.html(made.document(), FILES))
    links = [
        str(attrs["href"])
        for tag, attrs in page.tags
        if tag == "a" and not str(attrs["href"]).startswith("#")
    ]
    assert links == ["./events.jsonl", "./captures/javascript%3Aalert%281%29%20%26%20%3Cb%3E.pcapng"]
    titles = {attrs.get("title") for _, attrs in page.tags}
    assert {"a" * 64, "b" * 64} <= titles and "a" * 12 + "\u2026" in page.text and not page.depth


def test_folder_has_a_page_with_its_files(tmp_path: Path) -> None:
    """The page of a run names every file beside it but itself, by its whole digest."""
    folder = made.folder(tmp_path)
    text = (folder / "report.html").read_text()
    for path in folder.iterdir():
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        assert (digest in text) is (path.name != "report.html"), path.name


def test_page_allows_nothing_but_itself() -> None:
    """A browser is told to load and run nothing: no script, picture, font or frame."""
    page = Page(render.html(small()))
    (policy,) = [
        attrs["content"] for _, attrs in page.tags if attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"


def test_page_is_the_same_from_its_json() -> None:
    """The page that is made again from report.json is the page that the run made."""
    tree = made.document(worst="fail")
    again = json.loads(render.canonical(tree))
    assert render.html(tree, FILES) == render.html(again, FILES)


def test_full_run_is_small_and_soon_there(tmp_path: Path) -> None:
    """Every form of a full run takes less than 2 s of a processor in all; its page 1.5 MiB."""
    made.folder(tmp_path, 300)
    draws.cache_clear()
    began = time.process_time()
    tree = files.write(tmp_path)  # from the events: verdict, figures, and each form
    took = time.process_time() - began
    assert len(tree["tests"]) >= 300 and SCHEMA["title"] and tree["cpu"]["settings"]
    assert took < 2 and (tmp_path / "report.html").stat().st_size < 1.5 * (1 << 20)


def test_thousands_have_commas() -> None:
    """A number of the page looks as in the terminal: `8,524`, never with a thin space."""
    page = render.html(made.document())
    assert re.search(r">[^<]*\d,\d{3}\b", page) and not re.search("\\d[\u2009\u202f]\\d", page)
