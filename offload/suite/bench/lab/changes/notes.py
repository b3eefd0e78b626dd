"""Which settings of a host did tests change, and what was found? A file next to the journal of TLS features.

A line of the journal holds the value found and each value that we set: what a host has now is as found, ours,
or somebody else's.
"""

from __future__ import annotations

import json
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from offload.errors import ConfigError, NoPermission, RigError
from offload.switch.journal import Journal, durable

NAME = "changes.json"
KINDS = (
    *("mtu", "link", "master", "home", "device", "netns", "address", "route", "sysctl", "qdisc"),
    *("feature", "ring", "channel", "coalesce"),
)
DEVICE = re.compile(r"[!-,.-~][!-~]{0,14}")  # IFNAMSIZ; no option of a command
SYSCTL = re.compile(r"net(\.[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*)+")  # eth0/7: the port eth0.7
ROUTE = re.compile(r"-[46] \S+ metric \d+ table \S+")
TEXT = re.compile(r"[ -~]{0,300}")
MAX_BYTES = 1 << 20


@dataclass(frozen=True)
class Change:
    """A setting: `found` is the value before the first change, `ours` are those that we set ('': not there).

    `dev` and `what` say which one of its kind. `home`: the port is `here`, or in the namespace `what`.
    """

    kind: str
    dev: str
    what: str = ""
    found: str = ""
    ours: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[str, str, str]:
        """The setting itself, whatever its value."""
        return self.kind, self.dev, self.what

    def is_found(self, now: str | None) -> bool:
        """Say whether it is as found; of an address, whose lifetime may run, whether it is there."""
        if self.kind == "address" and now is not None:
            return bool(now) == bool(self.found)
        return now == self.found

    def is_ours(self, now: str) -> bool:
        """Say whether we made it what it is. The kernel adds words to a route and to an address."""
        return any(_fits(self.kind, value, now) for value in self.ours)


@dataclass(frozen=True)
class Notes:
    """The changes of one boot of one network namespace, oldest first."""

    boot: str = ""
    netns: str = ""
    changes: tuple[Change, ...] = ()


def _fits(kind: str, value: str, now: str) -> bool:
    if kind in ("route", "address") and value:
        return set(value.split()) <= set(now.split())
    return value == now


def read(journal: Journal) -> Notes:
    """Return what is noted. ConfigError if the file is damaged, or is no file of ours."""
    file = journal.place / NAME
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (FileNotFoundError, NotADirectoryError):
        return Notes()
    except PermissionError:
        raise NoPermission(f"cannot read {file}", "run it as root") from None
    except OSError as exc:
        raise _damaged(file, exc.strerror or "") from None
    with os.fdopen(fd, "rb") as source:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode) or about.st_uid != os.geteuid():
            raise _damaged(file, "not a file of this user")
        raw = source.read(MAX_BYTES + 1)
    try:
        return _notes(json.loads(raw), len(raw))
    except (ValueError, TypeError, KeyError, RecursionError) as exc:
        raise _damaged(file, str(exc)) from None


def write(journal: Journal, notes: Notes) -> None:
    """Put the notes on disk; without changes there is no file. RigError if that fails."""
    if not notes.changes:
        (journal.place / NAME).unlink(missing_ok=True)
        return
    for one in notes.changes:
        if not _sane(one):
            raise RigError(f"cannot journal this change, so it is not made: {one.key}")
    durable(journal.place / NAME, json.dumps({"schema": 1, **asdict(notes)}, indent=1) + "\n")


def _damaged(file: object, why: str) -> ConfigError:
    hint = "inspect it, then move it away; it lists each setting with the value found"
    return ConfigError(f"{file}: damaged: {' '.join(why.split())[:120]}", hint)


def _notes(row: dict[str, Any], size: int) -> Notes:
    """The notes of a file, checked: they become words of commands that run as root."""
    if row["schema"] != 1 or size > MAX_BYTES:
        raise ValueError("another schema")
    changes = tuple(Change(**{**one, "ours": tuple(one["ours"])}) for one in row["changes"])
    if odd := next((one for one in changes if not _sane(one)), None):
        raise ValueError(f"odd entry {odd}")
    if len({one.key for one in changes}) != len(changes):
        raise ValueError("a setting occurs twice")
    return Notes(str(row["boot"]), str(row["netns"]), changes)


def _sane(one: Change) -> bool:
    """Say whether each text is one that a host can have said, and none is an option of a command."""
    texts: Sequence[object] = (one.kind, one.dev, one.what, one.found, *one.ours)
    if not all(isinstance(text, str) and TEXT.fullmatch(text) for text in texts) or one.kind not in KINDS:
        return False
    if one.kind == "sysctl":
        return not one.dev and bool(SYSCTL.fullmatch(one.what))
    words = [word for text in (one.what, one.found, *one.ours) for word in text.split()]
    if any(word.startswith("-") and word not in ("-4", "-6") for word in words):
        return False
    if one.kind == "route" and not ROUTE.fullmatch(one.what):
        return False
    return bool(DEVICE.fullmatch(one.dev)) if one.kind not in ("route", "netns") else not one.dev
