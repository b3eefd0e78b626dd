"""mstflint, NVIDIA's own tool for the firmware of its cards: Debian's package, unpacked and never installed.

usage: python -m tests.lib.catalogue.mstflint      (before `make test-broken-drivers`)
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

from offload.debian.cache import cache_root, kept, new_folder, read_json
from offload.debian.kernels import codename
from offload.debian.packages import amd64_only, download, index, installed, refresh
from offload.errors import OffloadError
from offload.suite.bench.programs.managers import choose

PLACE = "mstflint"
STARTER = '#!/bin/sh\nLD_LIBRARY_PATH="{0}/usr/lib/x86_64-linux-gnu" exec "{0}/usr/bin/mstflint" "$@"\n'


def fetch(say: Callable[[str], None] = print) -> str:
    """The path of mstflint, fetched if need be; RigError if it cannot be had."""
    amd64_only()
    return str(kept(PLACE, lambda root: _fetch(root, say), say) / PLACE)


def had() -> str:
    """The same path if it has been fetched, else ''."""
    state = read_json(cache_root() / PLACE / "current.json")
    path = cache_root() / PLACE / state["folder"] / PLACE if state else None
    return str(path) if path and path.is_file() else ""


def _fetch(root: Path, say: Callable[[str], None]) -> Path:
    refresh()
    parts = choose(index(), codename(), installed(), ["mstflint"])
    say(f"fetching mstflint {parts[0].version}: {sum(part.size for part in parts) >> 10} KiB")
    folder = root / parts[0].version.replace(":", "_")
    with new_folder(folder) as temp:
        download(parts, temp)
        starter = temp / PLACE
        starter.write_text(STARTER.format(folder))
        starter.chmod(0o755)
    return folder


def main() -> int:
    """Fetch it; without it one test is skipped."""
    try:
        fetch()
    except OffloadError as exc:
        sys.stderr.write(f"ktls-offload: {exc}; the test that wants it will be skipped\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
