"""What a profile file must look like: the table of its keys, and what they say of one another."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from offload.card.profile_model import (
    ALL_CELLS,
    CIPHERS,
    DIRECTIONS,
    FEATURES,
    KERNEL_COUNTERS,
    VERSIONS,
    Cell,
    CounterMap,
    Counters,
    Kconfig,
    Limitation,
    Need,
    Note,
    Part,
    PciId,
    Profile,
    Step,
)
from offload.yamlfile import SCHEMA, Item, Kind, fields, flag, listed, mapped, near, quoted, record, text

NAME = r"[a-z0-9][a-z0-9_.-]{0,63}"
MODULE = r"[a-z0-9][a-z0-9_-]{0,55}"
PCI = r"([0-9a-f]{4}):([0-9a-f]{4})(?:-([0-9a-f]{4}))?"
TEST = "the test that meets it, tests/...::test_name (a weakness that none meets belongs under notes)"
COUNTER = text("the driver's name of the counter", r"[a-z0-9_]{1,64}")
SHORT = text("a short name in lower case", NAME)
CONDITION = text("a condition of scenarios, as in ip=v4-options", r"[a-z]+=[a-z0-9-]+")
LINK = text("a public https:// link or a CVE number", r"https://[!-~]{4,400}|CVE-\d{4}-\d{4,7}")


def pci_id(id: str, name: str) -> PciId:
    """`15b3:101d` or a range `1425:6401-6409`, in lower case."""
    match = re.fullmatch(PCI, id)
    vendor, first, last = match.groups() if match else ("0", "0", "0")
    return PciId(int(vendor, 16), int(first, 16), int(last or first, 16), name)


def pci_range(item: Item, ids: PciId) -> None:
    """Note a range that ends before it begins."""
    if ids.first > ids.last:
        item.bad(f"{item.shown()}, wanted the lower end of the range first")


def _range(item: Item, have: Mapping[str, Item], ids: PciId) -> None:
    pci_range(have["id"], ids)


def _step(modprobe: str, feature: str | None, direction: str, why: str) -> Step:
    kind, what = ("modprobe", modprobe) if feature is None else ("feature", feature)
    return Step(kind, what, direction, why)


def _one_step(item: Item, have: Mapping[str, Item], step: Step) -> None:
    """A step does one thing; features are those of `ethtool -k`."""
    if len({"modprobe", "feature"} & {*have}) != 1:
        item.bad("wanted exactly one of modprobe, feature")
    elif step.kind == "feature" and step.what and step.direction and step.what != FEATURES[step.direction]:
        wanted = FEATURES[step.direction]
        hint = near(step.what, [wanted])
        have["feature"].bad(f"{quoted(step.what)}, wanted {wanted} for {step.direction}{hint}")


def _names(direction: str) -> Kind:
    """A list of kernel names, or a mapping of kernel name to driver's name."""
    known = KERNEL_COUNTERS[direction]
    renamed = mapped(COUNTER, known, what="counter")

    def take(item: Item) -> dict[str, str]:
        if item.shown() == "a mapping":
            return dict(renamed.take(item))
        names = [(entry, entry.text("a counter name", r"[a-z0-9_]{1,64}")) for entry in item.items()]
        for entry, name in names:
            if name and name not in known:
                hint = near(name, known) or ", wanted a name of tls-offload.rst"
                entry.bad(f"unknown counter {quoted(name)}{hint}")
        return {name: name for _, name in names if name in known}

    return Kind(take, {})


def _counters(
    required: dict[str, str],
    optional: dict[str, str],
    dead: tuple[str, ...],
    absent: tuple[str, ...],
    own: tuple[str, ...],
) -> Counters:
    names = tuple({**optional, **required}.items())
    return Counters(tuple(required), tuple(optional), dead, absent, own, names)


def _lists(item: Item, have: Mapping[str, Item], found: Counters) -> None:
    for name in {*found.required} & {*found.optional, *found.dead}:
        item.bad(f"{name} is required and something else: wanted it in one list")
    for name in {*found.absent} & {*found.required, *found.optional, *found.dead}:
        item.bad(f"{name} is absent and in another list: wanted it in one")


def _direction(direction: str) -> Kind:
    """The counters of one direction."""
    names, free = _names(direction), listed(text("a counter name", r"[a-z0-9_*]{1,64}")).optional()
    absent = listed(text(choices=KERNEL_COUNTERS[direction])).optional()
    rows = {"required": names, "optional": names.optional(), "dead": free, "absent": absent, "own": free}
    return record(_counters, rows, _lists).optional()


def _need(need: str, hints: tuple[str, ...], parts: tuple[Part, ...], minimum: dict[str, str]) -> Need:
    return Need(need, hints, parts, minimum["version"], minimum["gives"])


def _known(make: type[Limitation] | type[Note]) -> Kind:
    """Known weaknesses; ids are unique in the file."""
    rows = {key: text() for key in make._fields} | {"id": SHORT.once(), "link": LINK}
    if make is Limitation:
        rows["test"] = text(TEST, r"tests/\S+\.py::test_\S+")
        rows["no_resync"] = CONDITION.optional()
    else:
        rows["warn"] = text(choices=DIRECTIONS).optional()
    return listed(record(make, rows))


