"""What the report says of live migrations, by transport, from the evidence `migrations`, read as hostile."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeGuard

from offload.suite.measure.cpu.pairs import FEW, paired
from offload.suite.report.cpu.rows import rounded, text
from offload.suite.report.cpu.section import Purse, said, state

SCHEMA = "ktls-offload/migration/2"
TRANSPORTS = {
    "plain": "plain TCP",
    "stunnel": "stunnel at both ends",
    "qemu-tls": "QEMU's own TLS",
    "ktls-sw": "kernel TLS, software",
    "ktls-hw": "kernel TLS, the card",
}
ENDS = ("source", "destination")
NUMBERS = ("ms", "arrived_ms", "bytes", "rounds")  # above 0
MOST_RUNS, MOST_NOTES, MOST_SOURCES, BUDGET = 64, 12, 8, 20
PROBLEM = f"its evidence does not have the form that the report reads ({SCHEMA})"


@dataclass(frozen=True)
class Run:
    """One migration: numbers by name; by end the seconds of CPU, the host's active cores and their margin."""

    numbers: Mapping[str, int]
    downtime: int
    forced: bool
    cpu: Mapping[str, float]
    cores: Mapping[str, tuple[float, float]]


def section(tests: Sequence[Mapping[str, Any]], simulated: bool) -> dict[str, Any]:
    """Return the section `migration` of the report, see its schema; empty if no test measured. Pure.

    Only passed tests give figures. They are of a simulated card if the test or the run (`simulated`) says
    so, or the test does not say.
    """
    mine = [test for test in tests if "migrations" in test["evidence"]][:MOST_SOURCES]
    purse, sources, transports = Purse(BUDGET), [], []
    for number, test in enumerate(mine):
        found = test["evidence"]["migrations"]
        found = found if isinstance(found, Mapping) else {}
        problem = _problem(test, found)
        runs, lost = ({}, 0) if problem else _runs(found["transports"])
        sources.append(
            _source(test, found, simulated, lost, problem or ("" if runs else "it holds no figure"))
        )
        transports += [
            {"source": number, **_transport(transport, runs, purse)}
            for transport in TRANSPORTS
            if transport in runs
        ]
    return {"sources": sources, "transports": transports} if sources else {}


def _problem(test: Mapping[str, Any], found: Mapping[str, Any]) -> str:
    """Say why the evidence of a test gives no figure; empty if it may."""
    if test["outcome"] != "pass":
        return (
            f"not shown: the test ended with {test['outcome']}: {text(test['reason']) or 'no reason given'}"
        )
    return "" if found.get("schema") == SCHEMA and isinstance(found.get("transports"), list) else PROBLEM


def _source(
    test: Mapping[str, Any], found: Mapping[str, Any], simulated: bool, lost: int, problem: str
) -> dict[str, Any]:
    guest, about = (found.get(key) for key in ("guest", "about"))
    guest, about = (value if isinstance(value, Mapping) else {} for value in (guest, about))
    return {
        "test": str(test["id"]),
        "outcome": str(test["outcome"]),
        "simulated": simulated or found.get("simulated") is not False,
        "guest": {key: guest[key] for key in ("mib", "pages_per_second") if _whole(guest.get(key))},
        "about": {text(key): text(value) for key, value in list(about.items())[:MOST_NOTES]},
        "skipped": list(_skips(found.get("skipped"))),
        "lost": lost,
        "problem": problem,
    }


def _skips(found: Any) -> Iterator[dict[str, str]]:
    for entry in _list(found)[:MOST_NOTES]:
        if isinstance(entry, Mapping):
            yield {"transport": text(entry.get("transport", "")), "reason": text(entry.get("reason", ""))}


def _runs(found: Sequence[Any]) -> tuple[dict[str, list[Run]], int]:
    """Return the migrations by transport, and how many of them have no form, come twice or were too many."""
    good: dict[str, list[Run]] = {}
    for row in found[:MOST_NOTES]:
        row = row if isinstance(row, Mapping) else {}
        transport, rows = row.get("transport"), _list(row.get("runs"))
        read = [run for run in map(_run, rows[:MOST_RUNS]) if run is not None]
        if isinstance(transport, str) and transport in TRANSPORTS and read and len(read) == len(rows):
            good.setdefault(transport, read)
    return good, len(found) - len(good)


def _run(found: Any) -> Run | None:
    """Return one migration; None if a number is none, or nothing moved."""
    if not isinstance(found, Mapping):
        return None
    numbers = {name: value for name in NUMBERS if _whole(value := found.get(name)) and value}
    sides = {end: side for end in ENDS if isinstance(side := found.get(end), Mapping)}
    used = {end: float(value) for end, side in sides.items() if _real(value := side.get("cpu_seconds"))}
    downtime = found.get("downtime_ms")
    if len(numbers) < len(NUMBERS) or len(used) < len(ENDS) or not _whole(downtime):
        return None
    cores = {
        end: (float(side["cores"]), float(side["margin"]))
        for end, side in sides.items()
        if _real(side.get("cores")) and _real(side.get("margin"))
    }
    return Run(numbers, downtime, found.get("forced") is True, used, cores)


def _transport(transport: str, runs: Mapping[str, Sequence[Run]], purse: Purse) -> dict[str, Any]:
    """The figures of one transport: medians, and how many times as long stunnel took."""
    mine = runs[transport]
    middle = {name: statistics.median(run.numbers[name] for run in mine) for name in NUMBERS}
    return {
        "transport": transport,
        "runs": len(mine),
        "seconds": rounded(middle["ms"] / 1000),
        "arrived": rounded(middle["arrived_ms"] / 1000),
        "downtime_ms": rounded(statistics.median(run.downtime for run in mine)),
        "bytes": round(middle["bytes"]),
        "rounds": rounded(middle["rounds"]),
        "forced": sum(run.forced for run in mine),
        "ends": [_end(end, mine) for end in ENDS],
        "stunnel": _comparison(transport, runs, purse),
    }


def _end(end: str, runs: Sequence[Run]) -> dict[str, Any]:
    """One end: medians; its cores only where every migration told them."""
    known = [run.cores[end] for run in runs if end in run.cores]
    used = rounded(statistics.median(run.cpu[end] for run in runs))
    found = {"end": end, "cpu_seconds": used, "cores": None, "margin": None}
    if len(known) < len(runs):
        return found
    cores, margin = (rounded(statistics.median(part)) for part in zip(*known, strict=True))
    return found | {"cores": cores, "margin": margin}


def _comparison(transport: str, runs: Mapping[str, Sequence[Run]], purse: Purse) -> dict[str, Any] | None:
    """How many times as long stunnel took until all had arrived, by pairs of neighbors; None: no pairs."""
    both = [
        [float(run.numbers["arrived_ms"]) for run in runs.get(name, ())] for name in (transport, "stunnel")
    ]
    if transport == "stunnel" or not both[1] or len(both[0]) != len(both[1]) or not purse.spend():
        return None
    ratio = paired((TRANSPORTS[transport], both[0]), (TRANSPORTS["stunnel"], both[1]))
    few = ratio.pairs < FEW
    return {
        "ratio": rounded(ratio.ratio),
        "low": None if few else rounded(ratio.low),
        "high": None if few else rounded(ratio.high),
        "pairs": ratio.pairs,
        "state": state(ratio),
        "words": said(ratio),
    }


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _whole(value: Any) -> TypeGuard[int]:
    """Say whether it is a whole number from 0 that a counter can hold."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 53


def _real(value: Any) -> TypeGuard[float]:
    """Say whether it is a number from 0 that can be true; NaN is not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 <= value < 1e9
