"""The report as files: canonical JSON, and one self-contained HTML page made from it."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined, UndefinedError

from offload.paths import PACKAGE
from offload.suite.report import impairment, judged, known, timing, wire
from offload.suite.report.cpu import page as cpu_page
from offload.suite.report.cpu import words
from offload.suite.report.events import OUTCOMES
from offload.suite.report.former import command
from offload.suite.report.render import crossed_page, front, lossplot, migration_page
from offload.suite.report.trust.kept import Kept

HERE = "DIRECTORY-OF-THIS-REPORT"
# controls, and what turns the order of letters: no name of a card changes the words next to it
ODD = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
DIGEST = re.compile(r"\b([0-9a-f]{12})[0-9a-f]{28,52}\b")
SLOWEST = 15  # tests whose times the page shows
TEMPLATES = PACKAGE / "suite/report/render/templates"


def canonical(document: Mapping[str, Any]) -> bytes:
    """Return the document as JSON, the same bytes for the same content: sorted keys, UTF-8."""
    text = json.dumps(document, sort_keys=True, ensure_ascii=False, allow_nan=False, indent=1)
    return text.encode("utf-8", "backslashreplace") + b"\n"


@cache
def _room() -> Environment:
    """The templates with their filters, read once."""
    room = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    room.filters.update(number=number, duration=duration, short=short_name, case=case_name)
    room.filters.update(size=size, label=wire.label, wire=wire.words, question=known.question)
    room.filters.update(cpu_page.FILTERS, shortened=shortened)
    room.filters["words"] = impairment.words
    room.filters["engine"] = {"core": "native core", "python": "Python oracle"}.get
    return room


def html(document: Mapping[str, Any], kept: Sequence[Kept] = ()) -> str:
    """Return the document as one HTML page: no script, no request, everything in it escaped.

    `kept`: the files of its folder, which the page names with their digests.
    """
    return page(
        "report.html",
        r=document,
        kept=kept,
        figures=front.figures(document),
        capped=front.capped(document),
        by_need=front.by_need(document),
        unproved=front.unproved(document),
        gists=gists(document),
        groups=groups(document),
        bad=[test for test in document["tests"] if test["outcome"] in ("fail", "error")],
        table=table(document),
        wire=wire_section(document),
        met=document.get("impairment", {}),
        panels=lossplot.panels(document.get("impairment", {}).get("loss", [])),
        mark=words.MARK,
        cpu=cpu_page.page(document.get("cpu", {})),
        crossed=crossed_page.page(document.get("crossed", {})),
        moved=migration_page.page(document.get("migration", {})),
        judged=judged.rows(document),
        again=lambda test: command(HERE, test) if document["simulated"] else "",
        bars=waterfall(document["phases"]),
        slowest=timing.rows(document, SLOWEST),
        spent_kinds=timing.COLUMNS,
        strip=strip(document["counts"]),
        counted=[(test, counters(test)) for test in document["tests"] if counters(test)],
    )


def page(name: str, **parts: Any) -> str:
    """Return another page, by the name of its template: everything in it is escaped as in the report.

    KeyError for a document that lacks a part.
    """
    try:
        return ODD.sub("\ufffd", _room().get_template(name).render(**parts))
    except UndefinedError as exc:
        raise KeyError(str(exc)) from None


def groups(document: Mapping[str, Any]) -> list[tuple[Any, list[Any]]]:
    """Return the tests by promise, in the order of the promises; last those of no promise that we know."""
    known = {promise["id"]: promise for promise in document["promises"]}
    found = [(p, [t for t in document["tests"] if t["promise"] == name]) for name, p in known.items()]
    found.append((None, [test for test in document["tests"] if test["promise"] not in known]))
    return [(promise, tests) for promise, tests in found if tests]


def table(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the truth table as a grid: a column per direction, a row per version and cipher."""
    columns = list(dict.fromkeys(cell["direction"] for cell in document["cells"]))
    rows: dict[tuple[str, str], dict[str, Any]] = {}
    for cell in document["cells"]:
        rows.setdefault((cell["version"], cell["cipher"]), {})[cell["direction"]] = cell
    return {"columns": columns, "rows": rows}


