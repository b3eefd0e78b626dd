"""What became worse between two results: promises, cells and tests; figures with their intervals."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from offload.suite.report import judged
from offload.suite.report.cpu import words as cpu_words
from offload.suite.report.render.summary import clean
from offload.suite.report.render.svg import figure

SCHEMA = "ktls-offload/diff/1"
SAME, WORSE, LESS, VOID = 0, 1, 21, 22  # exit codes
# The better state has the higher number; absent ones do not count.
PROMISE = {"broken": 0, "limited": 2, "kept": 3}
CELL = {"failed": 0, "limited": 2, "sw expected": 3, "hw": 4}
TEST = {"fail": 0, "error": 1, "xfail": 2, "pass": 3}
GOOD = 3
KINDS = {"worse": "worse", "less": "no longer proved", "better": "better", "other": "changed"}
SHOWN = 12
LITTLE = 0.01  # part of a figure; counted instructions have intervals so narrow that any change leaves them


@dataclass(frozen=True)
class Change:
    """One promise, cell or test that is not as it was; `kind` as in KINDS, `why` in words of the new one."""

    what: str
    name: str
    old: str
    new: str
    kind: str
    why: str


@dataclass(frozen=True)
class Figure:
    """One figure of both results; `kind`: worse and better only where the intervals do not touch."""

    name: str
    old: Mapping[str, float | None]
    new: Mapping[str, float | None]
    kind: str


def compare(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is not the same in two reports. KeyError, TypeError if one of them is damaged."""
    changes = [*_promises(old, new), *_cells(old, new), *_tests(old, new)]
    return {
        "schema": SCHEMA,
        "old": _head(old),
        "new": _head(new),
        "differs": list(_differs(old, new)),
        "changes": [asdict(change) for change in changes],
        "figures": [asdict(found) for found in _figures(old, new)],
        "exit": _exit(old, new, changes),
    }


def _exit(old: Mapping[str, Any], new: Mapping[str, Any], changes: Sequence[Change]) -> int:
    """Return the exit code: a void result says nothing of the card, so nothing became worse or better."""
    kinds = {change.kind for change in changes if change.what != "test"}
    if "void" in (old["verdict"], new["verdict"]):
        return VOID
    return WORSE if "worse" in kinds else LESS if "less" in kinds else SAME


def _head(report: Mapping[str, Any]) -> dict[str, Any]:
    keys = ("verdict", "headline", "kernel", "simulated", "started")
    return {key: report[key] for key in keys} | {"card": report["card"]["name"]}


