"""What errata.yaml must look like: the table of its keys, and what they say of one another."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from offload.errata.kernel import Series, series_of, version
from offload.yamlfile import SCHEMA, Item, Kind, fields, listed, quoted, read_yaml, record, text

KINDS = ("bug", "behavior")
PARTS = ("device", "software", "qdisc", "bonding", "mlx5", "ch_ktls")
DIRECTIONS = ("tx", "rx")


@dataclass(frozen=True)
class Span:
    """What is known of one series. `fixed`: the first Debian package with the fix, by its changelog;
    `has`, `lacks`: a version seen with or without it; `unknown`: why neither can be said."""

    fixed: str = ""
    has: str = ""
    lacks: str = ""
    unknown: str = ""


@dataclass(frozen=True)
class Erratum:
    """One known bug, or behavior that looks like one. `onward`: the series from which all have the fix;
    `pattern`: a regular expression for the failures it may explain; `test`: what they were testing."""

    id: str
    kind: str
    title: str
    part: str
    directions: tuple[str, ...]
    feature: str
    symptom: str
    do: str
    source: str
    driver: str = ""
    cve: tuple[str, ...] = ()
    commit: str = ""
    kernels: tuple[tuple[Series, Span], ...] = ()
    onward: Series | None = None
    pattern: str = ""
    test: str = ""


def read(path: Path) -> tuple[Erratum, ...]:
    """The errata of a file, in its order. ConfigError with every problem as `file:line: key: ...`."""
    root = read_yaml(path, path.name, "list of errata")
    found = fields(root, {"schema": SCHEMA, "errata": listed(ERRATUM, least=1)})[1]["errata"]
    root.log.check()
    return tuple(found)


def _onward(item: Item, have: Mapping[str, Item], found: Erratum) -> None:
    if found.onward and found.kernels and found.kernels[-1][0] >= found.onward:
        have["onward"].bad(f"{have['onward'].text()}, wanted a series after those of kernels")


def _expression(item: Item) -> str:
    """A regular expression; one that fits everything would explain any failure."""
    said = item.text()
    try:
        if said and re.search(said, ""):
            item.bad(f"{item.shown()}, wanted an expression that does not match an empty text")
    except re.error as exc:
        item.bad(f"{item.shown()}, wanted a regular expression ({exc})")
    return said


def _kernels(item: Item) -> tuple[tuple[Series, Span], ...]:
    """Return what is known per series; a version must be one of its series, and not fixed before it lacks."""
    found: dict[Series, Span] = {}
    for name, value in item.fields().items():
        series = series_of(name)
        if series is None:
            value.bad(f"{quoted(name)}, wanted a series as in 6.12")
            continue
        found[series] = _span(value, series)
    return tuple(sorted(found.items()))


def _span(item: Item, series: Series) -> Span:
    have, every = fields(item, dict.fromkeys(Span.__dataclass_fields__, text().optional()))
    said = {name: every[name] for name in have}
    numbers = {name: version(words) for name, words in said.items() if name != "unknown" and words}
    for name, number in numbers.items():
        if number is None or number[:2] != series:
            wanted = f"a version of {series[0]}.{series[1]}, as in {series[0]}.{series[1]}.9-1"
            have[name].bad(f"{quoted(said[name])}, wanted {wanted}")
    lacks, fixed = numbers.get("lacks"), numbers.get("fixed") or numbers.get("has")
    if lacks and fixed and lacks >= fixed:
        item.bad(f"{said['lacks']} cannot lack what an older version has")
    if not said or ("unknown" in said and len(said) > 1):
        item.bad("wanted unknown alone, or some of fixed, has, lacks")
    return Span(**said)


EXPRESSION = Kind(_expression).optional()
SERIES = Kind(lambda item: series_of(item.text("a series as in 6.12", r"\d+\.\d+")), None)
ROWS = {
    "id": text("a short name in lower case", r"[a-z0-9][a-z0-9-]{2,63}").once(),
    "kind": text(choices=KINDS),
    "title": text(),
    "part": text(choices=PARTS),
    "directions": listed(text(choices=DIRECTIONS), least=1),
    "feature": text(),
    "kernels": Kind(_kernels, ()),
    "symptom": text(),
    "do": text(),
    "source": text(),
    "driver": text("a driver name", r"[a-z0-9_]+").optional(),
    "cve": listed(text("a number as in CVE-2026-52974", r"CVE-\d{4}-\d{4,7}"), least=1).optional(),
    "commit": text("7 to 40 hexadecimal digits", r"[0-9a-f]{7,40}").optional(),
    "onward": SERIES.optional(),
    "pattern": EXPRESSION,
    "test": EXPRESSION,
}
ERRATUM = record(Erratum, ROWS, _onward)