def wire_section(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the proofs of the wire: over all, and rows with their findings; empty for an old report."""
    rows = document.get("wire", [])
    said = [
        [(name, p) for name, p in row["proofs"].items() if p["difference"] or p["reason"]] for row in rows
    ]
    return {"totals": wire.totals(rows), "rows": list(zip(rows, said, strict=True))} if rows else {}


def gists(document: Mapping[str, Any]) -> dict[str, str]:
    """Return what each folded part of the appendix holds, in a phrase."""
    states = Counter(cell["state"] for cell in document["cells"])
    records = wire.totals(document.get("wire", []))["B"]["records"]
    took = sum(phase["seconds"] for phase in document["phases"])
    scenarios = document.get("crossed", {}).get("scenarios", {})
    specified = sum("spec" in promise for promise in document["promises"])
    return {
        "truth": ", ".join(f"{count} {state}" for state, count in states.items()),
        "wire": f"{number(records)} records compared",
        "impairment": f"{len(document.get('impairment', {}).get('cases', []))} tests",
        "crossed": f"{scenarios.get('passed', 0)} of {scenarios.get('planned', 0)} scenarios passed",
        "cpu": "what offload saves",
        "counters": "what each test moved",
        "time": f"{duration(took)} in all",
        "tests": f"{len(document['tests'])} tests",
        "files": "each with its digest",
        "spec": f"{specified} promises" if specified else "",
    }


def shortened(text: str) -> str:
    """Return text with every digest in it cut to its first digits; the page shows the whole one on hover."""
    return DIGEST.sub("\\1\u2026", str(text))


def waterfall(phases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the phases as bars: start and width in percent of the whole, at least a visible sliver."""
    total = sum(phase["seconds"] for phase in phases) or 1.0
    bars, begin = [], 0.0
    for phase in phases:
        share = 100 * phase["seconds"] / total
        bars.append(phase | {"x": round(begin, 2), "width": round(max(share, 0.4), 2), "share": share})
        begin += share
    return bars


def strip(counts: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the outcomes as parts of one bar, in percent; empty ones left out."""
    total = sum(counts.values()) or 1
    parts, begin = [], 0.0
    for word in OUTCOMES:
        if count := counts[word]:
            parts.append(
                {"word": word, "count": count, "x": round(begin, 2), "width": round(100 * count / total, 2)}
            )
            begin += 100 * count / total
    return parts


def counters(test: Mapping[str, Any]) -> dict[str, Any]:
    """Return the counter differences among a test's evidence: those that moved, and how many stood still."""
    found = test["evidence"].get("counters")
    if not isinstance(found, dict) or not found:
        return {}
    moved = {name: value for name, value in found.items() if value != 0}
    return {"moved": moved, "still": len(found) - len(moved)}


def number(value: Any) -> str:
    """Return a number with commas between thousands, anything else as short text."""
    if isinstance(value, int) and not isinstance(value, bool):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3f}".rstrip("0").rstrip(".")
    tree = isinstance(value, dict | list)
    text = json.dumps(value, ensure_ascii=False, sort_keys=True) if tree else str(value)
    return text if len(text) <= 160 else text[:157] + "..."


def size(count: int) -> str:
    """Return bytes with their unit, which does not part from the number."""
    return wire.size(count).replace(" ", "\u00a0")


def duration(seconds: float) -> str:
    """Return seconds for a person."""
    if seconds < 100:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02} s"


def short_name(node: str) -> str:
    """Return a test's name without the folders."""
    return node.rsplit("/", 1)[-1]


def case_name(node: str) -> str:
    """Return a test's name without the file."""
    return node.rpartition("::")[2]
