"""Where a run's time went: the table of `certify --timing` and the flame graph timing.svg."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from html import escape
from typing import Any

from offload.suite.report.spent import KINDS

WIDTH, ROW, LEAST = 1200.0, 18, 0.4  # of the picture, in its units; what is narrower than LEAST is not drawn
COLORS = {
    "set-up": "#8da0cb",
    "switch": "#e78ac3",
    "traffic": "#66a61e",
    "wire proof": "#e6ab02",
    "rest": "#b3b3b3",
}
COLUMNS = (*KINDS, "guest", "waiting")


def rows(document: Mapping[str, Any], most: int | None = None) -> list[Mapping[str, Any]]:
    """Return the tests that say what they spent their time on, the longest first."""
    known = [test for test in document["tests"] if test.get("spent")]
    return sorted(known, key=lambda test: -float(test["seconds"]))[:most]


def totals(document: Mapping[str, Any]) -> dict[str, float]:
    """Return the seconds of all tests together, by column."""
    found = [test["spent"] for test in rows(document)]
    return {name: sum(spent.get(name, 0.0) for spent in found) for name in COLUMNS}


def text(document: Mapping[str, Any], most: int = 20) -> str:
    """Return the slowest tests and the sum of all, in seconds; '' for a run that did not note it."""
    found = rows(document)
    if not found:
        return ""
    head = "".join(f"{name:>11}" for name in ("seconds", *COLUMNS))
    whole = sum(float(test["seconds"]) for test in found)
    lines = [f"{head}  test", _row(whole, totals(document), f"all {len(found)} tests")]
    lines += [_row(test["seconds"], test["spent"], test["id"]) for test in found[:most]]
    return "\n".join(lines) + "\n"


def _row(seconds: float, spent: Mapping[str, float], name: str) -> str:
    cells = [f"{seconds:11.1f}", *(f"{spent[one]:11.1f}" if one in spent else " " * 11 for one in COLUMNS)]
    return f"{''.join(cells)}  {_plain(str(name))}"


@dataclass
class Box:
    """A part of the run: its seconds, and the parts of it."""

    name: str
    seconds: float
    color: str = "#fdbf6f"
    parts: list[Box] = field(default_factory=list)


def tree(document: Mapping[str, Any]) -> Box:
    """Return the run as phases, test files, tests and kinds; labs side by side add up."""
    files: dict[str, Box] = {}
    for test in document["tests"]:
        path, _, name = str(test["id"]).partition("::")
        spent = test.get("spent") or {}
        kinds = [Box(kind, spent[kind], COLORS[kind]) for kind in KINDS if spent.get(kind)]
        files.setdefault(path, Box(path, 0.0)).parts.append(Box(name, float(test["seconds"]), parts=kinds))
    for file in files.values():
        file.seconds = sum(test.seconds for test in file.parts)
    phases = [Box(p["name"], float(p["seconds"])) for p in document["phases"] if p["name"] != "tests"]
    tests = Box("tests", sum(file.seconds for file in files.values()), parts=list(files.values()))
    return Box("the run", sum(one.seconds for one in phases) + tests.seconds, parts=[*phases, tests])


def svg(document: Mapping[str, Any]) -> str:
    """Return the flame graph: width is time, each row the parts of the one above."""
    top, depth = tree(document), 5
    scale = WIDTH / top.seconds if top.seconds else 0.0
    drawn = "".join(_boxes(top, 0.0, 0, scale))
    size = f'viewBox="0 0 {WIDTH:g} {depth * ROW + 24}" font-family="sans-serif" font-size="11"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size}>\n{drawn}{_legend(depth * ROW + 8)}</svg>\n'


def _boxes(box: Box, left: float, level: int, scale: float) -> list[str]:
    """Return a part and, below it, its parts from left to right, the longest first."""
    width = box.seconds * scale
    if width < LEAST:
        return []
    found = [_rect(box, left, level * ROW, width)]
    for part in sorted(box.parts, key=lambda one: -one.seconds):
        found += _boxes(part, left, level + 1, scale)
        left += part.seconds * scale
    return found


def _rect(box: Box, left: float, top: int, width: float) -> str:
    """Return one rectangle, its whole name on hover and as much of it as there is room for."""
    name = escape(_plain(box.name))
    room = int(width / 6.2)
    short = box.name if len(box.name) <= room else box.name[: max(0, room - 1)] + "\u2026"
    label = f'<text x="{left + 3:.1f}" y="{top + 13}">{escape(_plain(short))}</text>' if room > 3 else ""
    shape = f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{ROW - 1}" fill="{box.color}"'
    return f"<g>{shape}/><title>{name}: {box.seconds:.1f} s</title>{label}</g>\n"


def _plain(name: str) -> str:
    return "".join(c if c.isprintable() else " " for c in name)


def _legend(top: int) -> str:
    """Return which color is what."""
    found, left = [], 0
    for kind, color in COLORS.items():
        found.append(f'<rect x="{left}" y="{top}" width="10" height="10" fill="{color}"/>')
        found.append(f'<text x="{left + 14}" y="{top + 10}">{kind}</text>')
        left += 30 + 7 * len(kind)
    return "".join(found)


def spent_of(event: Mapping[str, Any]) -> dict[str, float]:
    """Return what an event says of its test's time; what is no number of seconds is left out."""
    found = event.get("spent")
    return {
        str(kind): float(value)
        for kind, value in (found.items() if isinstance(found, dict) else ())
        if kind in COLUMNS and type(value) in (int, float) and 0 <= value < 1e9
    }
