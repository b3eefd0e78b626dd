"""The conditions that a run crossed, for a person: lines for the terminal, and the table of the page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MORE = {
    "quick": "--depth standard crosses all pairs, --depth deep also the triples",
    "standard": "--depth deep also crosses the triples",
}


def lines(section: Mapping[str, Any]) -> Iterator[str]:
    """Yield what was crossed, and what this depth does not see."""
    ran = section["scenarios"]
    depth = f"depth {section['depth']}" if section["depth"] else "chosen scenarios"
    words = (("failed", ran["failed"]), ("not made", ran["not_made"]))
    rest = "".join(f", {count} {word}" for word, count in words if count)
    yield f"{depth}: {ran['passed']} of {ran['planned']} scenarios passed{rest}"
    yield share("pairs", section["pairs"])
    for triple in section["triples"]:
        yield share(f"triples of {', '.join(triple['of'])}", triple)
    absent = [row for row in section["conditions"] if "why" in row]
    if absent:
        yield f"never made: {', '.join(_name(row) for row in absent)}"
    if more := MORE.get(section["depth"]):
        yield more


def share(what: str, count: Mapping[str, Any]) -> str:
    """One count in words."""
    said = f"{count['covered']:,} of {count['possible']:,} {what} ({count['percent']:g} %)"
    return said + (f", {count['impossible']:,} impossible" if count["impossible"] else "")


def _name(row: Mapping[str, Any]) -> str:
    return f"{row['dimension']} {row['value']}"


def page(section: Mapping[str, Any]) -> dict[str, Any]:
    """Return the section for the page; empty if the run had no scenarios."""
    if not section:
        return {}
    said = list(lines(section))
    absent = {(row["dimension"], row["value"]) for row in section["conditions"] if "why" in row}
    never = {(row["dimension"], row["value"]): row["with"] for row in section["never"]}
    rows: list[dict[str, Any]] = []
    for row in section["conditions"]:
        one = (row["dimension"], row["value"])
        rest = never.get(one, {}) if one not in absent else {}
        kept = {name: [v for v in values if (name, v) not in absent] for name, values in rest.items()}
        words = "; ".join(f"{name} {', '.join(values)}" for name, values in kept.items() if values)
        rows.append(
            row | {"words": row.get("why", "") or words, "first": not rows or rows[-1]["dimension"] != one[0]}
        )
    return {"said": said[0], "counts": said[1:], "rows": rows, "impossible": section["impossible"]}
