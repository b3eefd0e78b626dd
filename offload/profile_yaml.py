"""Reads a small YAML file as nodes that know their line; bounded, as a profile may come from a stranger."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import yaml

from offload.errors import ConfigError

# A profile is about 100 lines; these limits leave room for ten times that and stop what is no profile.
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
        """What was there, in a few words."""
        if isinstance(self.node, yaml.ScalarNode):
            return quoted(self.node.value)
        return "a list" if isinstance(self.node, yaml.SequenceNode) else "a mapping"

    def text(self, wanted: str = "text", pattern: str = "", choices: Sequence[str] = ()) -> str:
        """The scalar as text; '' and a note if it is something else, too long, or does not fit."""
        node = self.node
        odd = not isinstance(node, yaml.ScalarNode) or node.tag.endswith((":null", ":bool"))
        value = "" if odd else " ".join(str(node.value).split())
        if odd or not value or len(value) > MAX_TEXT or not value.isprintable():
            self.bad(f"{self.shown()}, wanted {wanted}")
            return ""
        if choices and value not in choices:
            self.bad(f"{quoted(value)}, wanted one of {', '.join(choices)}{near(value, choices)}")
            return ""
        if pattern and not re.fullmatch(pattern, value):
            self.bad(f"{quoted(value)}, wanted {wanted}")
            return ""
        return value

    def flag(self) -> bool:
        """The scalar as a switch."""
        if isinstance(self.node, yaml.ScalarNode) and self.node.tag.endswith(":bool"):
            return str(self.node.value).lower() in ("on", "yes", "true")
        self.bad(f"{self.shown()}, wanted on or off")
        return False

    def items(self) -> list[Item]:
        """The entries of a list."""
        if isinstance(self.node, yaml.SequenceNode):
            return [Item(n, f"{self.key}[{i}]", self.log) for i, n in enumerate(self.node.value)]
        self.bad(f"{self.shown()}, wanted a list")
        return []

    def fields(
        self, known: Sequence[str], required: Sequence[str] = (), *, what: str = "key"
    ) -> dict[str, Item]:
        """The entries of a mapping by key; unknown, repeated and missing keys are noted."""
        if not isinstance(self.node, yaml.MappingNode):
            self.bad(f"{self.shown()}, wanted a mapping with {', '.join(known)}")
            return {}
        found: dict[str, Item] = {}
        for key_node, value in self.node.value:
            name = str(key_node.value) if isinstance(key_node, yaml.ScalarNode) else ""
            line, path = int(key_node.start_mark.line) + 1, f"{self.key}.{name}".lstrip(".")
            if name in found:
                self.log.add(line, path, f"{what} given twice")
            elif name not in known:
                close = near(name, known)
                wanted = close or f", wanted one of {', '.join(known)}"
                self.log.add(line, self.key, f"unknown {what} {quoted(name)}{wanted}")
            else:
                found[name] = Item(value, path, self.log)
        for name in required:
            if name not in found:
                self.bad(f"{what} {name} is missing")
        return found


def _refuse_odd(text: str, log: Log) -> None:
    """Walk the events, without building anything: no aliases, no tags, not deep, not long, one document."""
    depth = documents = 0
    for count, event in enumerate(yaml.parse(text, Loader=LOADER)):
        line = event.start_mark.line + 1 if event.start_mark else 1
        documents += isinstance(event, yaml.DocumentStartEvent)
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        problem = ""
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            problem = "anchors and aliases are not taken: write the value out"
        elif tag := getattr(event, "tag", None):
            problem = f"tag {quoted(str(tag))} is not taken: write a plain value"
        elif depth > MAX_DEPTH:
            problem = f"nested deeper than {MAX_DEPTH}: this is no profile"
        elif count > MAX_EVENTS or documents > 1:
            problem = "too many entries" if documents < 2 else "a second document: one file is one profile"
        if problem:
            log.add(line, "", problem)
            log.check()


def read_plain(path: Path, most: int) -> bytes:
    """Up to `most` bytes of a file. OSError; a pipe or a device is none, and is not waited for."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        return file.read(most)


def read_yaml(path: Path, shown: str) -> Item:
    """The root node of a YAML file. ConfigError `file:line: ...` if it is not a small plain YAML file."""
    log = Log(shown)
    try:
        raw = read_plain(path, MAX_BYTES + 1)
    except OSError as exc:
        raise ConfigError(f"{shown}: cannot read: {exc.strerror}") from None
    if len(raw) > MAX_BYTES:
        raise ConfigError(f"{shown}: larger than {MAX_BYTES // 1024} KiB: this is no profile")
    try:
        text = raw.decode("utf-8")
        _refuse_odd(text, log)
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
        raise ConfigError(f"{shown}:1: empty file, wanted a profile")
    return Item(root, "", log)
