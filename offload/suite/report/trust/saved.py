"""How a file of a run's folder is written whole or not at all, and a saved report read back."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any

from offload.errors import ConfigError, RigError
from offload.suite.report.events import NUMBERS, SCHEMA, content

EVENTS = "events.jsonl"
# what a document of another form raises, wherever it is used
MISFITS = (LookupError, TypeError, AttributeError, ValueError, ArithmeticError)


def put(path: Path, data: bytes) -> None:
    """Write a file whole or not at all. ConfigError if it names a folder, RigError if the disk refuses."""
    if path.name in ("", "..") or os.path.isdir(path):  # noqa: PTH112 (Path's raises for a long name)
        raise ConfigError(f"{path} is a folder", "name a file")
    half = path.with_name(f".{path.name}.new")
    try:
        with half.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        half.replace(path)
    except OSError as exc:
        with suppress(OSError):  # there may be no half of it, or a disk that lets nobody remove it
            half.unlink()
        raise RigError(f"cannot write {path}: {exc.strerror}") from None


def saved(folder: Path) -> dict[str, Any]:
    """Return the document in report.json. ConfigError if there is none, or it is not one of ours."""
    return saved_file(folder / "report.json")


def saved_file(path: Path) -> dict[str, Any]:
    """Return the document in a file, whatever its name. ConfigError as `saved`."""
    try:
        document = json.loads(content(path), **NUMBERS)
    except OSError as exc:
        made = (path.parent / EVENTS).is_file()
        hint = (
            "`report make` makes it from the events" if made else "name the folder of a run, results/<time>"
        )
        raise ConfigError(f"{path}: {exc.strerror}", hint) from None
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"{path}: not JSON ({exc})") from None
    known = document.get("schema") if isinstance(document, dict) else None
    if known == SCHEMA and isinstance(document, dict):
        return document
    if isinstance(known, int):
        raise ConfigError(
            f"{path}: schema {known}, this version reads schema {SCHEMA}",
            "use the version of ktls-offload that made it: the report names it under `tool`",
        )
    raise ConfigError(f"{path}: not a report of ktls-offload")
