"""What is in the files of a question? Nothing that a person may name blocks, or has no end."""

from __future__ import annotations

import mmap
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from offload.errors import ConfigError

Bytes = bytes | mmap.mmap
DESCRIPTORS = ("/dev/fd/", "/proc/self/fd/")


@contextmanager
def mapped(path: Path) -> Iterator[Bytes]:
    """The bytes of a regular file, mapped; ConfigError if it cannot be read."""
    data = open_map(path)
    try:
        yield data
    finally:
        if isinstance(data, mmap.mmap):
            data.close()


def open_map(path: Path) -> Bytes:
    """A regular file, mapped; ConfigError if it cannot be read."""
    try:
        # looked at before it is opened: a pipe without a writer would wait for ever
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ConfigError(f"{path}: not a regular file", "a capture is a pcap or pcapng file")
        with path.open("rb") as file:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if status.st_size else b""
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error


def content(path: Path, limit: int) -> bytes:
    """All of a regular file or a descriptor (/dev/fd/N); ConfigError if it has more than `limit` bytes."""
    try:
        if not stat.S_ISREG(path.stat().st_mode) and not str(path).startswith(DESCRIPTORS):
            raise ConfigError(f"{path}: not a regular file", "give a file, or a descriptor as /dev/fd/N")
        with path.open("rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read: {error}") from error
    if len(data) > limit:
        raise ConfigError(f"{path}: larger than {limit >> 20} MiB", "is it the right file?")
    return data
