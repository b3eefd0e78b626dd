"""Reads a small YAML file by a table of what it must hold; bounded, as it may come from a stranger."""

from __future__ import annotations

import errno
import math
import os
import re
import stat
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import yaml

from offload.errors import ConfigError

# A profile is about 100 lines, errata are 450; these limits leave room and stop what is neither.
MAX_BYTES = 256 * 1024
MAX_DEPTH = 8
MAX_EVENTS = 20_000
MAX_TEXT = 600
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml's, where PyYAML has it, is ten times as fast


def near(word: str, choices: Iterable[str]) -> str:
    """` (did you mean X?)` for the closest choice, or nothing."""
    known = list(choices)
    if begun := [c for c in known if len(word) > 3 and c.startswith(word)]:
        return f" (did you mean {begun[0]}?)"
    import difflib  # only for a mistake

    close = difflib.get_close_matches(word, known, n=1, cutoff=0.6)
    return f" (did you mean {close[0]}?)" if close else ""


def quoted(text: str) -> str:
    """The text as given, safe for a terminal and not longer than it is worth."""
    return repr(text if len(text) <= 60 else text[:57] + "...")


@dataclass
class Log:
    """Every problem found in one file, so that the person can correct all of them at once."""

    file: str
    lines: list[tuple[int, str]] = field(default_factory=list)
    ids: set[str] = field(default_factory=set)  # met so far: each may be given once in a file

    def add(self, line: int, key: str, problem: str) -> None:
        """Note `file:line: key: problem`."""
        self.lines.append(
            (line, f"{self.file}:{line}: {key}: {problem}" if key else f"{self.file}:{line}: {problem}")
        )

    def check(self) -> None:
        """Raise ConfigError with every problem, in the order of the file; nothing if there is none."""
        if self.lines:
            raise ConfigError("\n".join(text for _, text in sorted(self.lines)))


class Item(NamedTuple):
    """One YAML node, where it stands (`key` is the dotted path to it) and where problems go."""

    node: yaml.Node
    key: str
    log: Log

    @property
    def line(self) -> int:
        """Line in the file, from 1."""
        return int(self.node.start_mark.line) + 1

    def bad(self, problem: str) -> None:
        """Note a problem at this node."""
        self.log.add(self.line, self.key, problem)

    def shown(self) -> str:
        """Return what was there, in a few words."""
        if isinstance(self.node, yaml.ScalarNode):
            return quoted(str(self.node.value))
        return "a list" if isinstance(self.node, yaml.SequenceNode) else "a mapping"

    def is_a(self, *types: str) -> bool:
        """Whether YAML takes the scalar for one of these: str, bool, int, float, null."""
        return isinstance(self.node, yaml.ScalarNode) and self.node.tag.rpartition(":")[2] in types

    def text(self, wanted: str = "text", pattern: str = "", choices: Sequence[str] = ()) -> str:
        """The scalar as text; '' and a note if it is something else, too long, or does not fit."""
        scalar = isinstance(self.node, yaml.ScalarNode) and not self.is_a("null", "bool")
        value = " ".join(str(self.node.value).split()) if scalar else ""
        fits = value in choices if choices else re.fullmatch(pattern or ".+", value)
        if fits and len(value) <= MAX_TEXT and value.isprintable():
            return value
        wanted = f"one of {', '.join(choices)}{near(value, choices)}" if choices else wanted
        self.bad(f"{self.shown()}, wanted {wanted}")
        return ""

    def flag(self, wanted: str = "on or off") -> bool:
        """The scalar as a switch."""
        if self.is_a("bool"):
            return str(self.node.value).lower() in ("on", "yes", "true")
        self.bad(f"{self.shown()}, wanted {wanted}")
        return False

    def number(self, wanted: str, least: float, most: float, whole: bool) -> float:
        """The scalar as a number within bounds: an int if it is written as one."""
        try:
            value = int(self.node.value) if self.is_a("int") else float(self.node.value)
            if self.is_a("int", *([] if whole else ["float"])) and least <= value <= most:
                return value
        except (TypeError, ValueError):
            pass
        self.bad(f"{self.shown()}, wanted {wanted}")
        return 0

    def items(self, least: int = 0) -> list[Item]:
        """The entries of a list."""
        if isinstance(self.node, yaml.SequenceNode) and len(self.node.value) >= least:
            return [Item(n, f"{self.key}[{i}]", self.log) for i, n in enumerate(self.node.value)]
        self.bad(f"{self.shown()}, wanted a list{' with entries' if least else ''}")
        return []

    def fields(
        self, known: Sequence[str] | None = None, required: Sequence[str] = (), *, what: str = "key"
    ) -> dict[str, Item]:
        """The entries of a mapping; unknown (if `known` is given), repeated and missing keys are noted."""
        if not isinstance(self.node, yaml.MappingNode):
            self.bad(f"{self.shown()}, wanted a mapping{' with ' + ', '.join(known) if known else ''}")
            return {}
        found: dict[str, Item] = {}
        for key_node, value in self.node.value:
            name = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
            line, shown = int(key_node.start_mark.line) + 1, Item(key_node, "", self.log).shown()
            if name in found:
                self.log.add(line, self.key, f"{what} {shown} given twice")
            elif not name or (known is not None and name not in known):
                wanted = f"one of {', '.join(known)}" if known else "a name"
                wanted = near(name, known or ()) or f", wanted {wanted}"
                self.log.add(line, self.key, f"unknown {what} {shown}{wanted}")
            else:
                found[name] = Item(value, f"{self.key}.{name}".lstrip("."), self.log)
        for name in required:
            if name not in found:
                self.bad(f"{what} {name} is missing")
        return found


