"""When was the whole catalogue run, on which kernel, and was every card caught? One line of JSON per run."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tests.lib.catalogue import clean as catalogue_clean
from tests.lib.catalogue import record
from tests.lib.catalogue.rows import Step

FILE = catalogue_clean.FILE.with_name("catalogue-runs.jsonl")
BEGIN, END = "<!-- made by benchmarks.certifier, of catalogue-runs.jsonl: begin -->", "<!-- end of runs -->"
FIELDS = ("date", "commit", "kernel", "labs", "cards", "good", "wrong", "seconds")
Json = Mapping[str, Any]


def entry(
    steps: Sequence[Step], found: Mapping[str, Json], *, kernel: str, labs: int, seconds: float, code: str
) -> dict[str, Any]:
    """The line of a run: how many cards and good steps it had, which were not as they should be."""
    now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    cards = sum(step.row is not None for step in steps)
    wrong = [step.id for step in steps if step.id not in found or found[step.id]["problem"]]
    values = (now, code, kernel, labs, cards, len(steps) - cards, wrong, round(seconds))
    return dict(zip(FIELDS, values, strict=True))


def append(line: Json, path: Path | None = None) -> None:
    """Add a line to the record."""
    record.append(path or FILE, line)


def read(path: Path | None = None) -> list[dict[str, Any]]:
    """Every line. ConfigError with file and line for one that is none."""
    return record.read(path or FILE, FIELDS)


def table(lines: Sequence[Json]) -> str:
    """A row per run, in Markdown."""
    out = ["| when | commit | kernel | cards | good cards between | not as they should be | labs | s |"]
    out += ["|---|---|---|---|---|---|---|---|"]
    for line in lines:
        wrong = ", ".join(line["wrong"]) or "none"
        cells = (line["date"][:16], line["commit"], line["kernel"], line["cards"], line["good"], wrong)
        out.append(f"| {' | '.join(map(str, (*cells, line['labs'], line['seconds'])))} |")
    return "\n".join(out) + "\n"


def page(text: str, lines: Sequence[Json]) -> str:
    """The page with a new table. ValueError if it has no place for it."""
    return record.put(text, BEGIN, END, table(lines))
