"""Where the bars of the loss plot stand: this run next to the published figures of a real card."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from offload.suite.measure.cpu.published import published
from offload.suite.report.impairment import SHARES

# percent of loss: records fully, partly, not decrypted by the card; panel (b) of the authors' plot rx_drops
PUBLISHED = {row.percent: row.records for row in published().loss}
# the drawing, in units of its viewBox
LEFT, TOP, WIDTH, HEIGHT = 34.0, 10.0, 350.0, 180.0
SPAN = 5.0  # percent of loss on the axis
BAR = 20.0


def panels(levels: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return what to draw: a panel of this run and one of what was published; none without levels."""
    if not levels:
        return []
    theirs = [{"percent": p, **dict(zip(SHARES, row, strict=True))} for p, row in PUBLISHED.items()]
    return [_panel("ours", levels), _panel("published", theirs)]


def _panel(name: str, levels: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    span = max(SPAN, *(level["percent"] for level in levels))
    return {
        "name": name,
        "bars": [_bar(level, span) for level in levels],
        "ticks": [{"y": _y(share), "share": share} for share in (0, 25, 50, 75, 100)],
        "labels": [{"x": _x(span * n / 5, span), "percent": span * n / 5} for n in range(6)],
    }


def _x(percent: float, span: float) -> float:
    """The middle of a bar; the outermost ones are whole."""
    return round(LEFT + BAR + (WIDTH - 2 * BAR) * percent / span, 2)


def _y(share: float) -> float:
    return round(TOP + HEIGHT * (1 - share / 100), 2)


def _bar(level: Mapping[str, Any], span: float) -> dict[str, Any]:
    """One bar, from the bottom: fully, partly, not offloaded, each with its share in percent."""
    records = sum(level[name] for name in SHARES)
    parts, done = [], 0.0
    for name in SHARES:
        share = 100 * level[name] / records
        height = round(HEIGHT * share / 100, 2)
        parts.append({"name": name, "share": round(share, 1), "y": _y(done + share), "height": height})
        done += share
    x = round(_x(level["percent"], span) - BAR / 2, 2)
    resync = level.get("resync_requests")
    return {"percent": level["percent"], "records": records, "resync": resync, "x": x, "parts": parts}
