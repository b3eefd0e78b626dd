"""The QEMU that takes cards from another process (vfio-user): 10.1 or newer, of Debian 13's backports."""

from __future__ import annotations

from pathlib import Path

from offload.debian.cache import kept, new_folder
from offload.debian.headers import LOADER
from offload.debian.packages import download, index, refresh
from offload.errors import RigError
from offload.suite.bench.vm.qemu import PROGRAM, Qemu, Say, choose, version_of

RELEASE = "trixie"
FIRST = (10, 1)  # with the device vfio-user-pci


def find(say: Say = print) -> Qemu:
    """This machine's QEMU if it is new enough, else Debian's in the cache, fetched first if need be.

    The fetched one brings all of its libraries, and is run by its own loader. RigError if it cannot be had.
    """
    own = version_of(PROGRAM)
    if _new(own):
        return Qemu(PROGRAM, own)
    folder = kept("qemu-cards", lambda root: _fetch(root, say), say)
    library = f"{folder}/usr/lib/x86_64-linux-gnu"
    start = ("--library-path", library, f"{folder}/usr/bin/{PROGRAM}")
    loader = f"{library}/{Path(LOADER).name}"
    version = version_of(loader, options=start)
    if not _new(version):
        raise RigError(f"the QEMU in {folder} does not run here")
    options = ("-L", f"{folder}/usr/share/qemu", "-L", f"{folder}/usr/share/seabios")
    return Qemu(loader, version, (*start, *options))


def _new(version: str) -> bool:
    """Whether a version has the device."""
    return bool(version) and tuple(int(part) for part in version.split(".")[:2]) >= FIRST


def _fetch(root: Path, say: Say) -> Path:
    refresh()
    parts = choose(index(), RELEASE, set())
    if not parts:
        raise RigError(f"no QEMU with vfio-user in {RELEASE}-backports")
    say(f"fetching QEMU {parts[0].version} with its libraries: {sum(p.size for p in parts) >> 20} MiB")
    folder = root / parts[0].version.replace(":", "_")
    with new_folder(folder) as temp:
        download(parts, temp)
    index.cache_clear()
    return folder
