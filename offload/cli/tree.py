"""The command as a tree of verbs, options and arguments: what completion and the man page are made from."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# What a metavar stands for; completion offers these, and nothing for the rest.
KINDS = {
    "DEV": "device",
    "ID": "profile",
    "ID|FILE": "profile",
    "P": "profile",
    "R": "release",
    "DIR": "folder",
    "RESULT": "file",
    "VERB": "verb",
}


@dataclass(frozen=True)
class Value:
    """What an option or an argument takes: its name in the help, its kind, and the words if they are few."""

    name: str
    kind: str  # device, profile, release, file, folder, word or ''
    choices: tuple[str, ...] = ()
    optional: bool = False
    many: bool = False


@dataclass(frozen=True)
class Option:
    """An option by all its names; `value` is None for a switch."""

    names: tuple[str, ...]
    help: str
    value: Value | None
    required: bool = False


@dataclass(frozen=True)
class Argument:
    """A positional argument."""

    value: Value
    help: str


@dataclass(frozen=True)
class Command:
    """A verb, `path` from the first word after ktls-offload; the command itself has none."""

    path: tuple[str, ...]
    help: str
    description: str
    epilog: str
    options: tuple[Option, ...]
    arguments: tuple[Argument, ...]
    verbs: tuple[Command, ...]

    @property
    def words(self) -> str:
        """The path as it is typed."""
        return " ".join(self.path)

    def walk(self) -> Iterator[Command]:
        """This one and every verb below it."""
        yield self
        for verb in self.verbs:
            yield from verb.walk()


def tree(parser: argparse.ArgumentParser, path: tuple[str, ...] = (), words: str = "") -> Command:
    options, arguments, verbs = [], [], []
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            verbs = [
                tree(action.choices[c.dest], (*path, c.dest), c.help or "") for c in action._choices_actions
            ]
        elif action.option_strings:
            names = tuple(action.option_strings)
            options.append(Option(names, _words(action), _value(action), action.required))
        else:
            value = _value(action)
            assert value is not None
            arguments.append(Argument(value, _words(action)))
    return Command(
        path,
        words,
        parser.description or "",
        parser.epilog or "",
        tuple(options),
        tuple(arguments),
        tuple(verbs),
    )


def _words(action: argparse.Action) -> str:
    """The help of an action, as argparse prints it."""
    return " ".join((action.help or "").replace("%%", "%").split())


def _value(action: argparse.Action) -> Value | None:
    """Return what an action takes; None for a switch."""
    if action.nargs == 0:
        return None
    choices = tuple(str(c) for c in action.choices or ())
    name = str(action.metavar or ("|".join(choices) if choices else action.dest.upper()))
    choices = choices or _few(name)
    many = action.nargs in ("*", "+", argparse.REMAINDER)
    return Value(name, _kind(action, name, choices), choices, action.nargs in ("*", "?", "..."), many)


def _few(name: str) -> tuple[str, ...]:
    """The words that a metavar stands for, where they are few and not the parser's to refuse."""
    if name == "CODE":
        from offload.doctor.reasons import load

        return tuple(load())
    if name.startswith("SERIES"):
        from offload.debian.debug import NAME
        from offload.debian.kernels import SERIES

        return (*SERIES, NAME)
    return ()


def _kind(action: Any, name: str, choices: tuple[str, ...]) -> str:
    """Return what can be offered for it."""
    if choices:
        return "word"
    if action.nargs == argparse.REMAINDER:
        return "command"
    return KINDS.get(name, "file" if action.type is Path else "")
