"""The entries of docs/reference/errata.md, made from errata.yaml; offload/cli/pages.py puts them in."""

from __future__ import annotations

import re

from offload.errata.file import PARTS, Erratum, Span
from offload.errata.kernel import Series
from offload.errata.match import load

SERIES: tuple[Series, ...] = ((6, 1), (6, 12), (7, 2), (7, 3))
HEADINGS = {
    "device": "The device path: what the kernel does for any card",
    "software": "Kernel TLS in software, which every fallback comes to",
    "qdisc": "Queueing disciplines",
    "bonding": "Bonding",
    "mlx5": "Driver mlx5_core",
    "ch_ktls": "Driver cxgb4 with ch_ktls",
}


def entries() -> str:
    """The sections of the page, one an entry."""
    errata = load()
    parts = [(part, [e for e in errata if e.part == part]) for part in PARTS]
    return "\n".join(line for part, found in parts for line in _part(HEADINGS[part], found))


def _part(heading: str, errata: list[Erratum]) -> list[str]:
    """The table and the entries of one part of the kernel."""
    names = [f"{x}.{y}" for x, y in SERIES]
    table = [f"| | {' | '.join(names)} |", f"|---|{'---|' * len(names)}"]
    for erratum in errata:
        cells = " | ".join(_cell(erratum, series) for series in SERIES)
        table.append(f"| [{erratum.id}](#{erratum.id}) | {cells} |")
    entries = [line for erratum in errata for line in _entry(erratum)]
    return [f"## {heading}", *table, "", *entries]


def _cell(erratum: Erratum, series: Series) -> str:
    """Return what is known of one series, in a few words."""
    if erratum.onward and series >= erratum.onward:
        return "none"
    return re.sub(r"~[^ ,]*", "", _span(dict(erratum.kernels).get(series, Span())))


def _span(span: Span) -> str:
    said = (("affected:", span.lacks), ("fixed in", span.fixed), ("not in", span.has))
    return ", ".join(f"{word} {known}" for word, known in said if known) or "?"


def _entry(erratum: Erratum) -> list[str]:
    """One erratum in full."""
    directions = " and ".join(d.capitalize() for d in erratum.directions)
    marks = [*erratum.cve, f"commit {erratum.commit}" if erratum.commit else ""]
    return [
        f"### {erratum.id}",
        f"{_escaped(erratum.title)}",
        "",
        f"- {', '.join([erratum.kind.capitalize(), directions, *filter(None, marks)])}",
        f"- Concerns: {_escaped(erratum.feature)}",
        f"- Seen as: {_escaped(erratum.symptom)}",
        f"- Kernels: {_kernels(erratum)}",
        f"- What to do: {_escaped(erratum.do)}",
        f"- Source: {_escaped(erratum.source)}",
        "",
    ]


def _kernels(erratum: Erratum) -> str:
    """Every series of which something is known."""
    said = [
        f"{x}.{y}: {span.unknown and f'? ({_escaped(span.unknown)})' or _span(span)}"
        for (x, y), span in erratum.kernels
    ]
    onward = f"{erratum.onward[0]}.{erratum.onward[1]} and later: none" if erratum.onward else ""
    return "; ".join([*said, onward] if onward else said)


def _escaped(text: str) -> str:
    """Text as Markdown shows it unchanged."""
    return "".join(f"\\{char}" if char in "\\`*_<>|[]" else char for char in text)
