"""Which files a result consists of: manifest.json lists every other one with its size and SHA-256."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Any

from offload.errors import ConfigError
from offload.suite.report.trust.saved import put

NAME, SIGNATURE = "manifest.json", "manifest.json.sig"
SCHEMA = "ktls-offload/manifest/1"
MOST_FILES, MOST_BYTES, MOST_DEPTH = 20_000, 8 << 20, 16
LONGEST = 1024  # bytes of a path


@dataclass(frozen=True)
class Listed:
    """What the manifest says of a file: bytes, and their SHA-256 in hexadecimal."""

    size: int
    sha256: str


@dataclass(frozen=True)
class Found:
    """What lies in a folder: plain files by path, folders, and what is neither, with the reason."""

    files: dict[str, Path] = field(default_factory=dict)
    folders: set[str] = field(default_factory=set)
    odd: dict[str, str] = field(default_factory=dict)


def write(folder: Path) -> Path:
    """Write the manifest of what is in the folder now. Errors as `listing`; RigError."""
    put(folder / NAME, listing(folder))
    return folder / NAME


def listing(folder: Path) -> bytes:
    """Return the manifest of what is in the folder now. ConfigError for what cannot be listed."""
    found = walk(folder)
    if found.odd:
        path, why = next(iter(found.odd.items()))
        raise ConfigError(f"{folder}/{shown(path)}: {why}", "a result holds plain files only; move it away")
    return render({path: measure(place) for path, place in found.files.items()})


def render(files: Mapping[str, Listed]) -> bytes:
    """Return a manifest in its only form: sorted by path, UTF-8, indented by one space."""
    rows = [{"path": path, "sha256": files[path].sha256, "size": files[path].size} for path in sorted(files)]
    tree = {"files": rows, "schema": SCHEMA}
    return json.dumps(tree, ensure_ascii=False, indent=1).encode() + b"\n"


def parse(data: bytes) -> dict[str, Listed] | str:
    """Return what a manifest lists, or what is wrong with it; `data` is hostile."""
    if len(data) > MOST_BYTES:
        return f"larger than {MOST_BYTES >> 20} MiB"
    try:
        tree = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError) as exc:
        return f"not JSON in UTF-8 ({type(exc).__name__})"
    if not isinstance(tree, dict) or tree.get("schema") != SCHEMA or not isinstance(tree.get("files"), list):
        return f"not a manifest of schema {SCHEMA}"
    if len(tree["files"]) > MOST_FILES:
        return f"lists more than {MOST_FILES} files"
    files: dict[str, Listed] = {}
    for number, row in enumerate(tree["files"], 1):
        why = _row_problem(row) or ("listed twice" if row["path"] in files else "")
        if why:
            return f"file {number}: {why}"
        files[row["path"]] = Listed(row["size"], row["sha256"])
    return files if render(files) == data else "not in canonical form, so `ktls-offload` did not write it"


def _row_problem(row: Any) -> str:
    """Say what is wrong with the entry of one file; empty if nothing is."""
    if not isinstance(row, dict) or row.keys() != {"path", "sha256", "size"}:
        return "wanted path, sha256 and size"
    size, digest = row["size"], row["sha256"]
    if type(size) is not int or not 0 <= size < 1 << 63:
        return f"size {size!r:.40}"
    if not isinstance(digest, str) or len(digest) != 64 or set(digest) - set("0123456789abcdef"):
        return f"sha256 {digest!r:.40}"
    return path_problem(row["path"])


def path_problem(path: Any) -> str:
    """Say why a path may not be in a manifest; empty if it may: below the folder, and printable."""
    if not isinstance(path, str) or not path:
        return f"path {path!r:.40}"
    if len(path.encode("utf-8", "surrogatepass")) > LONGEST:
        return f"a path longer than {LONGEST} bytes"
    if not path.isprintable() or "\\" in path:
        return f"path {ascii(path):.60} has characters that do not print"
    if path.startswith("/") or {"", ".", ".."} & set(path.split("/")):
        return f"path {path!r:.60} leads out of the folder, or through a loop in it"
    return f"path {path!r} is the manifest's own" if path in (NAME, SIGNATURE) else ""


def walk(folder: Path) -> Found:
    """Return what lies in the folder; no link is followed. ConfigError if it cannot be listed."""
    found = Found()
    try:
        for path, entry in _entries(folder, "", 0):
            _sort(found, path, entry)
            if len(found.files) + len(found.folders) + len(found.odd) > MOST_FILES:
                raise ConfigError(
                    f"{folder} holds more than {MOST_FILES} files", "name the folder of one run"
                )
    except OSError as exc:
        raise ConfigError(
            f"{exc.filename}: {exc.strerror}", "name the folder of a run, results/<time>"
        ) from None
    return found


def _entries(folder: Path, prefix: str, depth: int) -> Iterator[tuple[str, os.DirEntry[str]]]:
    """Yield everything below a folder but the manifest and its signature, by name."""
    with os.scandir(folder) as entries:
        for entry in sorted(entries, key=lambda entry: entry.name):
            path = prefix + entry.name
            if path in (NAME, SIGNATURE):
                continue
            yield path, entry
            if depth < MOST_DEPTH and entry.is_dir(follow_symlinks=False):
                yield from _entries(folder / entry.name, f"{path}/", depth + 1)


def _sort(found: Found, path: str, entry: os.DirEntry[str]) -> None:
    """Put one entry where it belongs."""
    mode = entry.stat(follow_symlinks=False).st_mode
    why = path_problem(path)
    if why:
        found.odd[path] = why
    elif stat.S_ISREG(mode):
        found.files[path] = Path(entry.path)
    elif stat.S_ISDIR(mode) and path.count("/") < MOST_DEPTH:
        found.folders.add(path)
    else:
        link = stat.S_ISLNK(mode)
        found.odd[path] = "a symbolic link" if link else "neither a file nor a folder that is listed"


def measure(path: Path) -> Listed:
    """Return size and SHA-256 of a plain file, never through a link. ConfigError if it cannot be read."""
    with plain(path) as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
        return Listed(file.tell(), digest)


def content(path: Path, most: int = MOST_BYTES) -> bytes | None:
    """Return the bytes of a plain file, at most `most` + 1 of them; None if there is none. ConfigError."""
    if not os.path.lexists(path):
        return None
    with plain(path) as file:
        return file.read(most + 1)


@contextmanager
def plain(path: Path) -> Iterator[BufferedReader]:
    """Open a plain file to read it; ConfigError for a link, a pipe, or what cannot be read."""
    try:
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(number, "rb") as file:
            if not stat.S_ISREG(os.fstat(number).st_mode):
                raise ConfigError(f"{path}: not a plain file")
            yield file
    except OSError as exc:
        why = "a symbolic link" if exc.errno == errno.ELOOP else exc.strerror
        raise ConfigError(f"{path}: {why}") from None


def shown(path: str) -> str:
    """Return a path as a terminal can show it."""
    return path if path.isprintable() else ascii(path)
