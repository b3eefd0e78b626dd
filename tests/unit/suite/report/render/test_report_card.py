"""The picture of a report: well-formed, whole, plain about what it is, and readable on any ground."""

from __future__ import annotations

import re
from typing import Any
from xml.etree import ElementTree as ET

import pytest

from offload.errors import Refused
from offload.suite.report.forms import pdf
from offload.suite.report.render import card, render
from tests.lib.catalogue import browser
from tests.unit.page_check import contrast
from tests.unit.suite.report import report_whole as made
from tests.unit.suite.report.render.test_report_render import EVIL
from tests.unit.suite.report.render.test_report_render import document as small

STYLE = (render.TEMPLATES / "card.svg").read_text()
LOOKS = ("good", "bad", "warn", "calm", "void")


def words(tree: dict[str, Any]) -> str:
    """All text of the picture of a report."""
    root = ET.fromstring(card.svg(tree))
    texts = [node for node in root.iter() if node.tag.endswith(("}text", "}title"))]
    return " ".join("".join(node.itertext()) for node in texts)


@pytest.mark.parametrize("worst", ["pass", "fail", "xfail", "skip", "error"])
def test_picture_says_what_counts(worst: str) -> None:
    """Card, kernel, verdict, three figures and the whole digest are in it, whatever the verdict."""
    tree = made.document(worst=worst)
    said = words(tree)
    for part in (tree["card"]["name"], tree["kernel"], tree["digests"]["events"], tree["tool"]["version"]):
        assert part in said, part
    assert tree["verdict"] in said and "SIMULATED NIC" in said and "records" in said
    if worst == "fail":
        assert f"This card {tree['defect']['fault']}." in said


def test_real_card_is_not_called_simulated() -> None:
    """Only the picture of a simulated run says SIMULATED."""
    assert "SIMULATED" not in words(small(simulated=False)) and "SIMULATED" in words(small())


def test_hostile_words_stay_words() -> None:
    """No name becomes a tag or leaves its line, and nothing is fetched."""
    tree = small("fail", EVIL)
    tree |= {"card": {"name": EVIL * 5, "vendor": EVIL, "driver": EVIL * 9}, "headline": EVIL * 99}
    root = ET.fromstring(card.svg(tree))
    tags = {node.tag.rpartition("}")[2] for node in root.iter()}
    assert not tags & {"script", "img", "image", "foreignObject", "a"}
    assert all(
        key.rpartition("}")[2] != "href" or value.startswith("#")
        for node in root.iter()
        for key, value in node.attrib.items()
    )
    longest = max(len("".join(node.itertext())) for node in root.iter() if node.tag.endswith("}text"))
    assert longest <= 130 and "url(http" not in card.svg(tree)


def test_long_words_end_in_an_ellipsis() -> None:
    """What does not fit is cut, and says so."""
    assert card.lines("one two three", 9, 1) == ["one two \u2026"]
    assert card.lines("one two", 9, 2) == ["one two"] and card.lines("", 9, 2) == []


@pytest.mark.parametrize("dark", [False, True])
def test_text_stands_out_from_its_ground(dark: bool) -> None:
    """Text has a contrast of 4.5 at least, in light and in dark."""
    light, _, night = STYLE.partition("@media")
    rules = dict(re.findall(r"([\w. ]+?) \{ fill: (#\w+);", night if dark else light))
    rules |= {} if dark else {"text": "#16202a"}
    rules = {name.strip(): color for name, color in rules.items()}
    weak = [name for name in ("text", ".soft") if contrast(rules[name], rules[".ground"]) < 4.5]
    weak += [look for look in LOOKS if contrast(rules[f".{look}"], rules[f"rect.{look}"]) < 4.5]
    assert weak == []


def test_png_needs_chromium(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without Chromium a PNG is refused with what to do instead."""
    monkeypatch.setattr(pdf, "browser", lambda: None)
    with pytest.raises(Refused, match="a PNG needs Chromium.*\n.*--as card makes an SVG"):
        card.png(small())


@pytest.mark.skipif(not browser.had(), reason=browser.ABSENT)
def test_png_has_the_size_of_a_link_preview() -> None:
    """The PNG is 1200 by 630."""
    data = card.png(small(), browser.had())
    assert data.startswith(b"\x89PNG") and data[16:24] == (1200).to_bytes(4) + (630).to_bytes(4)
