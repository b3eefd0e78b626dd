"""Where the parts of the plots of active cores stand; measured and published are never in one plot."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from offload.suite.measure.cpu.published import published
from offload.suite.report.cpu import maps
from offload.suite.report.cpu.rows import ARMS, SIDES
from offload.suite.report.cpu.words import cited, label, measured
from offload.suite.report.render.svg import apart, figure, tick, ticks

MOST = 12  # panels of a kind; the tables have every setting
SIZE = 1 << 20  # of a sweep over sizes the plots show this one, as it is the size that was published
THEIRS = {"software": "sw", "offload": "hw", "zerocopy": "hw-zc", "plain": "plain"}
CORES = "active cores per 100 Gbit/s"
# the drawing, in units of its viewBox
LEFT, RIGHT, STEP = 112.0, 340.0, 19.0
TOP, HEIGHT, FIRST, LAST = 22.0, 150.0, 38.0, 232.0  # of a plot of lines

Bars = Sequence[tuple[str, Mapping[str, Any]]]  # arm, its spread


def page(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return the plots of a report's section `cpu`; empty lists for what was not measured."""
    settings = section["settings"] if section else []
    timed, counted = ([s for s in settings if s["method"] == name] for name in ("time", "icount"))
    chosen = _of_one_size(timed)
    return {
        "bars": _with_published([_cores(section, one) for one in chosen[:MOST]], _published_cores()),
        "left_out": max(len(chosen) - MOST, 0),
        "lines": _with_published(_throughput(section, chosen)[:MOST], _published_throughput()),
        "maps": maps.maps(section, timed) if timed else [],
        "cost": [_cost(section, one) for one in counted[:MOST]],
        "timed": timed,
        "counted": counted,
    }


def _with_published(ours: list[dict[str, Any]], theirs: dict[str, Any]) -> list[dict[str, Any]]:
    return [*ours, theirs] if ours else []


