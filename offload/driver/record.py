"""What did we install? On disk before it is done, so that `driver remove` works after kill -9 too."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from offload.errors import ConfigError, NoPermission, RigError
from offload.switch.journal import folder

NAME = re.compile(r"driver-([a-z0-9_]+)@([\w.+~-]+)\.json")
SHA = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True)
class Record:
    """One driver for one kernel: `files` (path -> SHA-256), `folders` made, `dkms` NAME/VERSION or ''.

    `version` is that of Debian's source package.
    """

    kind: str
    release: str
    version: str
    dkms: str
    files: dict[str, str]
    folders: list[str]

    @property
    def path(self) -> Path:
        """Where it is kept: next to the journal of enable."""
        return folder() / f"driver-{self.kind}@{self.release}.json"


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return sha256(path.read_bytes()).hexdigest()


def save(record: Record) -> None:
    """Write it, on disk when this returns. NoPermission, RigError."""
    try:
        record.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fresh = record.path.with_suffix(".new")
        with fresh.open("w") as out:
            out.write(json.dumps({"schema": 1, **asdict(record)}, indent=1) + "\n")
            out.flush()
            os.fsync(out.fileno())
        fresh.replace(record.path)
    except PermissionError:
        raise NoPermission(f"cannot write {record.path.parent}", "run it as root") from None
    except OSError as exc:
        raise RigError(f"cannot write {record.path}: {exc.strerror}", "nothing was installed") from None


def load(kind: str, release: str) -> Record | None:
    """The record of a driver for a kernel; None if there is none. ConfigError if it is damaged."""
    path = Record(kind, release, "", "", {}, []).path
    try:
        raw = path.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return None
    except PermissionError:
        raise NoPermission(f"cannot read {path}", "run it as root") from None
    try:
        row = json.loads(raw)
        if row.pop("schema") != 1:
            raise ValueError("another schema")
        return _checked(Record(**row), kind, release)
    except (ValueError, TypeError, KeyError, AttributeError) as exc:
        raise ConfigError(
            f"{path}: damaged: {' '.join(str(exc).split())[:120]}",
            f"look into lib/modules/{release}/updates/ktls-offload",
        ) from None


def _checked(record: Record, kind: str, release: str) -> Record:
    """The record, if what it names can be ours: it says what root removes."""
    place = f"/lib/modules/{release}/updates"
    rows: list[Any] = [*record.files.items(), *((name, "0" * 64) for name in record.folders)]
    if (record.kind, record.release) != (kind, release):
        raise ValueError("is of another driver or kernel")
    for name, sha in rows:
        if place not in name or ".." in name or not SHA.fullmatch(sha):
            raise ValueError(f"odd row {name!r}")
    if not re.fullmatch(r"(?:ktls-offload-[\w.+~-]+/[\w.+~-]+)?", record.dkms):
        raise ValueError(f"odd row {record.dkms!r}")
    return record


def all_records() -> Iterator[Record]:
    """Every record of this machine that can be read."""
    for path in sorted(folder().glob("driver-*@*.json")):
        match = NAME.fullmatch(path.name)
        if match and (found := load(match[1], match[2])):
            yield found
