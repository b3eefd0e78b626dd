"""What a cost document says: savings by side, how far boots lie apart, and a table for a person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from offload.errors import RigError

SIDES = ("sender", "receiver", "host", "card")
REPEATS = 0.001  # what boots of one image may differ by
BELOW = 0.05  # the same below the real driver
NOTE = "SIMULATED: validates the method, says nothing about a card. Instructions per payload byte on the DUT."
Document = Mapping[str, Any]


def group(row: Mapping[str, Any]) -> tuple[str, int, str]:
    """Return what the arms that are compared have in common: direction, connections each way, load."""
    direction = str(row["direction"])
    return direction, int(row["streams"]) // (2 if direction == "both" else 1), str(row["workload"])


def title(row: Mapping[str, Any]) -> str:
    """A row's group in words: `tx`, `tx x4`, `tx file`."""
    direction, channels, load = group(row)
    return direction + (f" x{channels}" if channels > 1 else "") + (f" {load}" if load != "stream" else "")


def sides(row: Mapping[str, Any]) -> dict[str, list[float]]:
    """A row's instructions per byte, by side, boot by boot."""
    found: dict[str, list[float]] = {}
    for cost in row["cost"]:
        found.setdefault(cost["side"], []).append(cost["per_byte"])
    return found


def costs(
    document: Document, arm: str, direction: str, channels: int = 1, load: str = "stream"
) -> dict[str, list[float]]:
    """Side -> instructions per byte, boot by boot; empty if that row was not measured."""
    wanted = direction, channels, load
    rows = [row for row in document["rows"] if row["arm"] == arm and group(row) == wanted]
    return sides(rows[0]) if rows else {}


def saving(
    document: Document,
    direction: str,
    side: str,
    arm: str = "hw",
    base: str = "sw",
    channels: int = 1,
    load: str = "stream",
) -> float:
    """The part of a side's instructions that `base` spends and `arm` does not; below 0 if it spends more.

    RigError if one of the two was not measured.
    """
    old, new = (costs(document, name, direction, channels, load).get(side) for name in (base, arm))
    if not old or not new:
        raise RigError(f"cost mode measured no {side} of {base} and {arm} in direction {direction}")
    return 1 - (sum(new) / len(new)) / (sum(old) / len(old))


def spread(document: Document) -> float:
    """How far boots lie apart at most, as a part of the mean: 0.001 is 0.1 %."""
    each = (values for row in document["rows"] for values in sides(row).values())
    return max(map(apart, each), default=0.0)


def apart(values: Sequence[float]) -> float:
    """(most - least) / mean."""
    return (max(values) - min(values)) * len(values) / sum(values)


def text(document: Document) -> str:
    """The whole of it: a line per row, then what offload saves, then how far boots lie apart."""
    lines = [
        NOTE,
        f"{document['about']['kernel']}, {document['about']['nic']}, {document['about']['wire']}",
        "",
    ]
    lines += [f"  {'direction':<10}{'arm':<7}" + "".join(f"{side:>10}" for side in SIDES)]
    lines += [_line(row) for row in sorted(document["rows"], key=_order)]
    lines += ["", *_savings(document)]
    boots = max(cost["boot"] for row in document["rows"] for cost in row["cost"])
    if boots > 1:
        lines.append(f"{boots} boots agree within {100 * spread(document):.3f} % of each other")
    lines += [f"skipped: {s['arm']}: {s['reason']}" for s in document["skipped"]]
    lines += [f"warning: {warning}" for warning in document["warnings"]]
    return "\n".join(lines) + "\n"


def _order(row: Mapping[str, Any]) -> tuple[Any, ...]:
    direction, channels, load = group(row)
    return load != "stream", ("tx", "rx", "both").index(direction), channels


def _line(row: Mapping[str, Any]) -> str:
    found = sides(row)
    cells = (
        f"{sum(found[side]) / len(found[side]):>10.3f}" if side in found else f"{'':>10}" for side in SIDES
    )
    return f"  {title(row):<10}{row['arm']:<7}{''.join(cells)}"


def _savings(document: Document) -> Iterator[str]:
    """Sentences, one per direction and offload arm; the engine is no CPU that could be saved."""
    for row in sorted(document["rows"], key=_order):
        arm, (direction, channels, load) = row["arm"], group(row)
        base = costs(document, "sw", direction, channels, load)
        if arm not in ("hw", "hw-zc") or not base:
            continue
        words = [
            f"{100 * saving(document, direction, side, arm, 'sw', channels, load):.0f} % of its {side}'s"
            for side in SIDES[:3]
            if side in base
        ]
        yield f"{title(row)}: {arm} saves {', '.join(words)} instructions of software kTLS"
