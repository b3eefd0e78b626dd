"""Where offload starts to pay: the smallest request, by connections, from which it surely costs less."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from offload.suite.report.render.svg import size

KEYS = ("source", "workload", "direction", "version", "cipher", "segmentation", "only", "close", "streams")
Sweeps = dict[tuple[Any, ...], dict[int, Mapping[str, Any]]]  # values of KEYS -> size -> comparison


def points(settings: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a break-even point for every number of connections that was measured with several sizes.

    It is the smallest size from which the interval of offload to software lies wholly below 1, at this and at
    every larger size measured; None if there is none.
    """
    found = []
    for arm in ("hw", "hw-zc"):
        for key, row in sweeps(settings, arm).items():
            least = _least(row)
            named = dict(zip(KEYS, key, strict=True)) | {"arm": arm, "size": least}
            found.append(named | {"words": _words(sorted(row), least)})
    return found


def sweeps(settings: Sequence[Mapping[str, Any]], arm: str) -> Sweeps:
    """Return how an arm compares with software kTLS wherever at least two sizes were measured."""
    rows: Sweeps = {}
    for setting in settings:
        pairs = [pair for pair in setting["compared"] if (pair["base"], pair["arm"]) == ("sw", arm)]
        if setting["size"] is not None and setting["method"] == "time" and pairs:
            rows.setdefault(tuple(setting[key] for key in KEYS), {})[setting["size"]] = pairs[0]
    return {key: row for key, row in rows.items() if len(row) > 1}


def _least(row: Mapping[int, Mapping[str, Any]]) -> int | None:
    found = None
    for number in sorted(row, reverse=True):
        if row[number]["state"] != "less":
            break
        found = number
    return found


def _words(sizes: Sequence[int], least: int | None) -> str:
    if least is None:
        return f"not shown to pay at {size(sizes[-1])}, the largest"
    if least == sizes[0]:
        return f"pays from {size(least)}, the smallest"
    return f"pays from {size(least)}"
