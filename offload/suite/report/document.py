"""Everything a report says, as one plain tree: what report.json holds and the renderers show."""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from offload import __version__
from offload.suite.report import crossed, impairment, judged, migration, replay, wire
from offload.suite.report.cells import CellState
from offload.suite.report.cpu import section
from offload.suite.report.criteria import Criteria
from offload.suite.report.events import OUTCOMES, SCHEMA, Log
from offload.suite.report.facts import Facts
from offload.suite.report.known import read as known_bugs
from offload.suite.report.timing import spent_of
from offload.suite.report.verdict import PromiseState, Verdict, judge, limitation

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z\Z")


def build(log: Log, criteria: Criteria, facts: Facts) -> dict[str, Any]:
    """Return the report on a run; see schema/report-2.schema.json. A pure function."""
    verdict = judge(log, criteria, facts)
    results = log.results()
    tests = {event["id"]: event for event in results}
    times = [str(event.get("time")) for event in log.events if TIME.match(str(event.get("time")))] or [""]
    found = {
        "schema": SCHEMA,
        "tool": {"name": "ktls-offload", "version": __version__},
        "verdict": verdict.word,
        "headline": verdict.headline,
        "reasons": list(verdict.reasons),
        **({"defect": verdict.defect._asdict()} if verdict.defect else {}),
        **rig_of(log),
        "profile": facts.id,
        "card": {"name": facts.name, "vendor": facts.vendor, "driver": facts.driver},
        "promises": [_promise(state, tests) for state in verdict.promises],
        "cells": [_cell(cell) for cell in verdict.cells],
        "wire": wire.table(results, criteria, facts),
        "limitations": _limitations(verdict, facts),
        "counts": _counts(log),
        "tests": [_test(event, facts) for event in results],
        "phases": _phases(log),
        "started": times[0],
        "finished": times[-1],
        "digests": {"events": log.sha256, "criteria": criteria.sha256},
    }
    found |= (
        {"notes": [{"id": name, "message": what} for name, what in facts.notes.items()]}
        if facts.notes
        else {}
    )
    return found | _more(log, results, found)


def _more(log: Log, results: Sequence[Mapping[str, Any]], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the sections that only some runs have: a report of a run without them stays what it was."""
    met, again = impairment.section(results), replay.section(log, found["kernel"], found["rig"])
    measured = {
        name: part(results, found["simulated"])
        for name, part in (("cpu", section.section), ("migration", migration.section))
    }
    more = {
        "judged": judged.section(log, found["card"]["name"]),
        "crossed": crossed.section(log),
        "impairment": met if met["cases"] or met["loss"] else None,
        "replay": again,
        "memory": _memory(log),
        **measured,
    }
    return {name: part for name, part in more.items() if part}


def rig_of(log: Log) -> dict[str, Any]:
    """Return what the run stood on; a run that never said so counts as simulated, never as a real card."""
    found: dict[str, Any] = {"rig": {}, "kernel": "", "simulated": True}
    for event in log.events:
        if event["event"] in ("run-start", "rig"):
            rig = {str(key): str(value) for key, value in event["rig"].items()}
            named = bool(rig) or bool(event["kernel"])
            found = {
                "rig": found["rig"] | rig,
                "kernel": event["kernel"] or found["kernel"],
                "simulated": event["simulated"] if named else found["simulated"],
            }
    return found


def _promise(state: PromiseState, tests: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return one promise; `measured` is the worst value of each number that has a bar."""
    found: dict[str, Any] = {key: getattr(state.criterion, key) for key in ("id", "title", "blocker")}
    mine = [tests[name] for name in state.tests]
    measured: dict[str, Any] = {}
    for name, level in state.criterion.levels.items():
        values = [v for v in (test["evidence"].get(name) for test in mine) if type(v) in (int, float)]
        worst = min if level.min is not None else max
        if values:
            measured[name] = {"value": round(float(worst(values)), 3), "wanted": str(level)}
    if state.criterion.unproved != "blocks":
        found["unproved"] = state.criterion.unproved
    if state.why:
        found["why"] = state.why
    if spec := state.criterion.spec.tree():
        found["spec"] = spec
    found["passed"] = sum(test["outcome"] == "pass" for test in mine)
    return found | {
        "state": state.state.value,
        "gap": state.gap.value if state.gap else "",
        "reason": state.reason,
        "measured": measured,
        "tests": list(state.tests),
    }


def _cell(cell: CellState) -> dict[str, Any]:
    return dataclasses.asdict(cell) | {"tests": list(cell.tests)}


def _limitations(verdict: Verdict, facts: Facts) -> list[dict[str, Any]]:
    """Return the known limitations that the run met."""
    return [
        {"id": name, "message": facts.limitations[name], "tests": list(tests)}
        for name, tests in verdict.limitations.items()
    ]


def _counts(log: Log) -> dict[str, int]:
    words = Counter(event["outcome"] for event in log.events if event["event"] == "test")
    return {word: words[word] for word in OUTCOMES}


def _test(event: Mapping[str, Any], facts: Facts) -> dict[str, Any]:
    found = {key: event.get(key) for key in ("id", "promise", "cell", "outcome", "reason", "evidence")}
    limit = limitation(event, facts) if event["outcome"] == "xfail" else None
    details = str(event.get("details", ""))
    known = {"known_bugs": notes} if (notes := known_bugs(event)) else {}
    spent = {"spent": seconds} if (seconds := spent_of(event)) else {}
    return found | {"seconds": _seconds(event), "details": details, "limitation": limit} | spent | known


def _phases(log: Log) -> list[dict[str, Any]]:
    """Return the phases in order; the tests themselves are one, where `certify` did not time them."""
    found = [
        {"name": str(event["name"]), "seconds": _seconds(event)}
        for event in log.events
        if event["event"] == "phase"
    ]
    ends = [event for event in log.events if event["event"] == "run-end"]
    return found or [{"name": "tests", "seconds": _seconds(event)} for event in ends]


def _memory(log: Log) -> dict[str, int] | None:
    """Return the most memory that the run took at once, if it was counted."""
    seen = [event["peak"] for event in log.events if event["event"] == "memory" and event["peak"]]
    return {"peak": max(seen)} if seen else None


def _seconds(event: Mapping[str, Any]) -> float:
    return round(float(event["seconds"]), 3)