def _reason(item: Item) -> tuple[Item, dict[str, str]]:
    """An entry of not_promised, and what it says: a key that is not there covers all of its values."""
    have, said = fields(item, REASON)
    return item, {key: said[key] for key in have}


REASON = {
    "direction": text(choices=DIRECTIONS).optional(),
    "version": text(choices=VERSIONS).optional(),
    "cipher": text(choices=CIPHERS).optional(),
    "reason": text(),
}
OLDEST = {"version": text("numbers and dots, as in 22.33.0783", r"\d+(\.\d+){1,5}"), "gives": text()}
PART = {"pattern": text(), "crypto": flag(), "note": text()}
NEED_ROWS = {
    "need": text(),
    "hints": listed(text()),
    "parts": listed(record(Part, PART)).optional(),
    "minimum": record(dict, OLDEST).optional(),
}
NEED = record(_need, NEED_ROWS)
PCI_ID = {
    "id": text("vendor:device in lower case, as in 15b3:101d or 1425:6401-6409", PCI),
    "name": text(),
}
KCONFIG = {
    "symbol": text("a symbol as in CONFIG_TLS_DEVICE", r"CONFIG_[A-Z0-9_]{1,80}"),
    "wanted": text(choices=("y", "m")),  # YAML reads a bare y as the letter, as PyYAML does
    "why": text(),
}
STEP = {
    "modprobe": text("a module name", MODULE).optional(),
    "feature": text("a feature", MODULE).optional(None),
    "direction": text(choices=DIRECTIONS),
    "why": text(),
}
BY_VERSION = mapped(listed(text(choices=CIPHERS)), VERSIONS, what="TLS version")
ROWS = {
    "schema": SCHEMA,
    "id": SHORT,
    "name": text(),
    "vendor": text(),
    "driver": text("a driver name", MODULE),
    "pci": listed(record(pci_id, PCI_ID, _range)),
    "kconfig": listed(record(Kconfig, KCONFIG)),
    "promises": mapped(BY_VERSION, DIRECTIONS, what="direction"),
    "later": mapped(BY_VERSION, DIRECTIONS, what="direction").optional(),
    "not_promised": listed(Kind(_reason)),
    "defaults": mapped(flag(), DIRECTIONS, DIRECTIONS),
    "steps": listed(record(_step, STEP, _one_step)),
    "counters": record(CounterMap, {d: _direction(d) for d in DIRECTIONS}),
    "sku": NEED,
    "firmware": NEED,
    "limitations": _known(Limitation),
    "notes": _known(Note).optional(),
    "plays": text("text that holds {profile}", r".*\{profile\}.*").optional(),
}


def _reasons(
    said: Sequence[tuple[Item, Mapping[str, str]]], kept: frozenset[Cell], at: Item
) -> tuple[tuple[Cell, str], ...]:
    """Why each cell that is not promised is not; the first entry that covers a cell counts."""
    found: dict[Cell, str] = {}
    for item, row in said:
        cells = {c for c in ALL_CELLS if all(row.get(k, v) == v for k, v in c._asdict().items())}
        if clash := sorted(cells & kept):
            item.bad(f"covers {clash[0]}, which `promises` promises: wanted one or the other")
        for cell in cells:
            found.setdefault(cell, row.get("reason", ""))
    open_cells = [str(cell) for cell in ALL_CELLS if cell not in kept and cell not in found]
    if open_cells:
        at.bad(f"no reason for {'; '.join(open_cells)}: wanted each here or in promises")
    return tuple((c, found[c]) for c in ALL_CELLS if c in found and c not in kept)


def _promised_directions(have: Mapping[str, Item], said: Mapping[str, Any], root: Item) -> None:
    """A direction has a switch if it is promised and only then, and counters that can prove it."""
    steps = have.get("steps", root)
    for direction in DIRECTIONS:
        promised = any(c.direction == direction for c in said["promises"])
        switched = any(s.direction == direction and s.kind == "feature" for s in said["steps"])
        if promised and not switched:
            steps.bad(f"{direction} is promised, wanted a step `feature: {FEATURES[direction]}`")
        if switched and not promised:
            steps.bad(f"a step for {direction}, which promises nothing: wanted a promise or no step")
        if promised and "counters" in have and not said["counters"].required(direction):
            have["counters"].bad(f"{direction} is promised but has no required counter to prove it")


def _cells(rows: Mapping[str, Mapping[str, Sequence[str]]]) -> frozenset[Cell]:
    return frozenset(Cell(d, v, c) for d, by in rows.items() for v, names in by.items() for c in names if c)


def profile(root: Item, path: Path) -> Profile:
    """The whole file. ConfigError with every problem in it."""
    have, said = fields(root, ROWS)
    if said["id"] and path.stem != said["id"]:
        have["id"].bad(f"{quoted(said['id'])}, wanted {quoted(path.stem)}: the file's name")
    kept, later = _cells(said["promises"]), _cells(said["later"])
    if early := sorted(later & kept):
        have["later"].bad(f"{early[0]} is promised already: wanted it in promises or here")
    said.update(
        promises=kept, later=later, defaults=tuple(said["defaults"].items()), plays=said["plays"] or None
    )
    reasons = _reasons(said.pop("not_promised"), kept, have.get("not_promised", root))
    _promised_directions(have, said, root)
    root.log.check()
    del said["schema"]
    return Profile(reasons=reasons, path=str(path), **said)
