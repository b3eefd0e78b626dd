"""The documentation: pages of a readable size and grade, and a site without a broken link."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import textstat

from offload.cli.main import whole
from offload.cli.tree import Command
from tests.lib.catalogue import example_runs

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
MADE = {"cards.md", "promises.md", "reasons.md", "errata.md", "bad-nics.md"}  # by programs, from data
EASY = (ROOT / "README.md", *DOCS.rglob("getting-started.md"))
GONE = ("no-such-page", "no-such-heading", "no-such-file")
BROKEN = f"[page]({GONE[0]}.md) [heading](#{GONE[1]}) [file](../native/{GONE[2]}.c)\n"


def prose(text: str) -> str:
    """The sentences of a page: no code, tables, headings, pictures or addresses of links."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)
    text = re.sub(r"^(?:\||#|!\[|    ).*$", "", text, flags=re.M)
    text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text)
    return re.sub(r"[*`_]", "", re.sub(r"^(?:[-*]|\d+\.) ", "\n", text, flags=re.M))


def built(root: Path, site: Path) -> subprocess.CompletedProcess[str]:
    """What `make docs` types, elsewhere."""
    typed = re.search(r"bin/mkdocs (.*)", (ROOT / "Makefile").read_text())
    assert typed
    argv = [sys.executable, "-m", "mkdocs", *typed[1].split(), "--site-dir", str(site)]
    env = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    return subprocess.run(argv, cwd=root, env=env, capture_output=True, text=True, check=False)


def small(root: Path, page: str) -> Path:
    """A site of one page, by the settings of the real one, in a repository of its own."""
    settings = (ROOT / "mkdocs.yml").read_text().partition("\nnav:")[0]
    for name, text in {"mkdocs.yml": settings + "\n", "docs/index.md": page, "page.md": "# Code\n"}.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "ci").symlink_to(ROOT / "ci")
    return root


def test_readme_is_short() -> None:
    """The README has at most 120 lines."""
    assert len((ROOT / "README.md").read_text().splitlines()) <= 120


def test_no_page_is_long() -> None:
    """No page has more than 250 lines, but those that a program makes."""
    pages = [page for page in DOCS.rglob("*.md") if page.name not in MADE]
    long = [f"{p.name}: {n}" for p in pages if (n := len(p.read_text().splitlines())) > 250]
    assert len(pages) > 20 and not long


@pytest.mark.parametrize("page", EASY, ids=lambda page: page.name)
def test_first_pages_are_easy_to_read(page: Path) -> None:
    """README and getting-started need no more than ten years of school (Flesch-Kincaid)."""
    text = prose(page.read_text())
    assert len(EASY) == 2 and len(text.split()) > 100
    assert textstat.flesch_kincaid_grade(text) <= 10


@pytest.mark.parametrize("command", list(whole().walk()), ids=lambda command: command.words or "ktls-offload")
def test_help_is_easy_to_read(command: Command) -> None:
    """The sentences of each --help, those of its options included, need no more than ten years of school."""
    words = [command.description, *(f"{one.help}." for one in (*command.options, *command.arguments))]
    text = prose("\n\n".join([*words, re.sub(r"^exit codes:.*", "", command.epilog, flags=re.S)]))
    assert textstat.flesch_kincaid_grade(re.sub(r"^  .*$", "", text, flags=re.M)) <= 10


def test_hard_prose_is_seen() -> None:
    """The measure tells plain sentences from heavy ones, and sees through tables and code."""
    heavy = "Notwithstanding considerable organizational heterogeneity, interoperability necessitates " * 4
    assert textstat.flesch_kincaid_grade(prose(heavy)) > 10
    assert prose("# Head\n| a |\n```\ncode\n```\nSee [the page](x.md).\n").split() == ["See", "the", "page."]


def test_site_is_built(tmp_path: Path) -> None:
    """Every page is in the site, with search, and no link of it is broken."""
    done = built(ROOT, tmp_path / "site")
    assert done.returncode == 0, done.stderr
    pages = {page.relative_to(DOCS).with_suffix(".html") for page in DOCS.rglob("*.md")}
    assert not [page for page in pages if not (tmp_path / "site" / page).is_file()]
    assert (tmp_path / "site/search/search_index.js").is_file(), "search that needs no server"


def test_site_asks_nobody(tmp_path: Path) -> None:
    """A page of the site loads nothing from another host."""
    assert built(small(tmp_path, "# A\n"), tmp_path / "site").returncode == 0
    page = (tmp_path / "site/index.html").read_text()
    assert not re.findall(r"<(?:script|link|img)[^>]*(?:src|href)=\"(?:https?:)?//", page)


def test_link_to_code_leads_into_the_site(tmp_path: Path) -> None:
    """A page outside docs/ that a page links to is in the site."""
    done = built(small(tmp_path, "# A\n[code](../page.md#code)\n"), tmp_path / "site")
    assert done.returncode == 0, done.stderr
    assert "repo/page.html#code" in (tmp_path / "site/index.html").read_text()


def test_reports_of_make_example_are_in_the_site(tmp_path: Path) -> None:
    """A page that names them links them if they are there, and stays as it is if not."""
    here = small(tmp_path, "# A\n`build/example/certified` and `build/example/failed`\n")
    (tmp_path / "build/example/failed").mkdir(parents=True)
    (tmp_path / "build/example/failed/report.html").write_text("<title>failed</title>")
    done = built(here, tmp_path / "site")
    page = (tmp_path / "site/index.html").read_text()
    assert done.returncode == 0, done.stderr
    assert 'href="example/failed.html"><code>build/example/failed</code>' in page
    assert 'example/certified.html"' not in page and "<code>build/example/certified</code>" in page
    assert (tmp_path / "site/example/failed.html").read_text() == "<title>failed</title>"


def test_pictures_are_there() -> None:
    """Each screenshot that a page shows is there, light and dark, and `make pictures` writes it."""
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    shown = [
        page.parent / one for page in pages for one in re.findall(r' src(?:set)?="(.*?)"', page.read_text())
    ]
    assert len(shown) >= 4 and not [one for one in shown if not one.is_file()]
    made = {f"report-{name}-{look}.png" for name in example_runs.RUNS for look in ("light", "dark")}
    assert {one.name for one in shown} == made


def test_broken_link_fails(tmp_path: Path) -> None:
    """A link to no page, no heading or no file ends the build, and each is named."""
    done = built(small(tmp_path, "# A\n" + BROKEN), tmp_path / "site")
    assert done.returncode != 0
    assert not [one for one in GONE if one not in done.stderr], done.stderr
