"""The history as one HTML page: per bench what became of each run, and a plot of each figure over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from offload.suite.report.compare.diff import spread
from offload.suite.report.compare.history import LETTERS, RECENT, title
from offload.suite.report.render.render import page
from offload.suite.report.render.svg import tick, ticks

MOST_BENCHES, MOST_ROWS, MOST_PLOTS = 20, 20, 8  # the rest is in the terminal, and in --json
# the drawings, in units of their viewBox
LEFT, RIGHT, CELL = 150.0, 690.0, 15.0
TOP, HEIGHT, EDGE = 10.0, 110.0, 56.0
SIGNS = {"": "\u00b7", "limited": "~", "broken": "\u00d7", "not proved": "?"}
LOOKS = {"certified": "good", "certified with limitations": "warn", "failed": "bad", "void": "void"}
STATES = {"": "none", "limited": "warn", "broken": "bad"}


def html(found: Mapping[str, Any]) -> str:
    """Return the page: no script, no request, everything in it escaped."""
    benches = [_bench(bench) for bench in found["benches"][:MOST_BENCHES]]
    left = len(found["benches"]) - len(benches) + found["left_out"]
    return page(
        "history.html", results=found["results"], benches=benches, left=left, letters=LETTERS, recent=RECENT
    )


def _bench(bench: Mapping[str, Any]) -> dict[str, Any]:
    rows = sorted(bench["promises"], key=lambda row: (-sum(map(bool, row["states"])), row["id"]))
    plots = [figure for figure in bench["figures"] if any(figure["points"])]
    return {
        **bench,
        "title": title(bench),
        "grid": _grid(bench["recent"], rows[:MOST_ROWS]),
        "rows_left": max(len(rows) - MOST_ROWS, 0),
        "plots": [_plot(figure, bench["recent"]) for figure in plots[:MOST_PLOTS]],
        "plots_left": max(len(plots) - MOST_PLOTS, 0),
    }


def _grid(runs: Sequence[Mapping[str, str]], rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """A column per run; on top its verdict, below a row per promise that was not always kept."""
    step = min(CELL, (RIGHT - LEFT) / max(len(runs), 1))
    verdicts = [run["verdict"] for run in runs]
    table = [("verdict", [(LETTERS.get(word, "?"), LOOKS.get(word, "calm")) for word in verdicts])]
    for row in rows:
        cells = [(SIGNS.get(state, "?"), STATES.get(state, "calm")) for state in row["states"]]
        table.append((row["id"], cells))
    lines = [_row(name, cells, 4.0 + n * (CELL + 2), step) for n, (name, cells) in enumerate(table)]
    foot, at = 4.0 + len(lines) * (CELL + 2), [LEFT + step * n for n in range(len(runs))]
    return {"rows": lines, "days": _days(runs, at, step), "foot": foot, "height": foot + 16}


def _row(name: str, cells: Sequence[tuple[str, str]], y: float, step: float) -> dict[str, Any]:
    """One row; all cells of one look are one path of boxes and one line of signs: that keeps a page small."""
    width, looks = f"{step - 1.5:.4g}", dict.fromkeys(look for _, look in cells)
    groups = []
    for look in looks:
        mine = [(LEFT + step * n, sign) for n, (sign, one) in enumerate(cells) if one == look]
        boxes = "".join(f"M{x:.5g} {y:.5g}h{width}v14h-{width}z" for x, _ in mine)
        middles = " ".join(f"{x + step / 2 - 0.75:.5g}" for x, _ in mine)
        groups.append(
            {"look": look, "boxes": boxes, "at": middles, "signs": "".join(sign for _, sign in mine)}
        )
    return {"name": name, "y": y, "groups": groups}


def _days(runs: Sequence[Mapping[str, str]], at: Sequence[float], step: float) -> list[dict[str, Any]]:
    """The days of the first and of the last run, if there is room for both."""
    ends = [0, len(runs) - 1] if at and at[-1] - at[0] > 140 else [len(runs) - 1] if at else []
    return [
        {"x": round(at[n] + (step if n else 0), 2), "end": n > 0, "text": runs[n]["finished"][:10]}
        for n in ends
    ]


def _plot(figure: Mapping[str, Any], runs: Sequence[Mapping[str, str]]) -> dict[str, Any]:
    """A figure over the runs, from 0: a dot and a whisker each, a line through the dots."""
    points = [(n, point) for n, point in enumerate(figure["points"]) if point]
    values = [point["mean"] for _, point in points]
    reach = max(max(values), *(min(point["high"] or 0.0, 2 * max(values)) for _, point in points))
    marks = ticks(reach or 1.0)
    step = (RIGHT - EDGE) / max(len(runs), 1)
    at = [EDGE + step * (n + 0.5) for n in range(len(runs))]
    places = [(at[n], _y(point["mean"], marks[-1])) for n, point in points]
    return {
        "name": figure["name"],
        "line": "M" + "L".join(f"{x:.5g} {y:.5g}" for x, y in places),
        "dots": "".join(f"M{x:.5g} {y:.5g}h0" for x, y in places),
        "whiskers": "".join(_whisker(at[n], point, marks[-1]) for n, point in points),
        "ticks": [{"y": _y(mark, marks[-1]), "text": tick(mark)} for mark in marks],
        "days": _days(runs, at, 0.0),
        "first": spread(points[0][1]),
        "last": spread(points[-1][1]),
        "count": len(points),
    }


def _whisker(x: float, point: Mapping[str, Any], top: float) -> str:
    """The interval of a point; one that leaves the axis is cut."""
    if point["low"] is None or point["high"] is None:
        return ""
    return f"M{x:.5g} {_y(point['low'], top):.5g}V{_y(min(point['high'], top), top):.5g}"


def _y(value: float, top: float) -> float:
    return round(TOP + HEIGHT * (1 - value / top), 2)
