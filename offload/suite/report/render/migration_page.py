"""The section on live migrations for people: a table by transport on the page, a line in the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from offload.suite.report.cpu import words
from offload.suite.report.migration import ENDS, TRANSPORTS
from offload.suite.report.render.svg import figure

MIB = 1 << 20
# XAPI's stunnel at both ends, and kernel TLS by software at the source
PUBLISHED = {"idle": 1.13, "medium": 1.46, "thrashing": 1.60}
CITE = "XAPI, pull request 7154"
UNTOLD = "times of a simulated card say nothing about a card, so they are in report.json only"


def page(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return all that templates/migration.html shows of a report's section; empty for a report without it."""
    if not section:
        return {}
    sources = [
        dict(source)
        | {"rows": [_row(transport) for transport in section["transports"] if transport["source"] == number]}
        for number, source in enumerate(section["sources"])
    ]
    for source in sources:
        source["cores"] = any(end["cores"] for row in source["rows"] for end in row["ends"])
        source["said"] = _guest(source["guest"])
    return {
        "sources": sources,
        "simulated": any(source["simulated"] for source in sources),
        "mark": words.MARK,
        "untold": UNTOLD,
        "names": TRANSPORTS,
        "published": ", ".join(f"{ratio:.2f} ({guest})" for guest, ratio in PUBLISHED.items()),
        "cite": CITE,
    }


def _guest(guest: Mapping[str, int]) -> str:
    """The guest in words: `a guest of 6 MiB that writes 20 pages a second`."""
    size = f" of {guest['mib']:,} MiB" if guest.get("mib") else ""
    rate = f" that writes {guest['pages_per_second']:,} pages a second" if "pages_per_second" in guest else ""
    return f"a guest{size}{rate}"


def _row(transport: Mapping[str, Any]) -> dict[str, Any]:
    """One transport as text."""
    ends = {end["end"]: end for end in transport["ends"]}
    comparison = transport["stunnel"]
    return {
        "name": TRANSPORTS[transport["transport"]],
        "runs": transport["runs"],
        "seconds": f"{transport['seconds']:.2f}",
        "arrived": f"{transport['arrived']:.2f}",
        "downtime": f"{transport['downtime_ms']:.0f}",
        "mib": figure(transport["bytes"] / MIB),
        "rounds": f"{transport['rounds']:g}",
        "forced": transport["forced"],
        "ends": [{"cpu": f"{ends[end]['cpu_seconds']:.2f}", "cores": _cores(ends[end])} for end in ENDS],
        "ratio": "" if comparison is None else f"{comparison['ratio']:.2f}",
        "spread": "" if comparison is None else words.ends(comparison),
        "few": comparison is not None and comparison["state"] == "few",
    }


def _cores(end: Mapping[str, Any]) -> str:
    """Active cores with the margin of the clocks."""
    return "" if end["cores"] is None else f"{end['cores']:.2f} \u00b1{end['margin']:.2f} cores"


def lines(section: Mapping[str, Any]) -> Iterator[str]:
    """Yield a line per transport for the terminal, and one for each test that gives no figure."""
    hidden = [
        transport
        for transport in section["transports"]
        if section["sources"][transport["source"]]["simulated"]
    ]
    if hidden:
        yield f"{len(hidden)} transports moved the guest, which arrived equal; {UNTOLD}"
    for transport in (transport for transport in section["transports"] if transport not in hidden):
        row = _row(transport)
        took = f"{row['arrived']:>6} s, down {row['downtime']} ms, {row['mib']} MiB"
        used = f"CPU {' s + '.join(end['cpu'] for end in row['ends'])} s"
        comparison = f"; stunnel takes {row['ratio']}x" if row["ratio"] else ""
        yield f"{row['name']:<21}{took}, {used}{comparison}"
    yield from (f"{s['test']}: {s['problem']}" for s in section["sources"] if s["problem"])
