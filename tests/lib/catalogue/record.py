"""How is a record kept? A line of JSON for each run, and a table of them between two marks of a page."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from offload.errors import ConfigError


def append(path: Path, line: Mapping[str, Any]) -> None:
    """Add a line."""
    with path.open("a") as out:
        out.write(json.dumps(line) + "\n")


def read(path: Path, fields: Sequence[str], later: Sequence[str] = ()) -> list[dict[str, Any]]:
    """Every line; none if there is no file. ConfigError with file and line for one without these fields.

    `later`: fields that came into the record later; an older line has None there.
    """
    found = []
    for number, text in enumerate(path.read_text().splitlines() if path.exists() else [], 1):
        try:
            line = json.loads(text)
        except ValueError:
            line = None
        if not isinstance(line, dict) or set(line) | set(later) != {*fields, *later}:
            raise ConfigError(f"{path.name}:{number}: {text[:60]!r}", f"an object with {', '.join(fields)}")
        found.append(dict.fromkeys(later) | line)
    return found


def put(text: str, begin: str, end: str, inside: str) -> str:
    """The page with this between the two marks. ValueError if it has no place for it."""
    head, first, rest = text.partition(begin)
    _, last, tail = rest.partition(end)
    if not (first and last):
        raise ValueError(f"the page has no line {begin} with {end} after it")
    return f"{head}{begin}\n{inside}{end}{tail}"
