"""What the report says of active cores: per setting each arm's figures, what offload saves, where it pays."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from offload.errors import RigError
from offload.suite.measure.cpu.figures import Sample, recovered
from offload.suite.measure.cpu.pairs import FEW, Ratio, interval, paired
from offload.suite.report.cpu import cost, even
from offload.suite.report.cpu.rows import (
    ARMS,
    DIRECTIONS,
    ESP,
    PAIRS,
    WORKLOADS,
    Row,
    Setting,
    Source,
    rounded,
    sources,
)

BUDGET = 400  # intervals of one report, about 20 ms each: hostile evidence must not take hours


class Purse:
    """How many intervals a report may still compute."""

    def __init__(self, left: int) -> None:
        self.left = left

    def spend(self) -> bool:
        """Take one, if there is one left."""
        self.left -= 1
        return self.left >= 0


def section(tests: Sequence[Mapping[str, Any]], simulated: bool) -> dict[str, Any]:
    """Return the section `cpu` of the report, see its schema; empty if no test measured. A pure function."""
    found = sources(tests, simulated)
    if not found:
        return {}
    purse = Purse(BUDGET)
    settings = [entry for number, source in enumerate(found) for entry in _settings(number, source, purse)]
    return {
        "sources": [_source(source) for source in found],
        "settings": settings,
        "break_even": even.points(settings),
        "complete": purse.left >= 0,
    }


def _source(source: Source) -> dict[str, Any]:
    said = ("test", "outcome", "method", "simulated", "lost", "problem")
    return {key: getattr(source, key) for key in said} | {
        "about": dict(source.about),
        "skipped": [dict(entry) for entry in source.skipped],
        "warnings": list(source.warnings),
    }


def _settings(number: int, source: Source, purse: Purse) -> Iterator[dict[str, Any]]:
    """Yield every setting of a test with its arms; each includes plain TCP and ESP, which have no cipher."""
    together: dict[Setting, dict[str, Row]] = {}
    for row in source.rows:
        together.setdefault(row.setting, {})[row.arm] = row
    shared = {_without_cipher(setting) for setting in together if setting != _without_cipher(setting)}
    for setting in sorted(together.keys() - shared, key=_order):
        arms = together.get(_without_cipher(setting), {}) | together[setting]
        rows = [arms[arm] for arm in ARMS if arm in arms]
        found = cost.figures(rows) if source.method == "icount" else _figures(rows, purse)
        yield {"source": number, "method": source.method, **vars(setting), **found}


def _order(setting: Setting) -> tuple[Any, ...]:
    place = WORKLOADS.index(setting.workload), DIRECTIONS.index(setting.direction)
    return (
        *place,
        setting.version,
        setting.cipher,
        setting.segmentation,
        setting.only,
        setting.close,
        setting.size or 0,
        setting.streams,
    )


def _without_cipher(setting: Setting) -> Setting:
    return Setting(**vars(setting) | {"version": "", "cipher": ""})


def _figures(rows: Sequence[Row], purse: Purse) -> dict[str, Any]:
    """Return the arms of one setting measured over time, and the comparisons."""
    return {
        "arms": [_arm(row, purse) for row in rows],
        "compared": list(_compared({row.arm: row for row in rows}, purse)),
    }


def _arm(row: Row, purse: Purse) -> dict[str, Any]:
    """One arm: means over its samples; of cores per 100 Gbit/s with an interval (95 %) from 5 samples on."""
    found: dict[str, Any] = {
        "arm": row.arm,
        "samples": len(row.samples),
        "cores": rounded(sum(sample.cores for sample in row.samples) / len(row.samples)),
        "per_100g": spread([sample.per_100g for sample in row.samples], purse),
        "gbits": rounded(sum(sample.gbits for sample in row.samples) / len(row.samples)),
    }
    found |= {"requests": rounded(sum(row.requests) / len(row.requests))} if any(row.requests) else {}
    return found | ({} if row.memory is None else {"memory_per_byte": rounded(row.memory)})


def spread(values: Sequence[float], purse: Purse) -> dict[str, float | None]:
    """Return the geometric mean, so that a ratio of means is the mean of ratios, and its 95 % interval."""
    logs = [math.log(value) for value in values]
    mean = math.exp(sum(logs) / len(logs))
    if len(values) < FEW or not purse.spend():
        return {"mean": rounded(mean), "low": None, "high": None}
    low, high = (math.exp(end) for end in interval(logs, seed=1))
    return {"mean": rounded(mean), "low": rounded(min(low, mean)), "high": rounded(max(high, mean))}


def _compared(arms: Mapping[str, Row], purse: Purse) -> Iterator[dict[str, Any]]:
    """Yield what offload costs of what the others cost, by pairs of neighbors in time."""
    for base, arm in PAIRS:
        if base in arms and arm in arms and purse.spend():
            yield {"base": base, "arm": arm, **_pair(arms[base], arms[arm], arms.get("plain"))}


def _pair(base: Row, arm: Row, plain: Row | None) -> dict[str, Any]:
    """Compare two arms; where they do not pair (a round was lost), say so and give no figure."""
    values = [[sample.per_100g for sample in row.samples] for row in (base, arm)]
    try:
        ratio = paired((ARMS[base.arm], values[0]), (ARMS[arm.arm], values[1]))
    except RigError as exc:
        return {"ratio": None, "state": "no pairs", "words": str(exc).partition("\n")[0]}
    return {
        "ratio": rounded(ratio.ratio),
        "low": None if ratio.pairs < FEW else rounded(ratio.low),
        "high": None if ratio.pairs < FEW else rounded(ratio.high),
        "pairs": ratio.pairs,
        "wide": ratio.wide,
        "state": state(ratio),
        "words": said(ratio),
        "saved_percent": rounded(100 * (1 - ratio.ratio)),
        "recovered_percent": _recovered(base, arm, plain),
    }


def said(ratio: Ratio) -> str:
    """Return the sentence of a ratio; that of one pair has no interval to tell."""
    if ratio.pairs > 1:
        return ratio.say()
    known = f"{ratio.arm} is {ratio.ratio:.3f} of {ratio.base} (1 pair)"
    return f"{known}: too few pairs to conclude; {FEW} are needed"


def state(ratio: Ratio) -> str:
    """Return the sentence of a ratio as one of: less, more, same, unclear, few."""
    if ratio.pairs < FEW:
        return "few"
    if ratio.differ:
        return "less" if ratio.high < 1 else "more"
    return "unclear" if ratio.wide else "same"


def _recovered(base: Row, arm: Row, plain: Row | None) -> float | None:
    """The part of TLS's cost over plain TCP that offload takes away, of means; None if it cost nothing."""
    if plain is None or base.arm != "sw" or arm.arm in ESP:
        return None
    means = [Sample.at(100, _mean(row)) for row in (base, arm, plain)]
    part = recovered(*means)
    return None if part is None else rounded(100 * part)


def _mean(row: Row) -> float:
    return math.exp(sum(math.log(sample.per_100g) for sample in row.samples) / len(row.samples))
