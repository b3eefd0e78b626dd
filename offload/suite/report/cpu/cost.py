"""What cost mode says per setting: guest instructions per byte by arm and side, and what offload saves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from offload.suite.report.cpu.rows import ARMS, ESP, PAIRS, SIDES, Row, rounded


def figures(rows: Sequence[Row]) -> dict[str, Any]:
    """Return the arms of one setting, and the comparisons by side; counts are exact and need no interval."""
    arms = {row.arm: row for row in rows}
    sides = [side for side in SIDES if side != "card"]  # its engine is no CPU that offload could save
    return {
        "arms": [{"arm": row.arm, "cost": list(_costs(row))} for row in rows],
        "compared": [pair for side in sides for pair in _compared(side, arms)],
    }


def _costs(row: Row) -> Iterator[dict[str, Any]]:
    return (_side(row, side) for side in SIDES if side in row.cost)


def _side(row: Row, side: str) -> dict[str, Any]:
    """One side of an arm: the mean over boots, the least and the most of them."""
    values = list(row.cost[side].values())
    mean = _mean(values)
    ends = {"low": rounded(min(values)), "high": rounded(max(values))}
    apart = 100 * (max(values) - min(values)) / mean
    return {
        "side": side,
        "mean": rounded(mean),
        **ends,
        "boots": len(values),
        "apart_percent": float(f"{apart:.3g}"),
    }


def _compared(side: str, arms: Mapping[str, Row]) -> Iterator[dict[str, Any]]:
    """Yield what offload takes of what the others take on one side, over the boots that both have."""
    for base, arm in PAIRS:
        old, new = (arms[name].cost.get(side, {}) if name in arms else {} for name in (base, arm))
        ratios = [new[boot] / old[boot] for boot in sorted(old.keys() & new.keys())]
        if ratios:
            mean = _mean(ratios)
            yield {
                "base": base,
                "arm": arm,
                "side": side,
                "ratio": rounded(mean),
                "low": rounded(min(ratios)),
                "high": rounded(max(ratios)),
                "pairs": len(ratios),
                "wide": False,
                "state": "less" if max(ratios) < 1 else "more" if min(ratios) > 1 else "same",
                "words": _words(base, arm, ratios),
                "saved_percent": rounded(100 * (1 - mean)),
                "recovered_percent": None if arm in ESP else _recovered(side, base, mean, arms),
            }


def _words(base: str, arm: str, ratios: Sequence[float]) -> str:
    mean, low, high = _mean(ratios), min(ratios), max(ratios)
    boots = (
        "1 boot"
        if len(ratios) == 1
        else f"{len(ratios)} boots within {max(100 * (high - low) / mean, 0.01):.2f} %"
    )
    known = f"{ARMS[arm]} is {mean:.3f} of {ARMS[base]} ({boots})"
    if low <= 1 <= high:
        return f"{known}: no difference shown"
    return f"{known}: {100 * abs(1 - mean):.1f} % {'less' if mean < 1 else 'more'}"


def _recovered(side: str, base: str, ratio: float, arms: Mapping[str, Row]) -> float | None:
    """The part of TLS's cost over plain TCP that offload takes away; None if it cost nothing."""
    if base != "sw" or "plain" not in arms or side not in arms["plain"].cost:
        return None
    software, plain = (_mean(arms[name].cost[side].values()) for name in ("sw", "plain"))
    return rounded(100 * software * (1 - ratio) / (software - plain)) if software > plain else None


def _mean(values: Iterable[float]) -> float:
    found = list(values)
    return sum(found) / len(found)
