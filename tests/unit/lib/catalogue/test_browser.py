"""The browser of the pictures: what is fetched for it, and what it tells of a page."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.debian.packages import INTERESTING, Package
from offload.suite.report.forms import pdf
from tests.lib.catalogue import browser

WIDE = "<main><p id='a' style='height:10px;margin:0'>x</p><pre style='width:900px'>wide</pre></main>"
BOX = "<main><section aria-labelledby='s'><div class='scroll' style='overflow:auto'><table class='t'><tr>"
BOX += "<td><div style='width:900px'>x</div></td></tr></table></div></section></main>"


def package(name: str, suite: str = "bookworm", version: str = "1", depends: str = "") -> Package:
    return Package(name, version, suite, depends, 1, 1)


ARCHIVE = (
    package(browser.SHELL, depends="libnss3 (>= 3.30), libc6, chromium-common (= 1)"),
    package(browser.SHELL, "bookworm-security", "2", "libnss3, libc6, chromium-common (= 2)"),
    package("chromium-common", "bookworm-security", "2", "x11-utils"),
    package("fonts-liberation"),
    package("libnss3", depends="libnspr4"),
    package("libnspr4"),
    package("libc6"),
)


def test_it_comes_with_what_is_not_installed() -> None:
    """The newest browser of a release, its fonts and the missing libraries are taken, nothing else."""
    found = {(one.name, one.version) for one in browser.choose(ARCHIVE, "bookworm", {"libc6"})}
    names = {("libnss3", "1"), ("libnspr4", "1"), ("fonts-liberation", "1")}
    assert found == {(browser.SHELL, "2"), ("chromium-common", "2")} | names
    assert browser.choose(ARCHIVE, "trixie", set()) == []
    for name in browser.WANTED:
        assert INTERESTING.search(f"Package: {name}\nVersion: 1\n".encode()), "the lists are read without it"


def test_one_that_is_there_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The installed browser comes first, then that of the cache; without both there is none."""
    monkeypatch.setattr(browser, "cache_root", lambda: tmp_path)
    monkeypatch.setattr(pdf, "browser", lambda: None)
    assert browser.had() == ""
    kept = tmp_path / browser.PLACE / "1" / browser.NAME
    kept.parent.mkdir(parents=True)
    kept.touch()
    (tmp_path / browser.PLACE / "current.json").write_text('{"folder": "1"}')
    assert browser.had() == browser.find() == str(kept)
    monkeypatch.setattr(pdf, "browser", lambda: "/usr/bin/chromium")
    assert browser.had() == "/usr/bin/chromium"


@pytest.mark.skipif(not browser.had(), reason=browser.ABSENT)
def test_it_sees_what_is_cut_off() -> None:
    """What is wider than the window is told, and a box that scrolls apart from it."""
    page = "<!DOCTYPE html><body style='margin:0'>{}</body>"
    cases = [(page.format(WIDE), 400), (page.format(BOX), 400), (page.format(WIDE), 901)]
    cut, box, roomy = browser.look(browser.had(), *cases)
    assert cut["wide"] == ["PRE : wide"] and cut["at"] == {"a": [0, 10]} and cut["width"] == 900
    assert box["wide"] == [] and box["scrolls"] == ["t of s"] and box["width"] == 400
    assert roomy["wide"] == [] and roomy["width"] == 901, "each page has a window of its own"
