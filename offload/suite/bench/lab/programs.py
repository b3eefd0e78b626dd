"""Do the hosts have our programs, where they lie here? Send the missing ones, and remove them afterwards."""

from __future__ import annotations

import hashlib
import io
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from offload.errors import RigError
from offload.host.base import Host
from offload.paths import BUILD


def built(folder: Path = BUILD) -> dict[str, str]:
    """Every program and preload of `make build`, by path, with its SHA-256."""
    files = [p for p in sorted(folder.glob("*")) if p.is_file() and os.access(p, os.X_OK)]
    return {str(p): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


@contextmanager
def provided(host: Host, folder: Path = BUILD) -> Iterator[list[str]]:
    """Send what the host has not, or has otherwise; until the block ends. The paths that were sent.

    RigError if something else lies at such a path: it is not ours to replace.
    """
    want = built(folder)
    said = host.run(["sha256sum", *want], check=False).text if want else ""
    have = {path: digest for digest, _, path in (line.partition("  ") for line in said.splitlines())}
    odd = [path for path in want if path in have and have[path] != want[path]]
    if odd:
        raise RigError(
            f"{host.name} has another {odd[0]}", "remove it there, or build the same version there"
        )
    send = [path for path in want if path not in have]
    fresh = host.run(["test", "-d", str(folder)], check=False).rc != 0
    try:
        if send:
            host.run(["mkdir", "-p", str(folder)])
            host.run(["tar", "-x", "-C", str(folder)], input=_tar(send), timeout=120)
        yield send
    finally:
        if send:
            host.run(["rm", "-f", *send], check=False)
        if send and fresh:
            host.run(["rmdir", "-p", "--ignore-fail-on-non-empty", str(folder)], check=False)


def _tar(paths: list[str]) -> bytes:
    """The files as one archive, by name, root's and executable."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as into:
        for path in paths:
            data, info = Path(path).read_bytes(), tarfile.TarInfo(Path(path).name)
            info.size, info.mode = len(data), 0o755
            into.addfile(info, io.BytesIO(data))
    return out.getvalue()
