"""An nginx with OpenSSL 3.2 or newer, unpacked beside this machine's: that sends files without a copy."""

from __future__ import annotations

from pathlib import Path

from offload.cmd import run
from offload.errors import RigError
from offload.vm.cache import kept, new_folder
from offload.vm.headers import LOADER
from offload.vm.kernels import Say
from offload.vm.packages import Package, depends, download, index, newest, refresh

SUITES = ("trixie", "trixie-security")  # Debian 13: OpenSSL 3.5
# what nginx does without: scripts for its installation, and documents
WITHOUT = ("iproute2", "nginx-common", "debconf", "init-system-helpers", "openssl-provider-legacy")


def find(say: Say = print) -> str:
    """The path of a program that is run like nginx, fetched if need be; RigError if it cannot be had."""
    folder = kept("nginx", lambda root: _fetch(root, say))
    program = f"{folder}/nginx"
    rc, out, err, _ = run([program, "-V"], timeout=60)
    if rc != 0 or b"OpenSSL 3." not in out + err:
        raise RigError(f"the nginx in {folder} does not run here: {err.decode('utf-8', 'replace')[:200]}")
    return program


def choose(packages: tuple[Package, ...]) -> list[Package]:
    """nginx of Debian 13 with its loader and every library that it needs, or nothing."""
    best, chosen, names = newest(packages, SUITES), list[Package](), ["nginx"]
    while names:
        part = best.get(names.pop())
        if part and part not in chosen and part.name not in WITHOUT:
            chosen.append(part)
            names += depends(part)
    return chosen if chosen and chosen[0].name == "nginx" else []


def _fetch(root: Path, say: Say) -> Path:
    refresh()
    parts = choose(index())
    if not parts:
        raise RigError("no nginx of Debian 13 in the archive's lists")
    say(
        f"fetching nginx {parts[0].version} with OpenSSL of Debian 13: {sum(p.size for p in parts) >> 20} MiB"
    )
    folder = root / parts[0].version.replace(":", "_")
    with new_folder(folder) as temp:
        download(parts, temp)
        starter = temp / "nginx"
        starter.write_text(
            f'#!/bin/sh\nexec "{folder}/{LOADER}" --library-path "{folder}/usr/lib/x86_64-linux-gnu" '
            f'"{folder}/usr/sbin/nginx" "$@"\n'
        )
        starter.chmod(0o755)
    return folder
