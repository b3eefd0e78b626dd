"""Which drivers were built and installed, for which kernels, and which of them does the kernel run?"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from offload.driver import secure
from offload.driver.build import built_modules, origin, place
from offload.driver.kinds import Kind, kinds
from offload.driver.record import Record, all_records, digest
from offload.driver.target import find
from offload.errors import OffloadError

SCHEMA = 1


@dataclass(frozen=True)
class Installed:
    """What `install` put there: `version` of its source, `dkms` NAME/VERSION or '', the kernel's version now.

    `files`: path -> as installed, changed or gone. `now` is None where that kernel's headers are not here.
    """

    version: str
    dkms: str
    files: Mapping[str, str]
    now: str | None


@dataclass(frozen=True)
class Driver:
    """One driver for one kernel: `built` is the version of its source (None: not built in `tree`)."""

    driver: str
    kernel: str
    tree: str
    built: str | None
    installed: Installed | None


@dataclass(frozen=True)
class Standing:
    """All of this machine; `loaded`: driver -> whether it was built outside the kernel's tree."""

    running: str
    signed_only: bool
    why: str
    drivers: tuple[Driver, ...]
    loaded: Mapping[str, bool]


def gather(out: Path | None, root: Path = Path("/")) -> Standing:
    """Look; changes nothing."""
    gate = secure.gate(root)
    records = {(r.kind, r.release): r for r in all_records()}
    known = sorted({*records, *_built(out)})
    rows = tuple(_one(kinds()[name], where, records.get((name, where)), out) for name, where in known)
    loaded = {name: found for name, kind in kinds().items() if (found := _foreign(kind, root)) is not None}
    return Standing(os.uname().release, gate.closed, gate.why, rows, loaded)


def _built(out: Path | None) -> Iterator[tuple[str, str]]:
    """Every driver and kernel with a tree."""
    for kind in kinds().values():
        for tree in sorted(place(kind, "x", out).parent.glob(f"{kind.name}-*")):
            if origin(tree) and built_modules(kind, tree):
                yield kind.name, tree.name.removeprefix(f"{kind.name}-")


def _one(kind: Kind, release: str, record: Record | None, out: Path | None) -> Driver:
    """One driver for one kernel."""
    tree = place(kind, release, out)
    built = origin(tree) if built_modules(kind, tree) else None
    return Driver(kind.name, release, str(tree), built, _installed(record) if record else None)


def _installed(record: Record) -> Installed:
    """Return what became of what was installed, and of the kernel that it is for."""
    files = {name: _became(Path(name), sha) for name, sha in record.files.items()}
    try:
        now: str | None = find(record.release).version
    except OffloadError:
        now = None
    return Installed(record.version, record.dkms, files, now)


def _became(path: Path, sha: str) -> str:
    """Return what a file is now that had this SHA-256."""
    if not path.is_file():
        return "gone"
    return "as installed" if digest(path) == sha else "changed"


def _foreign(kind: Kind, root: Path) -> bool | None:
    """Whether the driver that the kernel has loaded was built outside its tree (an O in its taint)."""
    try:
        return "O" in (root / f"sys/module/{next(iter(kind.modules))}/taint").read_text()
    except OSError:
        return None  # none is loaded


def as_json(found: Standing) -> str:
    """The document for programs (offload/driver/schema/driver-status-1.schema.json): ASCII, one line."""
    return json.dumps({"schema": SCHEMA, **asdict(found)})


def lines(found: Standing) -> Iterator[str]:
    """Yield what a person wants to know, a line each."""
    yield f"kernel {found.running} runs; {found.why}"
    for row in found.drivers:
        yield from _described(row)
    for name, foreign in found.loaded.items():
        whose = "was built outside the kernel" if foreign else "is the kernel's own"
        yield f"{name}: the loaded {next(iter(kinds()[name].modules))} {whose}"
    if not found.drivers:
        yield "nothing is built: ktls-offload driver build " + "|".join(kinds())


def _described(row: Driver) -> Iterator[str]:
    """One driver for one kernel."""
    if row.installed is None:
        yield f"{row.driver} for {row.kernel}: built from {row.built} in {row.tree}, not installed"
        return
    was = row.installed
    how = f"by DKMS as {was.dkms}" if was.dkms else "in updates/ktls-offload"
    yield f"{row.driver} for {row.kernel}: installed from {was.version} {how}"
    words = {"changed": "is another file now", "gone": "is gone"}
    yield from (f"  {name}: {words[state]}" for name, state in was.files.items() if state in words)
    if was.now and was.now != was.version:
        yield f"  the kernel is {was.now} now: `driver build {row.driver}` adds its fixes"