def _of_one_size(settings: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return the settings without those of a sweep over sizes that have another size than the one shown."""
    sizes: dict[Any, set[int]] = {}
    for setting in settings:
        sizes.setdefault(_group(setting), set()).add(setting["size"] or 0)
    shown = {group: SIZE if SIZE in found else max(found) for group, found in sizes.items()}
    return [s for s in settings if s["size"] is None or s["size"] == shown[_group(s)]]


def _group(setting: Mapping[str, Any], *more: str) -> tuple[Any, ...]:
    keys = ("source", "workload", "direction", "version", "cipher", "segmentation", "only", "close", *more)
    return tuple(setting[key] for key in keys)


def _cores(section: Mapping[str, Any], setting: Mapping[str, Any]) -> dict[str, Any]:
    rows = [(arm["arm"], arm["per_100g"]) for arm in setting["arms"]]
    return measured(section, setting, label(setting)) | {"axis": CORES} | bars([("", rows)])


def _published_cores() -> dict[str, Any]:
    row = next(row for row in published().nginx if (row.file_kib, row.workers) == (1024, 8))
    rows = [(THEIRS[arm], _exact(sample.per_100g)) for arm, sample in row.arms.items()]
    head = cited("nginx Tx, TLS 1.2 aes_gcm_128, 8 workers, 1 MiB", row.source)
    return head | {"axis": CORES} | bars([("", rows)])


def _exact(value: float) -> dict[str, Any]:
    return {"mean": value, "low": None, "high": None}


def _cost(section: Mapping[str, Any], setting: Mapping[str, Any]) -> dict[str, Any]:
    """Bars by side; what the card's engine takes is no CPU of the host, so only the table has it."""
    groups = []
    for side, name in SIDES.items():
        rows = [(arm["arm"], c) for arm in setting["arms"] for c in arm["cost"] if c["side"] == side]
        groups += [(name, rows)] if rows and side != "card" else []
    head = measured(section, setting, label(setting))
    return head | {"axis": "guest instructions per byte of payload"} | bars(groups)


def bars(groups: Sequence[tuple[str, Bars]]) -> dict[str, Any]:
    """Return horizontal bars from 0, under a heading per group unless it is empty; whiskers are intervals."""
    every = [spread for _, rows in groups for _, spread in rows]
    mean = max((spread["mean"] for spread in every), default=1.0)
    reach = max((min(spread["high"] or 0, 2 * mean) for spread in every), default=1.0)
    marks = ticks(max(mean, reach))
    y, drawn, headings = 6.0, [], []
    for heading, rows in groups:
        if heading:
            headings.append({"text": heading, "y": round(y + 8, 2)})
            y += 14
        for arm, spread in rows:
            drawn.append({"arm": arm, "name": ARMS[arm], "y": round(y, 2)} | _bar(spread, marks[-1]))
            y += STEP
        y += 3
    places = {"foot": round(y, 2), "height": round(y + 42, 2)}
    shown = [{"x": _x(mark, marks[-1]), "text": tick(mark)} for mark in marks]
    return {"rows": drawn, "headings": headings, "ticks": shown} | places


def _bar(spread: Mapping[str, Any], top: float) -> dict[str, Any]:
    """One bar with its whisker, and the place of its figure; a whisker beyond the axis is cut."""
    end = _x(spread["mean"], top)
    found = {"text": figure(spread["mean"]), "width": round(end - LEFT, 2)}
    if spread["low"] is None:
        return found | {"low": None, "text_x": end + 5}
    low, high = _x(spread["low"], top), _x(min(spread["high"], top), top)
    return found | {"low": low, "high": high, "cut": spread["high"] > top, "text_x": max(end, high) + 5}


def _x(value: float, top: float) -> float:
    return round(LEFT + (RIGHT - LEFT) * value / top, 2)


def _throughput(section: Mapping[str, Any], settings: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a plot of lines for all that was measured with two numbers of connections at least."""
    groups: dict[tuple[Any, ...], list[Mapping[str, Any]]] = {}
    for setting in settings:
        groups.setdefault(_group(setting, "size"), []).append(setting)
    found = []
    for group in groups.values():
        series: dict[str, dict[int, float]] = {}
        for setting in group:
            for arm in setting["arms"]:
                series.setdefault(arm["arm"], {})[setting["streams"]] = arm["gbits"]
        if len({setting["streams"] for setting in group}) > 1:
            found.append(measured(section, group[0], label(group[0], counted=False)) | lines(series))
    return found


def _published_throughput() -> dict[str, Any]:
    rows = {count: published().rows[f"mlx5-rx-{count}"] for count in (1, 4, 8)}
    arms = ("software", "offload")
    series = {THEIRS[arm]: {count: row.values[arm] for count, row in rows.items()} for arm in arms}
    return cited("Rx, by connections", rows[1].source, "ConnectX-6 Dx, mlx5 driver") | lines(series)


def lines(series: Mapping[str, Mapping[int, float]]) -> dict[str, Any]:
    """Return a line per arm over the numbers of connections, at equal steps; names at the ends."""
    counts = sorted({count for row in series.values() for count in row})
    marks = ticks(max(value for row in series.values() for value in row.values()))
    step = (LAST - FIRST - 24) / max(len(counts) - 1, 1)
    at = {count: round(FIRST + 12 + n * step, 2) for n, count in enumerate(counts)}
    drawn = [_line(arm, series[arm], at, marks[-1]) for arm in ARMS if arm in series]
    ends = [line["points"][-1]["y"] for line in drawn]
    for line, place in zip(drawn, apart(ends, 12, TOP, TOP + HEIGHT), strict=True):
        line["label_y"] = place
    return {
        "series": drawn,
        "ticks": [{"y": _y(mark, marks[-1]), "text": tick(mark)} for mark in marks],
        "counts": [{"x": at[count], "text": tick(count)} for count in counts],
    }


def _line(arm: str, row: Mapping[int, float], at: Mapping[int, float], top: float) -> dict[str, Any]:
    points = [{"x": at[count], "y": _y(value, top)} for count, value in sorted(row.items())]
    return {"arm": arm, "points": points, "text": f"{ARMS[arm]} {figure(row[max(row)])}"}


def _y(value: float, top: float) -> float:
    return round(TOP + HEIGHT * (1 - value / top), 2)
