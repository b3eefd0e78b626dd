"""nginx and wrk of Debian 13, unpacked without installing them, for machines that lack them.

Their OpenSSL 3.5 can send files without a copy, which that of Debian 12 cannot.
"""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from offload.cmd import run
from offload.debian.cache import cache_root, kept, new_folder, read_json
from offload.debian.headers import LOADER
from offload.debian.kernels import Say
from offload.debian.packages import Package, depends, download, index, newest, refresh
from offload.errors import RigError
from offload.host.base import Host
from offload.suite.bench.vm.userland import SYSTEM

SUITES = ("trixie", "trixie-security")  # Debian 13: OpenSSL 3.5
# where it is, the option by which it says what it is, and a part of what it says then
PROGRAMS = {
    "nginx": ("usr/sbin/nginx", "-V", b"OpenSSL 3."),
    "wrk": ("usr/bin/wrk", "-v", b"Copyright"),
}
# what they do without: scripts for an installation, and documents
WITHOUT = ("iproute2", "nginx-common", "debconf", "init-system-helpers", "openssl-provider-legacy")
PLACE = "programs"


def find(name: str = "nginx", say: Say = print) -> str:
    """The path of a program that is run like `name`, fetched if need be; RigError if it cannot be had."""
    folder = kept(PLACE, lambda root: _fetch(root, say), say)
    program = f"{folder}/{name}"
    _, option, mark = PROGRAMS[name]
    _, out, err, _ = run([program, option], timeout=60)
    if mark not in out + err:  # wrk ends with 1, even so
        raise RigError(f"the {name} in {folder} does not run here: {err.decode('utf-8', 'replace')[:200]}")
    return program


def had(name: str) -> str:
    """The same path if it has been fetched, else ''; nothing is run."""
    state = read_json(cache_root() / PLACE / "current.json")
    path = cache_root() / PLACE / state["folder"] / name if state else None
    return str(path) if path and path.is_file() else ""


def lend(root: Host) -> None:
    """Let the guest of a lab run what this machine does not have installed; its root is discarded later.

    In /usr/bin: the guest's agent, its first process, does not look for programs in /usr/local.
    """
    for name in PROGRAMS:
        if not shutil.which(name, path=":".join(SYSTEM)) and (path := had(name)):
            with suppress(RigError):
                root.run(["ln", "-sf", path, f"/usr/bin/{name}"])


def choose(packages: tuple[Package, ...]) -> list[Package]:
    """Both programs of Debian 13 with their loader and every library that they need, or nothing."""
    best, chosen, names = newest(packages, SUITES), list[Package](), list(PROGRAMS)
    while names:
        part = best.get(names.pop(0))
        if part and part not in chosen and part.name not in WITHOUT:
            chosen.append(part)
            names += depends(part)
    return chosen if {*PROGRAMS} <= {part.name for part in chosen} else []


def _fetch(root: Path, say: Say) -> Path:
    refresh()
    parts = choose(index())
    if not parts:
        raise RigError(f"no {' and '.join(PROGRAMS)} of Debian 13 in the archive's lists")
    said = ", ".join(f"{part.name} {part.version}" for part in parts if part.name in PROGRAMS)
    say(f"fetching {said} with OpenSSL of Debian 13: {sum(p.size for p in parts) >> 20} MiB")
    folder = root / parts[0].version.replace(":", "_")
    with new_folder(folder) as temp:
        download(parts, temp)
        for name, (place, _, _) in PROGRAMS.items():
            starter = temp / name
            libraries = f"{folder}/usr/lib/x86_64-linux-gnu"
            starter.write_text(
                f'#!/bin/sh\nexec "{folder}/{LOADER}" --library-path "{libraries}" "{folder}/{place}" "$@"\n'
            )
            starter.chmod(0o755)
    return folder
