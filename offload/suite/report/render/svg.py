"""Small things that every plot needs: round ticks, labels that do not overlap, figures for a person."""

from __future__ import annotations

import math
from collections.abc import Sequence


def ticks(top: float, count: int = 4) -> list[float]:
    """Return round values from 0 to at least `top` (above 0), about `count` steps."""
    raw = top / count
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(unit * part for part in (1, 2, 2.5, 5, 10) if unit * part >= raw * 0.999)
    return [float(f"{step * n:.10g}") for n in range(math.ceil(top / step * 0.999) + 1)]


def apart(places: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Move places on a line, as little as is needed, until neighbors are `gap` apart; order is kept."""
    order = sorted(range(len(places)), key=lambda n: places[n])
    moved = list(places)
    edge = low
    for n in order:
        moved[n] = max(moved[n], edge)
        edge = moved[n] + gap
    edge = high
    for n in reversed(order):
        moved[n] = min(moved[n], edge)
        edge = moved[n] - gap
    return [round(place, 2) for place in moved]


def figure(value: float) -> str:
    """Return a figure above 0 with the digits that a person reads: `3,412`, `13.88`, `0.606`, `2.1e+09`."""
    if value >= 1e6 or 0 < value < 1e-3:
        return f"{value:.1e}"
    if value >= 100:
        return f"{value:,.0f}"
    return f"{value:.2f}" if value >= 1 else f"{value:.3g}"


def tick(value: float) -> str:
    """Return the label of a tick."""
    if value >= 1e6:
        return f"{value:.3g}"
    return f"{value:,.10g}"


def size(count: int) -> str:
    """Return bytes as a person sets them: `4 KiB`, `1 MiB`, `1.5 MiB`."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if count >= 1 << power:
            return f"{count / (1 << power):.4g} {unit}"
    return f"{count} B"
