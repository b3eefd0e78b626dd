"""MkDocs asks this while `make docs` builds the site: which files belong to it, and where does a link lead?

The reports of `make example` are in the site if they are there; the name of their folder becomes a link.

A page of docs/ may link to any file of the repository, as a forge shows it. The site has each such
file below `repo/`, pages as pages and all others as downloads. A broken link fails the build (--strict).
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.pages import Page

LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)")
FENCE = re.compile(r"\s*(```|~~~)")
UNLISTED = InclusionLevel.NOT_IN_NAV
EXAMPLE = re.compile(r"`build/(example/(?:certified|failed))`")
ITEM = re.compile(r"([*+-]|\d+\.) ")


def on_files(files: Files, config: MkDocsConfig, **_: Any) -> Files:
    """Add every file of the repository that a page links to, and those that it links to in turn."""
    for path in sorted((Path(config.docs_dir).parent / "build/example").glob("*/report.html")):
        uri = f"example/{path.parent.name}.html"
        files.append(File.generated(config, uri, abs_src_path=str(path), inclusion=UNLISTED))
    todo = [file for file in files if file.is_documentation_page()]
    while todo:
        page = todo.pop()
        for path in _links(page):
            uri = _uri(path, config)
            if path.is_file() and files.get_file_from_path(uri) is None:
                added = File.generated(config, uri, abs_src_path=str(path), inclusion=UNLISTED)
                files.append(added)
                todo += [added] if added.is_documentation_page() else []
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files, **_: Any) -> str:
    """Point each link at the site's copy, and put the blank line that MkDocs needs before lists."""
    here = Path(page.file.src_uri).parent

    def moved(found: re.Match[str]) -> str:
        return found[1] + os.path.relpath(_uri(_target(page.file, found[2]), config), here)

    def shown(found: re.Match[str]) -> str:
        uri = f"{found[1]}.html"
        there = files.get_file_from_path(uri) is not None
        return f"[{found[0]}]({os.path.relpath(uri, here)})" if there else found[0]

    return EXAMPLE.sub(shown, _spaced(LINK.sub(moved, markdown)))


def _links(file: File) -> list[Path]:
    """The files that a page links to."""
    return [_target(file, name) for _, name in LINK.findall(file.content_string)]


def _target(file: File, name: str) -> Path:
    """The file that a link means, as seen from where the page really is; of a folder its README.md."""
    path = Path(os.path.normpath(Path(str(file.abs_src_path)).parent / name))
    return path / "README.md" if path.is_dir() else path


def _uri(path: Path, config: MkDocsConfig) -> str:
    """Where the site has a file: pages of docs/ as they are, everything else below repo/."""
    docs = Path(config.docs_dir)
    if path.is_relative_to(docs):
        return path.relative_to(docs).as_posix()
    return (Path("repo") / os.path.relpath(path, docs.parent)).as_posix()


def _spaced(text: str) -> str:
    """The page with a blank line before each list that follows a paragraph, as forges do not need it."""
    lines: list[str] = []
    code = False
    for line in text.splitlines():
        code ^= bool(FENCE.match(line))
        before = lines[-1] if lines else ""
        if not code and ITEM.match(line) and before and not before.startswith(" ") and not ITEM.match(before):
            lines.append("")
        lines.append(line)
    return "\n".join(lines) + "\n"
