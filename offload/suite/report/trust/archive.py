"""The evidence of a run as one file to hand on: report and all behind it, captures in part, keys never."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from offload.cmd import run
from offload.errors import CommandFailed, ConfigError, Refused, RigError
from offload.suite.report.events import MAX_FILE
from offload.suite.report.trust.archive_look import is_key_file, key_material, left_out
from offload.suite.report.trust.archive_window import Damaged, Secrets, window
from offload.suite.report.trust.kept import paths
from offload.suite.report.trust.manifest import plain
from offload.suite.report.trust.saved import saved
from offload.suite.report.wire import size

INDEX = "ARCHIVE.json"
WINDOW = 1 << 20  # bytes of packets kept of a capture
KINDS = (".tar.zst", ".tar.gz")
HINT = "an archive must not contain keys; find out what wrote the file, and remove it"


@dataclass(frozen=True)
class Entry:
    """A file in the archive; `of_*`: the file that it is a part of, where that is not the same."""

    name: str
    size: int
    sha256: str
    packets: int | None = None
    of_packets: int | None = None
    of_size: int | None = None
    of_sha256: str | None = None


@dataclass(frozen=True)
class Packed:
    """What was packed: the archive, its SHA-256, what is in it and what stayed behind, with the reason."""

    path: Path
    size: int
    sha256: str
    entries: tuple[Entry, ...]
    left: dict[str, str]

    def lines(self) -> list[str]:
        """Return what a person wants to know."""
        whole = f"{self.path}: {len(self.entries)} files, {size(self.size)}, SHA-256 {self.sha256}"
        cut = [
            f"  in part: {one.name}, {one.packets} of {one.of_packets} packets"
            for one in self.entries
            if one.of_size is not None
        ]
        return [whole, *cut, *(f"  left out: {ascii(name)[1:-1]}: {why}" for name, why in self.left.items())]


def pack(folder: Path, out: Path) -> Packed:
    """Pack the folder of a run into the new file `out`; the same run gives the same bytes.

    ConfigError for a folder that is no run, or a wrong or taken name; Refused where there are keys; RigError.
    """
    kind = next((kind for kind in KINDS if out.name.endswith(kind)), "")
    if not kind or out.name == kind:
        raise ConfigError(f"{out}: wanted a name that ends in {' or '.join(KINDS)}")
    if out.exists():
        raise ConfigError(f"{out} already exists", "name a new file")
    if out.resolve().is_relative_to(folder.resolve()):
        raise ConfigError(f"{out} is in the folder of the run", "name a file outside of it")
    if kind == ".tar.zst" and shutil.which("zstd") is None:
        raise Refused("a .tar.zst needs zstd, which is not installed", "apt install zstd, or name a .tar.gz")
    started = re.sub(r"[^0-9TZ]", "", str(saved(folder).get("started"))[:19])
    files, entries, left = _collect(folder)
    index = {"schema": 1, "files": [asdict(one) for one in entries], "left_out": left}
    files[INDEX] = json.dumps(index, sort_keys=True, ensure_ascii=False, indent=1).encode() + b"\n"
    try:
        _write(out, kind, _tar(f"ktls-offload-{started or 'run'}", files))
        data = out.read_bytes()
    except OSError as exc:
        raise RigError(f"cannot write {out}: {exc.strerror}") from None
    return Packed(out, len(data), hashlib.sha256(data).hexdigest(), tuple(entries), left)


def _collect(folder: Path) -> tuple[dict[str, bytes], list[Entry], dict[str, str]]:
    """Return what goes in: bytes by name, a line for each, and what stays behind. Refused where keys are."""
    files: dict[str, bytes] = {}
    entries, left = [], {}
    for name, path in paths(folder).items():
        if is_key_file(name):
            raise Refused(f"{path} is named like a key file; no archive was made", HINT)
        why = left_out(name) or ("too large" if path.stat().st_size > MAX_FILE else "")
        if why:
            left[name] = why
            continue
        try:
            entry, files[name] = _entry(path, name)
            entries.append(entry)
        except Damaged as exc:
            left[name] = f"not a capture: {exc}"
    return files, entries, left


def _entry(path: Path, name: str) -> tuple[Entry, bytes]:
    """Return a file as it goes in. Damaged for what is no capture; Refused if it holds keys."""
    with plain(path) as file:
        data = file.read()
    found = key_material(data)
    if found:
        raise Refused(f"{path} holds {found}; no archive was made", HINT)
    if path.suffix.lower() != ".pcapng":
        return Entry(name, len(data), hashlib.sha256(data).hexdigest()), data
    try:
        part = window(data, WINDOW)
    except Secrets:
        raise Refused(f"{path} holds a block of session keys; no archive was made", HINT) from None
    digest = hashlib.sha256(part.data).hexdigest()
    if part.data == data:
        return Entry(name, len(data), digest, part.packets), data
    whole = hashlib.sha256(data).hexdigest()
    return Entry(name, len(part.data), digest, part.packets, part.of, len(data), whole), part.data


def _tar(top: str, files: dict[str, bytes]) -> bytes:
    """Return a tar of the files below one folder, without the times and owners of this machine."""
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w", format=tarfile.PAX_FORMAT) as out:
        for name in sorted(files):
            info = tarfile.TarInfo(f"{top}/{name}")
            info.size, info.mode = len(files[name]), 0o644
            out.addfile(info, io.BytesIO(files[name]))
    return whole.getvalue()


def _write(out: Path, kind: str, tar: bytes) -> None:
    """Compress into `out`, whole or not at all. CommandFailed, OSError."""
    with TemporaryDirectory(prefix=".ktls-offload-", dir=out.resolve().parent) as folder:
        half = Path(folder) / out.name
        if kind == ".tar.gz":
            half.write_bytes(gzip.compress(tar, mtime=0))
        else:
            source = Path(folder) / "run.tar"
            source.write_bytes(tar)
            argv = ["zstd", "-q", "-T1", str(source), "-o", str(half)]
            rc, said, err, _ = run(argv, timeout=600)
            if rc != 0:
                raise CommandFailed(argv, rc, said, err)
        half.replace(out)
