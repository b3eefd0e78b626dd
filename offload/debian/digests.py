"""One SHA-256 for a folder, in a form that `sha256sum` gives as well (docs/certify/trust.md)."""

from __future__ import annotations

import hashlib
from pathlib import Path


def of_file(path: Path) -> str:
    """SHA-256 of a file, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_folder(folder: Path) -> str:
    """SHA-256 of the list that `sha256sum` prints for every plain file below, by name; caches left out."""
    found = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    names = {f"./{path.relative_to(folder)}": path for path in found if "__pycache__" not in path.parts}
    state = hashlib.sha256()
    for name in sorted(names, key=lambda name: name.encode("utf-8", "surrogateescape")):
        state.update(f"{of_file(names[name])}  {name}\n".encode("utf-8", "surrogateescape"))
    return state.hexdigest()
