"""Where a running lab keeps its sockets and logs; labs never collide, and dead ones are swept away."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from offload.cmd import kill_group, wait_until
from offload.debian.cache import read_json
from offload.errors import ConfigError, RigError
from offload.paths import runtime

NAME = re.compile(r"^[a-z0-9][a-z0-9._-]{0,31}$")
SOCKET_LIMIT = 107  # sun_path of a unix socket, less its final zero


@dataclass
class RunDir:
    """The folder of one lab. Its lock is held by the runner and by QEMU: free means that both are gone."""

    name: str
    path: Path
    lock: int

    def release(self) -> None:
        """Remove the folder and let go of the name."""
        shutil.rmtree(self.path, ignore_errors=True)
        lock, self.lock = self.lock, -1  # first: two threads may give up the same lab
        if lock >= 0:
            os.close(lock)


def base() -> Path:
    """The folder of all labs of this user, private to them; RigError if somebody else made it."""
    path = runtime()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        owner = path.lstat()
    except OSError as exc:
        raise RigError(f"cannot make {path}: {exc.strerror}") from exc
    if owner.st_uid != os.getuid() or path.is_symlink():
        raise RigError(f"{path} belongs to another user", "remove it or set XDG_RUNTIME_DIR")
    return path


def _try_lock(path: Path) -> int | None:
    """A descriptor that holds the lock of a lab's folder, or None if that lab lives."""
    fd = os.open(path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd


def sweep() -> list[str]:
    """Remove what dead labs left behind; return their names."""
    gone = []
    with _all_labs() as _:
        for path in sorted(base().iterdir()):
            if path.is_dir() and (fd := _try_lock(path)) is not None:
                RunDir(path.name, path, fd).release()
                gone.append(path.name)
    return gone


class _all_labs:  # noqa: N801 - reads as a function
    """Held while folders come and go, so that a sweep never meets one that is half made."""

    def __enter__(self) -> None:
        self._fd = os.open(base() / ".lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._fd, fcntl.LOCK_EX)

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)


def check_name(name: str | None) -> None:
    """ConfigError for a name that cannot be a folder's and a socket's."""
    if name is not None and not NAME.match(name):
        raise ConfigError(f"lab name {name!r}", "a-z, 0-9, dot, dash and underscore, at most 32")


def create(name: str | None) -> RunDir:
    """A new folder under the given or a unique name; RigError if a lab of that name lives."""
    check_name(name)
    sweep()
    with _all_labs() as _:
        chosen = name or f"lab-{os.getpid()}-{os.urandom(3).hex()}"
        path = base() / chosen
        if len(str(path / "port0")) > SOCKET_LIMIT:
            raise RigError(f"{path} is too long for a socket", "set XDG_RUNTIME_DIR to a shorter folder")
        try:
            path.mkdir(mode=0o700)
        except FileExistsError:
            raise RigError(f"a lab named {chosen} is running", f"ktls-offload lab down {chosen}") from None
        fd = _try_lock(path)
        assert fd is not None
        return RunDir(chosen, path, fd)


def alive(name: str) -> Path | None:
    """The folder of a living lab, or None."""
    path = base() / name
    with _all_labs() as _:
        if not NAME.match(name) or not path.is_dir():
            return None
        fd = _try_lock(path)
        if fd is not None:
            os.close(fd)
        return path if fd is None else None


def names() -> list[str]:
    """The living labs of this user."""
    return [p.name for p in sorted(base().iterdir()) if p.is_dir() and alive(p.name)]


def end(name: str) -> bool:
    """Kill a living lab's QEMU by its own pid file, and remove its folder; False if there is none."""
    path = alive(name)
    if path is None:
        return False
    state = read_json(path / "pid.json") or {}
    pid = str(state.get("pid", ""))
    if pid.isdigit() and _is_ours(int(pid), path):
        kill_group(int(pid))
        with suppress(RigError):  # whoever booted it may hold the name a little longer
            wait_until(lambda: alive(name) is None, 5, f"the end of lab {name}")
    sweep()
    return True


def _is_ours(pid: int, path: Path) -> bool:
    """Whether that process is the QEMU of this lab: process ids come back."""
    try:
        return os.fsencode(path) in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False
