"""Where downloads and builds are kept, so that parallel users and killed runs never see half of one."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from offload.errors import RigError
from offload.paths import cache


def cache_root() -> Path:
    """${XDG_CACHE_HOME:-~/.cache}/ktls-offload, made if it is missing; RigError if it cannot be."""
    root = cache()
    try:
        root.mkdir(parents=True, exist_ok=True)
    except OSError as exc:
        raise RigError(
            f"cannot make the cache {root}: {exc.strerror}", "set XDG_CACHE_HOME to a folder you own"
        ) from exc
    return root


@contextmanager
def locked(path: Path, say: Callable[[str], None] | None = None) -> Iterator[None]:
    """Hold an exclusive lock on the file `path` (made if missing); `say` hears of it if somebody has it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if say:
                say(f"waiting: another ktls-offload holds {path}")
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield


def need_space(folder: Path, bytes_wanted: int, what: str) -> None:
    """RigError before anything is written if `folder` has not this much room left."""
    free = shutil.disk_usage(folder).free
    if free < bytes_wanted:
        raise RigError(
            f"no space for {what}: it needs {bytes_wanted >> 20} MiB below {folder}, which has {free >> 20}",
            "free some space, or set XDG_CACHE_HOME to a larger disk",
        )


@contextmanager
def new_folder(target: Path) -> Iterator[Path]:
    """A temporary folder that becomes `target` in one rename if the block ends well, and vanishes if not.

    Call it under the lock of the target's parent: folders that a killed run left are removed first.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    for left in target.parent.glob(".new-*"):
        shutil.rmtree(left, ignore_errors=True)
    temp = Path(tempfile.mkdtemp(prefix=".new-", dir=target.parent))
    try:
        yield temp
        temp.chmod(0o755)  # mkdtemp makes 0700; the guest may read as another user
        if target.exists():
            shutil.rmtree(target)
        temp.rename(target)
    except OSError as exc:
        raise RigError(f"cannot fill {target}: {exc}") from exc
    finally:
        shutil.rmtree(temp, ignore_errors=True)


def write_json(path: Path, value: object) -> None:
    """Write `value` whole or not at all."""
    temp = path.with_name(f".{path.name}.{os.getpid()}")
    temp.write_text(json.dumps(value, indent=1, sort_keys=True) + "\n")
    temp.replace(path)


def read_json(path: Path) -> dict[str, str] | None:
    """Return the object in `path`, or None if it is missing or damaged."""
    try:
        value = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return value if isinstance(value, dict) else None


def kept(what: str, make: Callable[[Path], Path], say: Callable[[str], None]) -> Path:
    """The folder of `what` that is in use; if there is none, `make` makes one below its place."""
    root = cache_root() / what
    with locked(root / ".lock", say):
        state = read_json(root / "current.json")
        folder = root / state["folder"] if state else None
        if folder is None or not folder.is_dir():
            folder = make(root)
            write_json(root / "current.json", {"folder": folder.name})
    return folder
