"""Which session keys did an unmodified program agree on? Logged in memory on its host, read, wiped."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass

from offload.errors import RigError
from offload.host.base import Host
from offload.paths import BUILD

LIBRARY = BUILD / "keylog.so"
VARIABLE = "KTLS_KEYLOG"  # native/keylog/keylog.c


@dataclass(frozen=True)
class KeyLog:
    """A key log on a host. No secret is ever in its environment, only where they go."""

    host: Host
    path: str

    @property
    def env(self) -> Mapping[str, str]:
        """The environment of a program whose keys are wanted."""
        return {"LD_PRELOAD": str(LIBRARY), VARIABLE: self.path}

    def read(self) -> bytes:
        """Return every line so far. They belong in memory: never write them to a file or into a message."""
        return self.host.read(self.path)


@contextmanager
def keylog(host: Host, folder: str, name: str = "keys") -> Iterator[KeyLog]:
    """Make an empty key log in `folder` of the host (0600; in memory, or the program refuses it).

    It is overwritten and removed when the block ends, however it ends; end the programs that write it first.
    RigError if the library is not built, or if the log is still there after that.
    """
    if not LIBRARY.exists():
        raise RigError(f"{LIBRARY.name} is not built", "make build")
    log = KeyLog(host, f"{folder}/{name}")
    host.write(log.path, b"", 0o600)
    try:
        yield log
    finally:
        done = host.run(["shred", "--remove", log.path], check=False)
        if host.run(["test", "-e", log.path], check=False).rc != 1:
            said = done.stderr.decode("utf-8", "replace").strip()
            raise RigError(f"the key log remains on {host.name}: {log.path}: {said}", "remove it manually")
