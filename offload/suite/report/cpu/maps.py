"""Where the cells of the break-even map stand: size of a request by connections, and where offload pays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from offload.suite.measure.cpu.published import published
from offload.suite.report.cpu.even import KEYS, sweeps
from offload.suite.report.cpu.rows import ARMS
from offload.suite.report.cpu.words import cited, connections, label, measured
from offload.suite.report.render.svg import size

MOST_ROWS, MOST_SIZES = 12, 10
THEIRS = {"hw": "offload", "hw-zc": "zerocopy"}
# the drawing, in units of its viewBox
LEFT, CELL, ROW, TOP = 112.0, 44.0, 26.0, 22.0

Cells = Mapping[int, tuple[str, str]]  # size -> state, text


def maps(section: Mapping[str, Any], settings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a map per arm for all that was measured with several sizes, then what was published."""
    found, arms = [], []
    for arm in THEIRS:
        groups: dict[tuple[Any, ...], dict[int, Cells]] = {}
        for key, row in sweeps(settings, arm).items():
            cells = {number: (pair["state"], _ratio(pair["ratio"])) for number, pair in row.items()}
            groups.setdefault(key[:-1], {})[key[-1]] = cells
        found += [_measured(section, arm, group, rows) for group, rows in groups.items()]
        arms += [arm] if groups else []
    theirs = [_theirs(arm) for arm in arms]
    return found + [plot | ({"cite": None} if n else {}) for n, plot in enumerate(reversed(theirs))][::-1]


def _ratio(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 100 else ">99"


def _measured(
    section: Mapping[str, Any], arm: str, group: tuple[Any, ...], rows: Mapping[int, Cells]
) -> dict[str, Any]:
    like = dict(zip(KEYS, group, strict=False))
    said = {
        connections(point["streams"]): (point["size"], point["words"])
        for point in section["break_even"]
        if point["arm"] == arm and all(point[key] == value for key, value in like.items())
    }
    head = measured(section, like, label(like | {"size": None}, counted=False))
    return head | {"arm": ARMS[arm]} | grid({connections(n): row for n, row in rows.items()}, said)


def _theirs(arm: str) -> dict[str, Any]:
    """The published ratios; no interval was published with them, so none of them has a state."""
    rows: dict[str, dict[int, tuple[str, str]]] = {}
    for row in published().nginx:
        ratio = row.arms[THEIRS[arm]].per_100g / row.arms["software"].per_100g
        name = f"{row.workers} worker{'s' if row.workers > 1 else ''}"
        rows.setdefault(name, {})[row.file_kib << 10] = ("cited", _ratio(ratio))
    head = cited("nginx Tx, TLS 1.2 aes_gcm_128", published().nginx[0].source)
    said = dict.fromkeys(rows, (None, "no interval was published"))
    return head | {"arm": ARMS[arm]} | grid(rows, said)


def grid(rows: Mapping[str, Cells], said: Mapping[str, tuple[int | None, str]]) -> dict[str, Any]:
    """Return a row per name, a column per size; a heavy line stands before the size from which it pays."""
    sizes = sorted({number for row in rows.values() for number in row})[:MOST_SIZES]
    at = {number: LEFT + CELL * n for n, number in enumerate(sizes)}
    drawn = []
    for n, (name, row) in enumerate(list(rows.items())[:MOST_ROWS]):
        cells = [
            {"x": at[number], "state": row[number][0], "text": row[number][1]}
            for number in sizes
            if number in row
        ]
        least, words = said[name]
        edge = at.get(least) if least is not None else None
        drawn.append({"name": name, "y": TOP + ROW * n, "cells": cells, "edge": edge, "words": words})
    return {
        "rows": drawn,
        "sizes": [{"x": x + CELL / 2, "text": size(number)} for number, x in at.items()],
        "end": LEFT + CELL * len(sizes) + 8,
        "height": TOP + ROW * len(drawn) + 34,
    }
