"""What a profile file must look like: reads nodes into a Profile and notes every problem with its line."""

from __future__ import annotations

import re
from pathlib import Path

from offload.profile_model import (
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
from offload.profile_yaml import Item, near, quoted

REQUIRED = (
    "schema", "id", "name", "vendor", "driver", "pci", "kconfig", "promises", "not_promised", "defaults",
    "steps", "counters", "sku", "firmware", "limitations",
)  # fmt: skip
KNOWN = (*REQUIRED, "notes", "plays")
NAME = r"[a-z0-9][a-z0-9_.-]{0,63}"
MODULE = r"[a-z0-9][a-z0-9_-]{0,55}"
COUNTER = r"[a-z0-9_]{1,64}"
PCI = r"([0-9a-f]{4}):([0-9a-f]{4})(?:-([0-9a-f]{4}))?"
TEST = "the test that meets it, tests/...::test_name (a weakness that none meets belongs under notes)"
LINK = r"https://[!-~]{4,400}|CVE-\d{4}-\d{4,7}"


def text(
    fields: dict[str, Item], key: str, wanted: str = "text", pattern: str = "", default: str = ""
) -> str:
    """The text of a key; `default` if it is not there (its absence is noted elsewhere)."""
    return fields[key].text(wanted, pattern) if key in fields else default


def entries(fields: dict[str, Item], key: str) -> list[Item]:
    """The entries of a list; none if the key is not there."""
    return fields[key].items() if key in fields else []


def pci_ids(items: list[Item]) -> tuple[PciId, ...]:
    """`15b3:101d` or a range `1425:6401-6409`, in lower case."""
    found = []
    for item in items:
        have = item.fields(("id", "name"), ("id", "name"))
        value = text(have, "id", "vendor:device in lower case, as in 15b3:101d or 1425:6401-6409", PCI)
        name = text(have, "name")
        if match := re.fullmatch(PCI, value):
            vendor, first, last = match.groups()
            ids = PciId(int(vendor, 16), int(first, 16), int(last or first, 16), name)
            if ids.first > ids.last:
                have["id"].bad(f"{quoted(value)}, wanted the lower end of the range first")
            found.append(ids)
    return tuple(found)


def kconfig(items: list[Item]) -> tuple[Kconfig, ...]:
    """Kernel options."""
    found = []
    for item in items:
        have = item.fields(("symbol", "wanted", "why"), ("symbol", "wanted", "why"))
        symbol = text(have, "symbol", "a symbol as in CONFIG_TLS_DEVICE", r"CONFIG_[A-Z0-9_]{1,80}")
        # YAML reads a bare y as the letter, as PyYAML does; m is text anyway
        wanted = have["wanted"].text("y or m", choices=("y", "m")) if "wanted" in have else ""
        found.append(Kconfig(symbol, wanted, text(have, "why")))
    return tuple(found)


def promises(item: Item | None) -> frozenset[Cell]:
    """direction -> version -> list of ciphers."""
    found: set[Cell] = set()
    directions = item.fields(DIRECTIONS, what="direction") if item else {}
    for direction, versions in directions.items():
        for version, ciphers in versions.fields(VERSIONS, what="TLS version").items():
            names = [c.text("a cipher", choices=CIPHERS) for c in ciphers.items()]
            found |= {Cell(direction, version, name) for name in names if name}
    return frozenset(found)


def _covers(have: dict[str, Item]) -> set[Cell]:
    """The cells that one entry of not_promised speaks of."""
    choices = {"direction": DIRECTIONS, "version": VERSIONS, "cipher": CIPHERS}
    wanted = {k: have[k].text(f"a {k}", choices=c) for k, c in choices.items() if k in have}
    return {cell for cell in ALL_CELLS if all(getattr(cell, k) == v for k, v in wanted.items())}


def reasons(items: list[Item], kept: frozenset[Cell], at: Item) -> tuple[tuple[Cell, str], ...]:
    """Why each cell that is not promised is not; the first entry that covers a cell counts."""
    found: dict[Cell, str] = {}
    for item in items:
        have = item.fields(("direction", "version", "cipher", "reason"), ("reason",))
        cells = _covers(have)
        why = text(have, "reason")
        if clash := sorted(cells & kept):
            item.bad(f"covers {clash[0]}, which `promises` promises: wanted one or the other")
        for cell in cells:
            found.setdefault(cell, why)
    open_cells = [str(cell) for cell in ALL_CELLS if cell not in kept and cell not in found]
    if open_cells:
        at.bad(f"no reason for {'; '.join(open_cells)}: wanted each here or in promises")
    return tuple((c, found[c]) for c in ALL_CELLS if c in found and c not in kept)


def defaults(item: Item | None) -> tuple[tuple[str, bool], ...]:
    """Whether the driver starts with a direction on."""
    have = item.fields(DIRECTIONS, DIRECTIONS) if item else {}
    return tuple((d, i.flag()) for d, i in have.items())


def steps(items: list[Item], kept: frozenset[Cell], at: Item) -> tuple[Step, ...]:
    """Modules to load and features to switch, in order; a direction has a switch if it is promised."""
    found = _steps(items)
    for direction in DIRECTIONS:
        promised = any(c.direction == direction for c in kept)
        switched = any(s.direction == direction and s.kind == "feature" for s in found)
        if promised and not switched:
            at.bad(f"{direction} is promised, wanted a step `feature: {FEATURES[direction]}`")
        if switched and not promised:
            at.bad(f"a step for {direction}, which promises nothing: wanted a promise or no step")
    return found


def _steps(items: list[Item]) -> tuple[Step, ...]:
    """The steps as they stand; features are those of `ethtool -k`."""
    found = []
    for item in items:
        have = item.fields(("modprobe", "feature", "direction", "why"), ("direction", "why"))
        kinds = [k for k in ("modprobe", "feature") if k in have]
        if len(kinds) != 1:
            item.bad("wanted exactly one of modprobe, feature")
            continue
        direction = have["direction"].text("tx or rx", choices=DIRECTIONS) if "direction" in have else ""
        what = text(have, kinds[0], "a module name", MODULE)
        if kinds == ["feature"] and direction and what and what != FEATURES[direction]:
            hint = near(what, [FEATURES[direction]])
            have["feature"].bad(f"{quoted(what)}, wanted {FEATURES[direction]} for {direction}{hint}")
        found.append(Step(kinds[0], what, direction, text(have, "why")))
    return tuple(found)


def _mapped(item: Item, known: tuple[str, ...]) -> dict[str, str]:
    """A list of kernel names, or a mapping of kernel name to driver's name."""
    if item.shown() == "a mapping":
        have = item.fields(known, what="counter")
        return {k: i.text("the driver's name of the counter", COUNTER) for k, i in have.items()}
    names = [(entry, entry.text("a counter name", COUNTER)) for entry in item.items()]
    for entry, name in names:
        if name and name not in known:
            entry.bad(
                f"unknown counter {quoted(name)}{near(name, known) or ', wanted a name of tls-offload.rst'}"
            )
    return {name: name for _, name in names if name in known}


def _counters(item: Item, direction: str) -> Counters:
    """Counters of one direction."""
    have = item.fields(("required", "optional", "dead", "own"), ("required",))
    known = KERNEL_COUNTERS[direction]
    mapped = {k: _mapped(have[k], known) if k in have else {} for k in ("required", "optional")}
    free = {
        k: tuple(i.text("a counter name", r"[a-z0-9_*]{1,64}") for i in entries(have, k))
        for k in ("dead", "own")
    }
    for name in {*mapped["required"]} & {*mapped["optional"], *free["dead"]}:
        item.bad(f"{name} is required and something else: wanted it in one list")
    names = {**mapped["optional"], **mapped["required"]}
    return Counters(
        tuple(mapped["required"]), tuple(mapped["optional"]), free["dead"], free["own"], tuple(names.items())
    )


def counters(item: Item | None, kept: frozenset[Cell]) -> CounterMap:
    """The counter map; a promised direction must have required counters."""
    have = item.fields(DIRECTIONS) if item else {}
    found = {d: _counters(i, d) for d, i in have.items()}
    for direction in {c.direction for c in kept}:
        if item and not found.get(direction, Counters()).required:
            item.bad(f"{direction} is promised but has no required counter: nothing could prove it")
    return CounterMap(found.get("tx", Counters()), found.get("rx", Counters()))


def need(item: Item | None) -> Need:
    """SKU or firmware."""
    have = item.fields(("need", "hints", "parts", "minimum"), ("need", "hints")) if item else {}
    parts = []
    least = have["minimum"].fields(("version", "gives"), ("version", "gives")) if "minimum" in have else {}
    for entry in entries(have, "parts"):
        part = entry.fields(("pattern", "crypto", "note"), ("pattern", "crypto", "note"))
        crypto = part["crypto"].flag() if "crypto" in part else False
        parts.append(Part(text(part, "pattern"), crypto, text(part, "note")))
    return Need(
        text(have, "need"), tuple(i.text() for i in entries(have, "hints")), tuple(parts),
        text(least, "version", "numbers and dots, as in 22.33.0783", r"\d+(\.\d+){1,5}"),
        text(least, "gives"),
    )  # fmt: skip


def _known(item: Item, keys: tuple[str, ...], ids: set[str]) -> dict[str, str]:
    """The texts of one known weakness; its id is not yet among `ids`."""
    have = item.fields(keys, keys)
    found = {key: text(have, key) for key in keys if key not in ("id", "link", "test")}
    found["id"] = text(have, "id", "a short name in lower case", NAME)
    if found["id"] in ids:
        have["id"].bad(f"{quoted(found['id'])} given twice")
    ids.add(found["id"])
    if "test" in keys:
        found["test"] = text(have, "test", TEST, r"tests/\S+\.py::test_\S+")
    return found | {"link": text(have, "link", "a public https:// link or a CVE number", LINK)}


def weaknesses(limits: list[Item], notes: list[Item]) -> tuple[tuple[Limitation, ...], tuple[Note, ...]]:
    """Known weaknesses, those that excuse a test's failure and those that excuse nothing; ids are unique."""
    ids: set[str] = set()
    return (
        tuple(Limitation(**_known(item, Limitation._fields, ids)) for item in limits),
        tuple(Note(**_known(item, Note._fields, ids)) for item in notes),
    )


def profile(root: Item, path: Path) -> Profile:
    """The whole file. ConfigError with every problem in it."""
    have = root.fields(KNOWN, REQUIRED)
    text(have, "schema", "1 (the only schema so far)", "1")
    ident = text(have, "id", "a short name in lower case", NAME)
    if ident and path.stem != ident:
        have["id"].bad(f"{quoted(ident)}, wanted {quoted(path.stem)}: the file's name")
    plays = text(have, "plays", "text that holds {profile}", r".*\{profile\}.*") or None
    kept = promises(have.get("promises"))
    found = Profile(
        ident, text(have, "name"), text(have, "vendor"), text(have, "driver", "a driver name", MODULE), plays,
        pci_ids(entries(have, "pci")), kconfig(entries(have, "kconfig")), kept,
        reasons(entries(have, "not_promised"), kept, have.get("not_promised", root)),
        defaults(have.get("defaults")), steps(entries(have, "steps"), kept, have.get("steps", root)),
        counters(have.get("counters"), kept), need(have.get("sku")), need(have.get("firmware")),
        *weaknesses(entries(have, "limitations"), entries(have, "notes")), str(path),
    )  # fmt: skip
    root.log.check()
    return found
