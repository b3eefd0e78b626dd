"""What is shown of the catalogue: a table on the terminal, and the table in docs/certify/bad-nics.md."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lib.catalogue.rows import Row

PAGE = Path(__file__).parents[3] / "docs" / "certify" / "bad-nics.md"
BEGIN, END = "<!-- made by certify-the-certifier: begin -->", "<!-- end -->"
NODE = re.compile(r" \[(tests/\S+/)?test_\S+\.py::\S+\]$")
ODD = re.compile(r"\d+\.\d+\.\d+\.\d+:\d+ -> \d+\.\d+\.\d+\.\d+:\d+, |/\S+/(?=\w+\.c:\d)")
CUT = 160  # characters of evidence on the page; the events have all of it


def evidence(line: str) -> str:
    """The reason of a verdict without ports, folders and the test's id."""
    text = " ".join(ODD.sub("", NODE.sub("", line)).split())
    return text if len(text) <= CUT else text[: CUT - 3] + "..."


def line(found: Mapping[str, Any], title: str, width: int) -> str:
    """One line of the table on a terminal: defect, seconds, promise, evidence; or what is wrong."""
    by = f"{found['promise'] or found['word']}: {evidence(found['line'])}" if found["line"] else "passes"
    mark, said = ("FAILED", found["problem"]) if found["problem"] else ("ok", by)
    return f"{mark:6} {found['seconds']:6.1f} s  {title:.58}: {said}"[:width]


def page(text: str, rows: Iterable[Row], found: Mapping[str, Mapping[str, Any]], mark: str = BEGIN) -> str:
    """The page with a new table: what was found, by id. ValueError if the page has no place for it."""
    head, begin, rest = text.partition(mark)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} has no line {mark} with {END} after it")
    return f"{head}{mark}\n{table(rows, found)}{END}{tail}"


def table(rows: Iterable[Row], found: Mapping[str, Mapping[str, Any]]) -> str:
    """The table in Markdown: one row per card."""
    lines = [
        "| the card | how this happens | knobs | named first | evidence | s |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        was = found[row.id]
        by = f"`{row.breaks}`" if row.breaks else {"void": "*void*", "good": "*nothing*"}[row.end]
        title = f"**{row.title}**" if row.security else row.title
        said = escaped(evidence(was["line"])) or "passes"
        cells = (f"{title}{on(row)}", row.story, f"`{row.knobs}`", by, said, f"{was['seconds']:.0f}")
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def on(row: Row) -> str:
    """Where a row is not like the others."""
    return "" if row.card == "connectx-6-dx" else f" (as {row.card})"


def escaped(text: str) -> str:
    """Text as Markdown shows it unchanged."""
    return "".join(f"\\{char}" if char in "\\`*_<>|[]" else char for char in text)


def rows_of(text: str, mark: str = BEGIN) -> Sequence[Sequence[str]]:
    """The cells of the table that a page has now."""
    inside = text.partition(mark)[2].partition(END)[0]
    rows = [line for line in inside.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in rows[1:]]
