"""docs/reference/errata.md, made from errata.yaml: `python -m offload.errata.page > errata.md`."""

from __future__ import annotations

import re
import sys

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
HEAD = """# Known kernel bugs

When a test fails on a kernel that has, or may have, a bug whose symptom fits the message, the report and
the terminal name that bug with the failure. **The outcome does not change.** To tell the bug from the card,
test the same with software kernel TLS on the same kernel, in a checkout. Only a difference counts against
the card.

```
.venv/bin/python -m pytest tests/sw-fallback -k NAME --kernel 6.1    # most tests have the same name there
```

| in a table | means |
|---|---|
| fixed in V | Debian's package V was the first with the fix, by its changelog; earlier ones are affected |
| affected: V | we read or ran version V, and it is affected |
| not affected: V | we read version V, and it is not affected; the first one with the fix is not recorded |
| not affected | no version of the series is affected |
| ? | unknown: nothing is recorded, or we could not find out |

The tools identify a kernel by `uname -r` and, on Debian, by its package version: `6.1.0-56-amd64` alone does
not say which stable release it is, and then most answers are *unknown*. Packages rebuilt for an older Debian
(`~bpo12+1`, `~deb12u1`) count as the original. An older version number of another vendor's kernel proves
nothing, because vendors back-port fixes: *unknown*. A *bug* has a fix somewhere, or needs one; *behavior* is
how the kernel is meant to work, and easily mistaken for a fault of the card.

*Source* names lines of the kernel's source (`6.1:529` is line 529 in Debian's linux-source 6.1.192; 6.12 is
6.12.95 and 7.2 is 7.2.12); Debian's changelog of its package linux, which lists a fix by its title; a public
record; or a run of this project.
"""
TAIL = """## Where this page comes from

It is made from [errata.yaml](../../offload/errata/errata.yaml). Edit that, not this page, and then run:

```
.venv/bin/python -m offload.errata.page > docs/reference/errata.md
```
"""


def page() -> str:
    """The whole page."""
    errata = load()
    parts = [(part, [e for e in errata if e.part == part]) for part in PARTS]
    return "\n".join([HEAD, *(line for part, found in parts for line in _part(HEADINGS[part], found)), TAIL])


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
        return "not affected"
    return re.sub(r"~[^ ,]*", "", _span(dict(erratum.kernels).get(series, Span())))


def _span(span: Span) -> str:
    said = (("affected:", span.lacks), ("fixed in", span.fixed), ("not affected:", span.has))
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
    if erratum.onward:
        said.append(f"{erratum.onward[0]}.{erratum.onward[1]} and later: not affected")
    return "; ".join(said)


def _escaped(text: str) -> str:
    """Text as Markdown shows it unchanged."""
    return "".join(f"\\{char}" if char in "\\`*_<>|[]" else char for char in text)


if __name__ == "__main__":
    sys.stdout.write(page())
