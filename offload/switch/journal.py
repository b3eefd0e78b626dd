"""What was there before we changed it, on disk before the change: survives kill -9 and concurrent calls."""

from __future__ import annotations

import fcntl
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from offload.cmd import KEEP_OPEN, wait_until
from offload.errors import ConfigError, NoPermission, Refused, RigError

FOLDER = "/var/lib/ktls-offload"
MAX_BYTES = 1024 * 1024
TEXT = re.compile(r"[ -~]{0,120}")


@dataclass(frozen=True)
class Entry:
    """One thing that we changed and the value found: a feature (active, requested) or a module (not loaded).

    `boot`, `netns`, `ifindex`, `bus` and `driver` say which device it was, whatever it is called today.
    """

    kind: str
    what: str
    dev: str
    ifindex: int
    bus: str
    driver: str
    netns: str
    boot: str
    active: bool
    requested: bool
    time: str = ""

    def same(self, other: Entry) -> bool:
        """Say whether both are about the same thing, so that the value found first is the one to keep."""
        if self.kind == "module" or other.kind == "module":
            return (self.kind, self.what, self.boot) == (other.kind, other.what, other.boot)
        return replace(self, dev="", active=False, requested=False, time="") == replace(
            other, dev="", active=False, requested=False, time=""
        )

    def found(self) -> str:
        """The value found, in words."""
        if self.kind == "module":
            return "not loaded"
        text = "on" if self.active else "off"
        return (
            text
            if self.active == self.requested
            else f"{text} [requested {'on' if self.requested else 'off'}]"
        )


def folder() -> Path:
    """Where the journal is: $KTLS_OFFLOAD_STATE, or below /var/lib."""
    return Path(os.environ.get("KTLS_OFFLOAD_STATE") or FOLDER)


class Journal:
    """The journal of one machine: `journal.json` and `lock` in a folder that only its owner can enter."""

    def __init__(self, place: Path | None = None) -> None:
        self.place = place or folder()
        self.file = self.place / "journal.json"
        self._held = False
        self.first = False  # whether the lock was made by this call: then no other call was here before

    @contextmanager
    def at_hand(self) -> Iterator[bool]:
        """Hold the lock where there is one to be had, and say so: a call that changes nothing leaves no
        trace."""
        if not os.access(self.place / "lock", os.R_OK | os.W_OK):
            yield False
            return
        with self.locked():
            yield True

    @contextmanager
    def locked(self, patience: float = 60.0) -> Iterator[None]:
        """Hold the lock, also when this journal has it; RigError if it takes more than `patience` seconds."""
        if self._held:
            yield
            return
        fd = self._open_lock()

        def taken() -> bool:
            with suppress(BlockingIOError):
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            return False

        try:
            wait_until(taken, patience, f"another ktls-offload that uses {self.place}", every=0.02)
            KEEP_OPEN.add(fd)
            self._held = True
            yield
        finally:
            self._held = False
            KEEP_OPEN.discard(fd)
            os.close(fd)

    @contextmanager
    def claimed(self, what: str) -> Iterator[None]:
        """Hold `what` for a whole run: nobody undoes its settings meanwhile. Refused if a run has it."""
        fd = self._open_lock("run")
        try:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise Refused(f"a run is using {what}", "wait until it has ended") from None
            yield
        finally:
            os.close(fd)

    def _open_lock(self, name: str = "lock") -> int:
        """Make the folder, 0700, and open a lock in it."""
        try:
            self.place.mkdir(mode=0o700, parents=True, exist_ok=True)
            if self.place.stat().st_uid != os.geteuid():
                raise NoPermission(f"{self.place} belongs to another user", "run as root")
            self.place.chmod(0o700)
            with suppress(FileExistsError):
                fd = os.open(self.place / name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
                self.first = True
                return fd
            self.first = False
            return os.open(self.place / name, os.O_RDWR | os.O_NOFOLLOW)
        except PermissionError:
            raise NoPermission(f"cannot write {self.place}", "run it as root") from None
        except OSError as exc:
            hint = "KTLS_OFFLOAD_STATE=DIR puts the journal elsewhere"
            raise RigError(f"cannot write the journal in {self.place}: {exc.strerror}", hint) from None

    def entries(self) -> tuple[Entry, ...]:
        """Return what is journalled, oldest first. ConfigError if the file is damaged."""
        try:
            with self.file.open("rb") as file:
                raw = file.read(MAX_BYTES + 1)
        except (FileNotFoundError, NotADirectoryError):
            return ()
        except PermissionError:
            raise NoPermission(f"cannot read {self.file}", "run it as root") from None
        try:
            found = json.loads(raw)
            if found["schema"] != 1 or len(raw) > MAX_BYTES:
                raise ValueError("another schema")
            return tuple(_entry(row) for row in found["entries"])
        except (ValueError, TypeError, KeyError) as exc:
            hint = "inspect it, then move it away; ethtool -K can restore what it lists"
            raise ConfigError(f"{self.file}: damaged: {' '.join(str(exc).split())[:120]}", hint) from None

    def lacks(self, entry: Entry) -> bool:
        """Say whether nothing is journalled yet for the thing that the entry is about."""
        return not any(entry.same(old) for old in self.entries())

    def add(self, entry: Entry) -> None:
        """Write an entry, on disk when this returns; if the thing has one already, that first value stays."""
        if self.lacks(entry):
            stamp = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
            self._write((*self.entries(), replace(entry, time=stamp)))

    def remove(self, entry: Entry) -> None:
        """Forget an entry, on disk when this returns."""
        have = self.entries()
        kept = tuple(old for old in have if not entry.same(old))
        if kept != have:
            self._write(kept)

    def _write(self, entries: tuple[Entry, ...]) -> None:
        """Replace the file as a whole."""
        text = json.dumps({"schema": 1, "entries": [asdict(e) for e in entries]}, indent=1) + "\n"
        durable(self.file, text)


def durable(file: Path, text: str) -> None:
    """Replace a file as a whole, on disk when this returns: new file, fsync, rename, fsync of the folder."""
    fresh = file.with_name(f"{file.name}.new")
    try:
        fd = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "w") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(file)
        _sync(file.parent)
    except OSError as exc:
        raise RigError(f"cannot write {file}: {exc.strerror}", "without it nothing was switched") from None


def _sync(folder: Path) -> None:
    """A rename is on disk when its folder is (fsync(2))."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _entry(row: dict[str, Any]) -> Entry:
    """One entry, checked: it becomes part of commands that run as root."""
    entry = Entry(**row)
    texts = (entry.what, entry.dev, entry.bus, entry.driver, entry.netns, entry.boot, entry.time)
    if entry.kind not in ("feature", "module") or not all(
        isinstance(t, str) and TEXT.fullmatch(t) for t in texts
    ):
        raise ValueError(f"odd entry {row!r}")
    if not re.fullmatch(r"[a-z0-9][a-z0-9_-]*", entry.what) or type(entry.ifindex) is not int:
        raise ValueError(f"odd entry {row!r}")
    if type(entry.active) is not bool or type(entry.requested) is not bool:
        raise ValueError(f"odd entry {row!r}")
    return entry
