"""An archive of a run read back into a folder: plain files below one top, within bounds, and nothing else."""

from __future__ import annotations

import gzip
import io
import subprocess
import tarfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from offload.errors import ConfigError, Refused
from offload.suite.report.trust.manifest import LONGEST, MOST_DEPTH, MOST_FILES

MOST = 1 << 30  # bytes, unpacked


def unpack(archive: Path, folder: Path) -> None:
    """Write the files of an archive below `folder`. ConfigError for what `report archive` never makes."""
    try:
        with _stream(archive) as stream, tarfile.open(fileobj=_Bounded(stream), mode="r|") as tar:
            for number, (parts, data) in enumerate(_files(archive, tar)):
                if number >= MOST_FILES:
                    raise ConfigError(f"{archive}: more than {MOST_FILES} files")
                place = folder.joinpath(*parts)
                place.parent.mkdir(parents=True, exist_ok=True)
                place.write_bytes(data)
    except (OSError, EOFError, tarfile.TarError, zlib.error, ValueError) as exc:
        raise ConfigError(f"{archive}: not an archive that can be read ({type(exc).__name__})") from None


def _files(archive: Path, tar: tarfile.TarFile) -> Iterator[tuple[list[str], bytes]]:
    """Yield path and bytes of each file; all lie below one folder, which is left away."""
    tops: set[str] = set()
    for info in tar:
        top, *parts = info.name.split("/")
        tops.add(top)
        plain = parts and all(part not in ("", ".", "..") for part in parts) and info.name.isprintable()
        small = len(parts) <= MOST_DEPTH and len(info.name.encode()) <= LONGEST
        data = tar.extractfile(info) if info.isreg() else None
        if not (plain and small and data) or "\\" in info.name or len(tops) > 1:
            raise ConfigError(f"{archive}: {ascii(info.name)[:80]} is no file of a run")
        yield parts, data.read()


@contextmanager
def _stream(archive: Path) -> Iterator[IO[bytes]]:
    """The tar in an archive, as a stream."""
    if archive.name.endswith(".tar.gz"):
        with gzip.open(archive) as stream:
            yield io.BufferedReader(stream)
        return
    argv = ["zstd", "-dcq", "--memory=256MiB", "--", str(archive)]
    try:
        zstd = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except FileNotFoundError:
        raise Refused("a .tar.zst needs zstd, which is not installed", "apt install zstd") from None
    with zstd:
        assert zstd.stdout is not None
        try:
            yield zstd.stdout
        finally:
            zstd.kill()


class _Bounded(io.RawIOBase):
    """A stream that ends in an error rather than fill the disk."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream, self._left = stream, MOST

    def read(self, size: int = -1) -> bytes:
        """Return the next bytes. ValueError beyond the bound."""
        data = self._stream.read(size)
        self._left -= len(data)
        if self._left < 0:
            raise ValueError("too large")
        return data
