"""What a run left in its folder: every file with its size and SHA-256."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from offload.suite.report.trust.manifest import NAME, SIGNATURE, measure, walk


@dataclass(frozen=True)
class Kept:
    """One file: `name` is its path in the folder, with '/' between the parts; `size` in bytes."""

    name: str
    size: int
    sha256: str


def kept(folder: Path) -> list[Kept]:
    """Return the files by name, as `paths`. ConfigError for one that cannot be read."""
    measured = ((name, measure(path)) for name, path in paths(folder).items())
    return [Kept(name, found.size, found.sha256) for name, found in measured]


def paths(folder: Path) -> dict[str, Path]:
    """Return the plain files of a folder and below, sorted by name; links, odd and hidden names left out.

    ConfigError for a folder that cannot be listed, or holds too many.
    """
    files = walk(folder).files | {name: folder / name for name in (NAME, SIGNATURE)}
    seen = {name: path for name, path in files.items() if path.is_file() and not path.is_symlink()}
    return {name: seen[name] for name in sorted(seen) if not f"/{name}".count("/.")}
