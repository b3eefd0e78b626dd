"""tlshd of Debian 13, which makes TLS handshakes for the kernel's NFS and NVMe/TCP: never installed."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from offload.debian.cache import cache_root, kept, new_folder, read_json
from offload.debian.headers import LOADER
from offload.debian.packages import amd64_only, download, index, refresh
from offload.suite.bench.programs.managers import choose

PLACE = "tlshd"
PACKAGES = ["ktls-utils", "zlib1g"]  # GLib's one library whose package's name does not begin with lib
STARTER = (
    '#!/bin/sh\nexec "{0}/{1}" --library-path "{0}/usr/lib/x86_64-linux-gnu" "{0}/usr/sbin/tlshd" "$@"\n'
)


def fetch(say: Callable[[str], None] = print) -> str:
    """The path of tlshd, fetched if need be; RigError if it cannot be had."""
    amd64_only()
    return str(kept(PLACE, lambda root: _fetch(root, say), say) / "tlshd")


def had() -> str:
    """The same path if it has been fetched, else ''."""
    state = read_json(cache_root() / PLACE / "current.json")
    path = cache_root() / PLACE / state["folder"] / "tlshd" if state else None
    return str(path) if path and path.is_file() else ""


def _fetch(root: Path, say: Callable[[str], None]) -> Path:
    refresh()
    parts = choose(index(), "trixie", set(), PACKAGES)
    say(f"fetching tlshd {parts[0].version} of Debian 13: {sum(p.size for p in parts) >> 20} MiB")
    folder = root / parts[0].version
    with new_folder(folder) as temp:
        download(parts, temp)
        starter = temp / "tlshd"
        starter.write_text(STARTER.format(folder, LOADER))
        starter.chmod(0o755)
    return folder
