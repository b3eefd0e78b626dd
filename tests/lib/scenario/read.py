"""Reads conditions.yaml: every mistake is named with its file, line and key, all of them at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import yaml

from offload.yamlfile import Item, read_yaml
from tests.lib.scenario.model import Bar, Dimension, Value

WORD = r"[A-Za-z0-9^.-]+"
TOP = ("schema", "dimensions", "triples")
DIMENSION = ("name", "why", "values", "from_profile")
REQUIRED = ("name", "words", "why", "source")
VALUE = (*REQUIRED, "needs", "excludes", "not_yet", "slow", "no_lab")
Names = Mapping[str, tuple[str, ...]]


def conditions(path: Path) -> tuple[tuple[Dimension, ...], tuple[tuple[str, ...], ...]]:
    """Return the dimensions of a file and its triples. ConfigError with every mistake in it."""
    root = read_yaml(path, path.name, "list of conditions")
    top = root.fields(TOP, TOP)
    root.log.check()
    if top["schema"].text() != "1":
        top["schema"].bad(f"{top['schema'].shown()}, wanted 1")
    rows = [(item, item.fields(DIMENSION, DIMENSION[:3])) for item in top["dimensions"].items()]
    root.log.check()
    names = {row["name"].text("a name", WORD): _names(row["values"]) for _, row in rows}
    if len(names) < len(rows):
        top["dimensions"].bad("a dimension is named twice")
    found = tuple(_dimension(row, names) for _, row in rows)
    triples = tuple(_triple(item, names) for item in top["triples"].items())
    root.log.check()
    return found, triples


def _names(values: Item) -> tuple[str, ...]:
    """The names of a dimension's values; twice the same is noted."""
    found: list[str] = []
    for item in values.items():
        name = item.fields(VALUE, REQUIRED).get("name")
        word = name.text("letters, digits, '^', '.' and '-'", WORD) if name else ""
        if word in found and name:
            name.bad(f"{word!r} is given twice")
        found.append(word)
    if not found:
        values.bad("no value at all")
    return tuple(found)


def _dimension(row: Mapping[str, Item], names: Names) -> Dimension:
    own = row["name"].text()
    values = tuple(_value(item, own, names) for item in row["values"].items())
    first = values[0] if values else None
    if first and (first.not_yet or first.slow or first.no_lab):
        row["values"].items()[0].bad("the first value is the plain one: it has to be made")
    flag = row["from_profile"].flag() if "from_profile" in row else False
    return Dimension(own, row["why"].text(), values, flag)


def _value(item: Item, own: str, names: Names) -> Value:
    raw = item.fields(VALUE, REQUIRED)
    keys = (*REQUIRED, "not_yet", "slow", "no_lab")
    text = {key: raw[key].text() if key in raw else "" for key in keys}
    bars = [*_bars(raw.get("needs"), own, names, turned=True), *_bars(raw.get("excludes"), own, names)]
    return Value(bars=tuple(bars), **text)


def _bars(item: Item | None, own: str, names: Names, *, turned: bool = False) -> list[Bar]:
    """Return what a value does not go with; `turned`: the file says what it needs."""
    found = []
    others = [name for name in names if name != own]
    for row in item.items() if item else []:
        raw = row.fields([*others, "because"], ("because",))
        if len(raw) != 2 or "because" not in raw:
            row.bad("wanted one other dimension and `because`")
            continue
        other = next(name for name in raw if name != "because")
        listed = [one.text("a value", WORD, names[other]) for one in raw[other].items()]
        barred = [name for name in names[other] if (name in listed) != turned]
        if not listed or not barred:
            raw[other].bad("no value is left" if listed else "no value is listed")
        found.append(Bar(other, tuple(barred), raw["because"].text()))
    return found


def _triple(item: Item, names: Names) -> tuple[str, ...]:
    """Three dimensions."""
    found = tuple(one.text("a dimension", WORD, tuple(names)) for one in item.items())
    if isinstance(item.node, yaml.SequenceNode) and len(set(found)) != 3:
        item.bad("wanted three dimensions")
    return found