class Kind(NamedTuple):
    """What a key may hold: `take` reads it, noting problems; `empty` stands in where it is not there."""

    take: Callable[[Item], Any]
    empty: Any = ""
    needed: bool = True

    def optional(self, *empty: Any) -> Kind:
        """The same, for a key that may be missing: this value then stands in, or the kind's own."""
        return Kind(self.take, empty[0] if empty else self.empty, needed=False)

    def once(self) -> Kind:
        """The same, for an id that no other entry of the file has."""
        return self._replace(take=lambda item: _once(item, self.take(item)))


Rows = Mapping[str, Kind]
Check = Callable[[Item, Mapping[str, Item], Any], None]


def text(wanted: str = "text", pattern: str = "", choices: Sequence[str] = ()) -> Kind:
    return Kind(lambda item: item.text(wanted, pattern, choices))


def flag(wanted: str = "on or off") -> Kind:
    """A switch."""
    return Kind(lambda item: item.flag(wanted), False)


def number(
    wanted: str = "a number", least: float = -math.inf, most: float = math.inf, whole: bool = False
) -> Kind:
    """A number within bounds."""
    return Kind(lambda item: item.number(wanted, least, most, whole), 0)


def listed(of: Kind, least: int = 0) -> Kind:
    """A list, as a tuple."""
    return Kind(lambda item: tuple(of.take(entry) for entry in item.items(least)), ())


def mapped(
    of: Kind, keys: Sequence[str] | None = None, needed: Sequence[str] = (), what: str = "key"
) -> Kind:
    """A mapping of any of these keys (None: of any at all) to one kind, as a dict."""
    return Kind(lambda item: {k: of.take(v) for k, v in item.fields(keys, needed, what=what).items()}, {})


def record(make: Callable[..., Any], rows: Rows, check: Check | None = None) -> Kind:
    """A mapping with a kind for each key, as what `make` makes of them; `check` compares keys."""

    def take(item: Item) -> Any:
        have, said = fields(item, rows)
        found = make(**said)
        if check:
            check(item, have, found)
        return found

    return Kind(take, make(**{key: kind.empty for key, kind in rows.items()}))


def fields(item: Item, rows: Rows) -> tuple[dict[str, Item], dict[str, Any]]:
    """The entries of a mapping that are there, and the value of each row."""
    have = item.fields(tuple(rows), [key for key, kind in rows.items() if kind.needed])
    return have, {k: kind.take(have[k]) if k in have else kind.empty for k, kind in rows.items()}


def _once(item: Item, ident: str) -> str:
    """Note an id that was met before."""
    if ident in item.log.ids:
        item.bad(f"{quoted(ident)} given twice")
    item.log.ids.update([ident] if ident else [])
    return ident


SCHEMA = text("1 (the only schema so far)", "1")


def _refuse_odd(text: str, log: Log, what: str) -> None:
    """Walk the events, without building anything: no aliases, no tags, not deep, not long, one document."""
    depth = documents = 0
    for count, event in enumerate(yaml.parse(text, Loader=LOADER)):
        line = event.start_mark.line + 1 if event.start_mark else 1
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        problem = ""
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            problem = "anchors and aliases are not supported: write the value in full"
        elif tag := getattr(event, "tag", None):
            problem = f"tag {quoted(str(tag))} is not supported: write a plain value"
        elif depth > MAX_DEPTH:
            problem = f"nested deeper than {MAX_DEPTH}: this is not a {what}"
        elif count > MAX_EVENTS or documents > 1:
            problem = "too many entries" if documents < 2 else f"a second document: one file is one {what}"
        if problem:
            log.add(line, "", problem)
            log.check()


def read_plain(path: Path, most: int) -> bytes:
    """Up to `most` bytes of a file. OSError; a pipe or a device is none, and is not waited for."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        return file.read(most)


def read_yaml(path: Path, shown: str, what: str) -> Item:
    """The root node of a file that is to be a `what`. ConfigError `file:line: ...` if it is no small YAML."""
    try:
        return parse(read_plain(path, MAX_BYTES + 1), shown, what)
    except OSError as exc:
        raise ConfigError(f"{shown}: cannot read: {exc.strerror}") from None


def parse(raw: bytes, shown: str, what: str) -> Item:
    """The root node of these bytes, as read_yaml()."""
    log = Log(shown)
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{shown}: larger than {MAX_BYTES // 1024} KiB: this is not a {what}")
    try:
        text = raw.decode("utf-8")
        _refuse_odd(text, log, what)
        root = yaml.compose(text, Loader=LOADER)
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        raise ConfigError(f"{shown}:{line}: not UTF-8 text") from None
    except yaml.MarkedYAMLError as exc:
        mark = exc.problem_mark or exc.context_mark
        raise ConfigError(
            f"{shown}:{mark.line + 1 if mark else 1}: not YAML: {exc.problem or exc.context}"
        ) from None
    except yaml.YAMLError as exc:
        raise ConfigError(f"{shown}:1: not YAML: {' '.join(str(exc).split())[:200]}") from None
    if root is None:
        raise ConfigError(f"{shown}:1: empty file, wanted a {what}")
    return Item(root, "", log)
