"""What a person reads at the end: arms side by side, the ratio with its interval, saving, break-even."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from offload.suite.measure.arms import TITLES
from offload.suite.measure.cpu.figures import Sample, recovered
from offload.suite.measure.cpu.pairs import Ratio, paired
from offload.suite.measure.plan import amount

Row = Mapping[str, Any]
ONLY = {"": "off", "soft": "of the card off", "gso": "off but GSO", "gro": "off but GRO"}
KEYS = ("workload", "direction", "streams", "size", "segmentation")
ONE = "one pair: too few to conclude; 5 are needed (--rounds 5)"
NOTE = "SIMULATED: the emulated cores also do the card's work; the figures say nothing about any card"


def text(document: Mapping[str, Any]) -> str:
    """The whole of it."""
    lines = [NOTE] if document["simulated"] else []
    for group in grouped(document["rows"]):
        lines += ["", heading(group[0]), *table(group), *([] if document["simulated"] else sentences(group))]
    lines += [] if document["simulated"] else [f"break-even: {line}" for line in break_even(document["rows"])]
    lines += ["", *(f"skipped: {s['workload']} {s['arm']}: {s['reason']}" for s in document["skipped"])]
    if traffic := document["about"].get("memory traffic"):
        lines.append(f"memory traffic: {traffic}")
    lines += [f"warning: {warning}" for warning in document["warnings"]]
    return "\n".join(lines).strip("\n") + "\n"


def grouped(rows: Sequence[Row]) -> list[list[Row]]:
    """Rows that differ by nothing but the arm, in order."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(
            (*(row[key] for key in KEYS), row.get("close", False), row.get("only", "")), []
        ).append(row)
    return list(groups.values())


def heading(row: Row) -> str:
    """Return what the arms of a group have in common."""
    words = [
        f"{row['workload']}, {row['direction']}",
        f"{row['streams']} connection{'s' * (row['streams'] > 1)}",
    ]
    words += [f"{amount(row['size'])} each"] if row["size"] else []
    words += [] if row["segmentation"] else [f"segmentation offloads {ONLY[row.get('only', '')]}"]
    return ", ".join(words + (["a connection per request"] if row.get("close") else []))


def samples(row: Row) -> list[Sample]:
    return [Sample(s["cores"], s["bytes"], s["seconds"]) for s in row["samples"]]


def whole(row: Row) -> Sample:
    """All samples of a row as one: core-seconds, bytes and seconds added up."""
    each = samples(row)
    seconds = sum(s.seconds for s in each)
    return Sample(sum(s.cores * s.seconds for s in each) / seconds, sum(s.bytes for s in each), seconds)


def mean(row: Row) -> Sample:
    """The geometric mean of a row's cores per 100 Gbit/s, as the ratio and the report have it."""
    return Sample.at(100, math.exp(statistics.fmean(math.log(s.per_100g) for s in samples(row))))


def table(group: Sequence[Row]) -> Iterator[str]:
    """One line per arm."""
    requests = any("requests" in s for row in group for s in row["samples"])
    cycles = all("cycles" in s for row in group for s in row["samples"])
    memory = all("memory_bytes" in s for row in group for s in row["samples"])
    more = ("  cycles/byte" if cycles else "") + ("  memory/byte" if memory else "")
    more += "  requests/s" if requests else ""
    yield f"  {'arm':<20}{'cores':>8}{'Gbit/s':>10}{'cores/100G':>12}{more}"
    for row in group:
        sample = whole(row)
        line = f"  {TITLES[row['arm']]:<20}{sample.cores:>8.2f}"
        line += f"{_short(sample.gbits):>10}{_short(sample.per_100g):>12}"
        if cycles:
            line += f"{_short(sum(s['cycles'] for s in row['samples']) / sample.bytes):>13}"
        if memory:
            line += f"{_short(sum(s['memory_bytes'] for s in row['samples']) / sample.bytes):>13}"
        if requests:
            line += f"{sum(s.get('requests', 0) for s in row['samples']) / sample.seconds:>12.0f}"
        yield line


def _short(value: float) -> str:
    """Three digits or more."""
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def ratios(group: Sequence[Row]) -> list[Ratio]:
    """Each arm's cores per 100 Gbit/s against software's (or the first arm's)."""
    by = {row["arm"]: row for row in group}
    base = by.get("sw") or group[0]
    cost = {arm: [s.per_100g for s in samples(row)] for arm, row in by.items()}
    pairs = [(arm, cost[arm]) for arm in by if arm != base["arm"]]
    return [paired((base["arm"], cost[base["arm"]]), pair) for pair in pairs]


def sentences(group: Sequence[Row]) -> Iterator[str]:
    """Ratios in words; then, where they are sure, what offload saves of software's cores."""
    by = {row["arm"]: mean(row) for row in group}
    for ratio in ratios(group):
        yield "  " + (
            ratio.say() if ratio.pairs > 1 else f"{ratio.arm} is {ratio.ratio:.3f} of {ratio.base} in {ONE}"
        )
        if ratio.base != "sw" or not ratio.arm.startswith("hw") or ratio.wide or not ratio.differ:
            continue
        line = f"  {ratio.arm} saves {100 * (1 - ratio.ratio):.0f} % of sw's cores per 100 Gbit/s"
        part = recovered(by["sw"], by[ratio.arm], by["plain"]) if "plain" in by else None
        yield line + (f", {100 * part:.0f} % of what TLS costs over plain TCP" if part is not None else "")


def break_even(rows: Sequence[Row]) -> Iterator[str]:
    """Per number of connections, the smallest size from which offload is shown to cost less than software."""
    sizes: dict[tuple[Any, ...], dict[int, Ratio]] = {}
    for group in grouped([row for row in rows if row["size"] and row["arm"] in ("sw", "hw")]):
        if {row["arm"] for row in group} == {"sw", "hw"}:
            key = tuple(group[0][k] for k in KEYS if k != "size")
            sizes.setdefault(key, {})[group[0]["size"]] = ratios(group)[0]
    for key, found in sizes.items():
        if len(found) > 1:
            yield f"{key[0]}, {key[2]} connection{'s' * (key[2] > 1)}: {even(found)}"


def even(found: Mapping[int, Ratio]) -> str:
    """In words: the size from which on every interval lies wholly below 1."""
    first = None
    for size in sorted(found, reverse=True):
        if not (found[size].differ and found[size].high < 1):
            break
        first = size
    return f"offload pays from {amount(first)} upward" if first else "offload pays at no measured size"
