"""What was a lab made from? A note next to it says: is a lab that is up still the one that would boot now?"""

from __future__ import annotations

import hashlib
import os
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from offload.debian.cache import read_json, write_json
from offload.paths import PACKAGE, ROOT
from offload.suite.bench.vm.initramfs import GUEST

MADE, SEEN = "made.json", "seen.json"
# what decides how a lab boots and what its bench is, but for the programs in the guest
CODE = ("boot", "initramfs", "lab", "made", "qemu", "snapshot", "topology", "userland")
SKIPPED = frozenset({".git", ".mypy_cache", ".pytest_cache", ".ruff_cache", "__pycache__", "results"})
SYSTEM = (Path("/var/lib/dpkg/status"), Path("/etc"), Path("/usr/local/bin"), Path("/usr/local/lib"))


def digest(parts: Iterable[bytes]) -> str:
    """A short name of these bytes; where one part ends and the next begins counts."""
    state = hashlib.sha256()
    for part in parts:
        state.update(len(part).to_bytes(8, "big") + part)
    return state.hexdigest()[:16]


def contents(paths: Iterable[Path]) -> str:
    """The digest of files: their names and what is in them."""
    return digest(piece for path in sorted(paths) for piece in (path.name.encode(), path.read_bytes()))


def code() -> dict[str, str]:
    """The parts of a lab that are this checkout's own, but for the module."""
    return {
        "the guest's agent": contents(GUEST.glob("*.py")),
        "the code that boots it": contents(PACKAGE / f"suite/bench/vm/{name}.py" for name in CODE),
        "the Python of the guest": digest([sys.version.encode(), sys.prefix.encode()]),
        "the folders it sees": digest([os.fsencode(ROOT), os.fsencode(Path.cwd())]),
    }


def note(folder: Path, made: Mapping[str, str]) -> None:
    """Write what a lab is made from into its folder."""
    write_json(folder / MADE, dict(made))


def changed(folder: Path, now: Mapping[str, str]) -> list[str]:
    """Return what is not as it was when the lab of this folder was made; everything, if that was not
    noted."""
    then = read_json(folder / MADE) or {}
    return [name for name in {**now, **then} if now.get(name) != then.get(name)]


def host_files() -> dict[str, str]:
    """The state of the files that a test's guest reads from this machine: the checkout and the system."""
    return {"checkout": digest(_stamps(ROOT)), "system": digest(_stamp(path) for path in SYSTEM)}


def _stamps(folder: Path) -> Iterable[bytes]:
    """A stamp of every file below a folder: packages of the environment by their folders only."""
    for top, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in SKIPPED)
        if top.endswith("site-packages"):
            folders.clear()
        yield _stamp(Path(top))
        for name in sorted(files):
            yield _stamp(Path(top, name))


def _stamp(path: Path) -> bytes:
    """Name, inode, size and time of the last change of any kind, which nobody can set."""
    try:
        known = path.stat(follow_symlinks=False)
    except OSError:
        return os.fsencode(path)
    return os.fsencode(path) + f"\0{known.st_ino} {known.st_size} {known.st_ctime_ns}".encode()


def seen(folder: Path, now: Mapping[str, str]) -> None:
    """Note what the guest's view of this machine's files is as new as."""
    write_json(folder / SEEN, dict(now))


def seen_before(folder: Path, now: Mapping[str, str]) -> bool:
    """Whether the guest has seen this machine's files as they are now."""
    return read_json(folder / SEEN) == dict(now)
