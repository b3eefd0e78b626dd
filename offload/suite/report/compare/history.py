"""How results went over time, per bench (NIC, kernel, firmware): verdicts, promises, figures."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from offload.suite.report.compare.diff import spread
from offload.suite.report.compare.history_store import ask
from offload.suite.report.render.summary import clean

SCHEMA = "ktls-offload/history/1"
RECENT = 60  # runs of a bench that are looked at one by one; all are counted
BENCHES = 200
NUMBERS = re.compile(r"([0-9]{1,18})")
LETTERS = {"certified": "C", "certified with limitations": "L", "incomplete": "I", "failed": "F", "void": "V"}
BENCH = ("card", "kernel", "firmware", "simulated")


def history(store: sqlite3.Connection, wanted: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Return the history by bench, the one that ran last first; `wanted`: a part of card, kernel, firmware.

    It takes one query for all benches, and three for each that is shown, for any number of results.
    """
    asked = {name: part for name, part in (wanted or {}).items() if part}
    where = " AND ".join(f"instr(lower({name}), lower(?)) > 0" for name in asked) or "1"
    rows = ask(store, benches_query(where), tuple(asked.values()))
    return {
        "schema": SCHEMA,
        "results": sum(row[4] for row in rows),
        "left_out": max(len(rows) - BENCHES, 0),
        "benches": [_bench(store, row) for row in rows[:BENCHES]],
    }


def benches_query(where: str = "1") -> str:
    """Return the query for all benches; it reads the index alone."""
    counts = ", ".join(f"SUM(verdict = '{word}')" for word in LETTERS)
    keys = ", ".join(BENCH)
    return (
        f"SELECT {keys}, COUNT(*), MIN(finished), MAX(finished), {counts} FROM result WHERE {where}"
        f" GROUP BY {keys} ORDER BY MAX(finished) DESC, {keys}"
    )


RUNS = f"""SELECT id, finished, verdict, headline, place FROM result
    WHERE card = ? AND kernel = ? AND firmware = ? AND simulated = ? ORDER BY finished DESC LIMIT {RECENT}"""


def rows_query(table: str, columns: str, count: int) -> str:
    """Return the query for what `count` results have in a table, which it reads by its key."""
    return f"SELECT result, {columns} FROM {table} WHERE result IN ({', '.join('?' * count)})"


def _bench(store: sqlite3.Connection, row: Sequence[Any]) -> dict[str, Any]:
    runs = ask(store, RUNS, row[:4])[::-1]
    ids = [run[0] for run in runs]
    place = {number: at for at, number in enumerate(ids)}
    troubles: dict[str, list[str]] = {}
    for number, promise, state in ask(store, rows_query("trouble", "promise, state", len(ids)), ids):
        troubles.setdefault(str(promise), [""] * len(ids))[place[number]] = str(state)
    figures: dict[str, list[Any]] = {}
    for number, name, *ends in ask(store, rows_query("figure", "name, mean, low, high", len(ids)), ids):
        figures.setdefault(str(name), [None] * len(ids))[place[number]] = _point(ends)
    return {
        **dict(zip(BENCH, (*map(str, row[:3]), bool(row[3])), strict=True)),
        "runs": row[4],
        "first": str(row[5]),
        "last": str(row[6]),
        "verdicts": {word: count for word, count in zip(LETTERS, row[7:], strict=True) if count},
        "recent": [_run(run) for run in runs],
        "promises": [_promise(name, states) for name, states in sorted(troubles.items())],
        "figures": [
            {"name": name, "points": points} for name, points in sorted(figures.items(), key=_natural)
        ],
    }


def _natural(row: tuple[str, Any]) -> list[tuple[bool, int, str]]:
    """Order 2 connections before 10."""
    return [(n.isdecimal(), int(n) if n.isdecimal() else 0, n) for n in NUMBERS.split(row[0])]


def _run(run: Sequence[Any]) -> dict[str, str]:
    return dict(zip(("finished", "verdict", "headline", "place"), map(str, run[1:]), strict=True))


def _point(ends: Sequence[Any]) -> dict[str, float | None] | None:
    """Return one point of a figure; None for what a damaged file has in place of numbers."""
    if not isinstance(ends[0], float) or not all(isinstance(end, float | None) for end in ends):
        return None
    return dict(zip(("mean", "low", "high"), ends, strict=True))


def _promise(name: str, states: Sequence[str]) -> dict[str, Any]:
    """Return a promise that was not always kept: its state now, for how many runs, how often it changed."""
    same = next((n for n, state in enumerate(reversed(states)) if state != states[-1]), len(states))
    changed = sum(one != other for one, other in zip(states, states[1:], strict=False))
    return {"id": name, "states": list(states), "now": states[-1], "runs": same, "changed": changed}


def text(found: Mapping[str, Any], wrong: Sequence[tuple[str, str]] = ()) -> str:
    """Return the history for a terminal: a block per bench, verdicts oldest first."""
    count = len(found["benches"]) + found["left_out"]
    results, many = found["results"], "es" if count != 1 else ""
    lines = [f"{results:,} result{'s' if results != 1 else ''} of {count} bench{many}"]
    for bench in found["benches"]:
        lines += ["", *_block(bench)]
    lines += (
        ["", f"and {found['left_out']} more benches: choose with --nic, --kernel, --firmware"]
        if found["left_out"]
        else []
    )
    lines += ["", "not read:", *(f"  {path}: {why}" for path, why in wrong[:10])] if wrong else []
    lines += [f"  and {len(wrong) - 10} more"] if len(wrong) > 10 else []
    return "\n".join(clean(line) for line in lines) + "\n"


def title(bench: Mapping[str, Any]) -> str:
    """Return a bench in one phrase."""
    mark = " (SIMULATED)" if bench["simulated"] else ""
    firmware = f", firmware {bench['firmware']}" if bench["firmware"] else ""
    return f"{bench['card']}{mark}, kernel {bench['kernel'] or 'unknown'}{firmware}"


def _block(bench: Mapping[str, Any]) -> Iterator[str]:
    words = ", ".join(f"{count} {word}" for word, count in bench["verdicts"].items())
    yield title(bench)
    yield f"  {bench['first'][:10]} to {bench['last'][:10]}: {words}"
    strip = "".join(LETTERS.get(run["verdict"], "?") for run in bench["recent"])
    yield f"  {strip}  last: {bench['recent'][-1]['headline']}" if strip else "  no runs"
    for promise in bench["promises"]:
        yield from _said(promise, bench["recent"])
    for figure in bench["figures"]:
        points = [point for point in figure["points"] if point]
        if points:
            yield f"  {figure['name']}: {spread(points[0])} -> {spread(points[-1])} ({_runs(len(points))})"


def _said(promise: Mapping[str, Any], runs: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """Say of a promise what it is now and since when, and whether it comes and goes."""
    since = runs[len(runs) - promise["runs"]]["finished"][:10]
    often = f", changed {promise['changed']} times in {len(runs)} runs" if promise["changed"] > 2 else ""
    if promise["now"] or often:
        yield f"  {promise['id']}: {promise['now'] or 'kept'} since {since} ({_runs(promise['runs'])}){often}"


def _runs(count: int) -> str:
    return f"{count} run{'s' if count != 1 else ''}"


def as_json(found: Mapping[str, Any], wrong: Sequence[tuple[str, str]] = ()) -> str:
    """Return the history for programs."""
    said = [{"path": path, "why": why} for path, why in wrong]
    return json.dumps({**found, "not_read": said}, indent=1, sort_keys=True) + "\n"