def _differs(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[str]:
    """Yield what the two stood on that is not the same; remarks in brackets are no difference."""
    for name in ("card", "kernel", "simulated", "tool", "profile"):
        then, now = (_short(report[name]) for report in (old, new))
        if then != now:
            yield f"{name}: {then} then, {now} now"
    for name in sorted(old["rig"].keys() | new["rig"].keys()):
        then, now = (str(report["rig"].get(name, "none")).partition(" (")[0] for report in (old, new))
        if then != now:
            yield f"{name}: {then} then, {now} now"
    by_then, by_now = (dict(judged.rows(report)) for report in (old, new))
    for name in sorted(by_then.keys() & by_now.keys()):
        if by_then[name] != by_now[name]:
            yield f"judged by a different {name}: {by_then[name][:16]} then, {by_now[name][:16]} now"
    if old["digests"]["criteria"] != new["digests"]["criteria"]:
        yield "criteria: the bars differ, which alone can change a promise's state"


def _short(value: Any) -> str:
    return str(value.get("version", value.get("name"))) if isinstance(value, Mapping) else str(value)


def _kind(order: Mapping[str, int], old: str, new: str) -> str:
    """Return how a state changed. From a state that is in no order (not proved, skip, none) nobody knew."""
    if old in order and new in order:
        return "worse" if order[new] < order[old] else "better"
    if old in order:
        return "less" if order[old] > 0 else "other"
    bound = order.get(new, 1)
    return "worse" if bound == 0 else "better" if bound >= GOOD else "other"


def _promises(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    then, now = ({row["id"]: row for row in report["promises"]} for report in (old, new))
    yield from _rows("promise", PROMISE, then, now)


def _cells(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    then, now = ({_cell(cell): cell for cell in report["cells"]} for report in (old, new))
    yield from _rows("cell", CELL, then, now)


def _cell(cell: Mapping[str, Any]) -> str:
    return f"{cell['direction']} TLS {cell['version']} {cell['cipher']}"


def _tests(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Change]:
    then, now = (
        {test["id"]: {"state": test["outcome"], "reason": test["reason"]} for test in report["tests"]}
        for report in (old, new)
    )
    yield from _rows("test", TEST, then, now)


def _rows(
    what: str, order: Mapping[str, int], then: Mapping[str, Any], now: Mapping[str, Any]
) -> Iterator[Change]:
    """Yield what changed its state, in the order of the new result; what is gone comes last."""
    for name in [*now, *(name for name in then if name not in now)]:
        old, new = (str(rows[name]["state"]) if name in rows else "none" for rows in (then, now))
        if old != new:
            why = now.get(name, {}).get("reason") or ("" if name in now else "not in the new result")
            yield Change(what, name, old, new, _kind(order, old, new), str(why))


def _figures(old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Figure]:
    """Yield the figures that both results have."""
    then, now = figures(old), figures(new)
    for name, after in now.items():
        if name in then:
            yield Figure(name, then[name], after, _moved(then[name], after))


def figures(report: Mapping[str, Any]) -> dict[str, dict[str, float | None]]:
    """Return figures by name: what has a bar, and cores of one arm to another (less is better)."""
    found: dict[str, dict[str, float | None]] = {}
    for promise in report["promises"]:
        for name, row in promise["measured"].items():
            found[f"{promise['id']}: {name}"] = {"mean": row["value"], "low": None, "high": None}
    for setting in report.get("cpu", {"settings": []})["settings"]:
        for pair in setting.get("compared", ()):
            if pair["ratio"] is not None:
                what = f"instructions, {pair['side']}" if "side" in pair else "cores"
                name = f"{what}, {pair['arm']} to {pair['base']}: {cpu_words.label(setting)}"
                found[name] = {"mean": pair["ratio"], "low": pair["low"], "high": pair["high"]}
    return found


def _moved(old: Mapping[str, float | None], new: Mapping[str, float | None]) -> str:
    """Say which way a figure went; without intervals, or where they touch, that is not known."""
    (then, low, high), (now, least, most) = ((row["mean"], row["low"], row["high"]) for row in (old, new))
    if then is None or now is None or low is None or high is None or least is None or most is None:
        return "same" if then == now else "unsure"
    if abs(now - then) < LITTLE * then:
        return "same"
    return "worse" if least > high else "better" if most < low else "same"


def text(found: Mapping[str, Any]) -> str:
    """Return the comparison for a person: the answer first, then what changed, worst first."""
    lines = [_answer(found), *(f"  {word}: {_one(found[word])}" for word in ("old", "new"))]
    for kind, title in KINDS.items():
        rows = [row for row in found["changes"] if row["kind"] == kind]
        lines += ["", f"{title}:"] if rows else []
        lines += [line for what in ("promise", "cell", "test") for line in _listed(rows, what)]
    lines += ["", "figures (old -> new, with their intervals):"] if found["figures"] else []
    lines += [_figure(row) for row in found["figures"]]
    lines += (
        ["", "different benches:", *(f"  {line}" for line in found["differs"])] if found["differs"] else []
    )
    return "\n".join(clean(line) for line in lines) + "\n"


def _answer(found: Mapping[str, Any]) -> str:
    count = sum(row["what"] == "promise" and row["kind"] == "worse" for row in found["changes"])
    return {
        SAME: "no regression",
        WORSE: f"REGRESSION: {count} promise{'s' if count != 1 else ''} worse",
        LESS: "nothing became worse, but the new run did not prove everything again",
        VOID: "no comparison: one of the runs is void and says nothing about the card",
    }[found["exit"]]


def _one(head: Mapping[str, Any]) -> str:
    mark = ", SIMULATED" if head["simulated"] else ""
    where = f"{head['card']}, kernel {head['kernel'] or 'unknown'}"
    return f"{head['verdict']}: {where}, {head['started'][:16]}{mark}"


def _listed(rows: Sequence[Mapping[str, Any]], what: str) -> Iterator[str]:
    """Yield the changes of one sort, at most a dozen."""
    mine = [row for row in rows if row["what"] == what]
    for row in mine[:SHOWN]:
        yield f"  {what:<7} {row['name']}: {row['old']} -> {row['new']}" + (
            f": {row['why']:.160}" if row["why"] else ""
        )
    if len(mine) > SHOWN:
        yield f"  and {len(mine) - SHOWN} more {what}s"


def _figure(row: Mapping[str, Any]) -> str:
    words = "" if row["kind"] in ("same", "unsure") else f"  {row['kind']}"
    return f"  {row['name']}: {spread(row['old'])} -> {spread(row['new'])}{words}"


def spread(found: Mapping[str, Any]) -> str:
    """Return a figure with its interval, if it has one."""
    if found["low"] is None or found["high"] is None:
        return figure(found["mean"]) if found["mean"] > 0 else f"{found['mean']:g}"
    return f"{figure(found['mean'])} [{figure(found['low'])}, {figure(found['high'])}]"


def as_json(found: Mapping[str, Any]) -> str:
    """Return the comparison for programs."""
    return json.dumps(found, indent=1, sort_keys=True, allow_nan=False) + "\n"
