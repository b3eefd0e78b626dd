"""The network managers that a lab can be given: systemd with udev, ifupdown, NetworkManager."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

from offload.debian.cache import cache_root, locked, new_folder
from offload.debian.kernels import Say, codename
from offload.debian.packages import (
    Package,
    amd64_only,
    depends,
    download,
    index,
    installed,
    newest,
    refresh,
)
from offload.errors import RigError

PROGRAMS = ("systemd", "udev", "ifupdown", "network-manager", "dbus-daemon", "dbus-system-bus-common")


def fetch(say: Say = print) -> Path:
    """A folder with Debian's programs for this host's release, and the libraries that they need.

    From the cache, filled first if need be. Programs that this host has are skipped: the lab's root is the
    host's. Nothing is installed here. RigError for no network, no room, or a host that is not Debian.
    """
    amd64_only()
    present = installed()
    wanted = [name for name in PROGRAMS if name not in present]
    root = cache_root() / "managers"
    root.mkdir(exist_ok=True)
    with locked(root / ".lock", say):
        key = hashlib.sha256(" ".join([codename(), *sorted(present)]).encode()).hexdigest()[:16]
        folder = root / key
        if not folder.is_dir():
            refresh()
            parts = choose(index(), codename(), present, wanted)
            say(f"fetching network managers: {len(parts)} packages, {sum(p.size for p in parts) >> 20} MiB")
            with new_folder(folder) as temp:
                download(parts, temp)
                _merge(temp)
            index.cache_clear()
        return folder


def _merge(folder: Path) -> None:
    """Bring what lies in /lib, /bin and /sbin where a merged system has it: below /usr."""
    for name in ("lib", "bin", "sbin"):
        if (folder / name).is_dir() and not (folder / name).is_symlink():
            shutil.copytree(folder / name, folder / "usr" / name, symlinks=True, dirs_exist_ok=True)
            shutil.rmtree(folder / name)


def choose(packages: tuple[Package, ...], release: str, present: set[str], names: list[str]) -> list[Package]:
    """The named packages of a release, newest first seen, and the libraries of it that are not installed.

    RigError if the release has not all of those that were named.
    """
    best = newest(packages, (release, f"{release}-security"))
    if lacking := [name for name in names if name not in best]:
        raise RigError(
            f"no package {', '.join(lacking)} for {release or 'this system'}", "a Debian host has them"
        )
    chosen = [best[name] for name in names]
    todo = [need for package in chosen for need in depends(package)]
    while todo:
        part = best.get(todo.pop())
        if part and part.name.startswith("lib") and part not in chosen and part.name not in present:
            chosen.append(part)
            todo += depends(part)
    return chosen
