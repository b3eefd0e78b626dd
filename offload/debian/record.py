"""Is the kernel in the cache the one that was fetched? Digests of its image and modules, kept next to it."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

from offload.debian.cache import cache_root, locked, read_json, write_json
from offload.debian.digests import of_file
from offload.debian.kernels import Kernel, measured
from offload.errors import RigError


class Checked(StrEnum):
    """What the digests were compared with."""

    FETCHED = "as it was fetched"
    FIRST = "as it was first seen"  # fetched by a version that kept no record


class Booted(NamedTuple):
    """SHA-256 of the kernel's image and of all its modules."""

    image: str
    modules: str
    checked: Checked

    def described(self, kernel: Kernel, module: Path | None) -> dict[str, str]:
        """Return it in words, with the module of the simulated card: what a report says of a lab."""
        driver = {"driver": of_file(module)} if module else {}
        about = {"image": self.image, "modules": self.modules, "checked": self.checked.value}
        return {"kernel": kernel.release, **about, **driver}


FIRST = {"recorded": Checked.FIRST.value}


def check(kernel: Kernel) -> Booted:
    """Compare the cached kernel with its record; a cache without one gets it. RigError if it differs."""
    place = kernel.vmlinux.parent
    now = measured(kernel.vmlinux, kernel.modules)
    with locked(cache_root() / "kernels" / ".lock"):
        known = read_json(place / "kernel.json") or {}
        if missing := now.keys() - known.keys():
            write_json(place / "kernel.json", known | {name: now[name] for name in missing} | FIRST)
    odd = [name for name in now if known.get(name, now[name]) != now[name]]
    if odd:
        raise RigError(
            f"cached kernel {kernel.release} has changed since the download: its {' and '.join(odd)} changed",
            f"rm -r {place}, then it is downloaded again",
        )
    first = bool(missing) or known.get("recorded") == FIRST["recorded"]
    return Booted(now["vmlinux"], now["modules"], Checked.FIRST if first else Checked.FETCHED)
