"""Which drivers were built and installed, for which kernels, and which of them does the kernel run?"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from offload.driver import secure
from offload.driver.build import built_modules, origin, place
from offload.driver.kinds import Kind, kinds
from offload.driver.record import Record, all_records, digest
from offload.driver.target import find
from offload.errors import OffloadError


def lines(out: Path | None, root: Path = Path("/")) -> Iterator[str]:
    """What a person wants to know, a line each."""
    release = os.uname().release
    yield f"kernel {release} runs; {secure.gate(root).why}"
    records = {(r.kind, r.release): r for r in all_records()}
    known = sorted({*records, *_built(out)})
    for name, where in known:
        yield from _one(kinds()[name], where, records.get((name, where)), out)
    for name, kind in kinds().items():
        if (loaded := _loaded(kind, root)) is not None:
            yield f"{name}: {loaded}"
    if not known:
        yield "nothing was built: ktls-offload driver build " + "|".join(kinds())


def _built(out: Path | None) -> Iterator[tuple[str, str]]:
    """Every driver and kernel with a tree."""
    for kind in kinds().values():
        for tree in sorted(place(kind, "x", out).parent.glob(f"{kind.name}-*")):
            if origin(tree) and built_modules(kind, tree):
                yield kind.name, tree.name.removeprefix(f"{kind.name}-")


def _one(kind: Kind, release: str, record: Record | None, out: Path | None) -> Iterator[str]:
    """One driver for one kernel."""
    tree = place(kind, release, out)
    built = f"built from {origin(tree)} in {tree}" if built_modules(kind, tree) else "not built here"
    if record is None:
        yield f"{kind.name} for {release}: {built}, not installed"
        return
    how = f"by DKMS as {record.dkms}" if record.dkms else "in updates/ktls-offload"
    yield f"{kind.name} for {release}: installed from {record.version} {how}"
    for name, sha in record.files.items():
        path = Path(name)
        if not path.is_file() or digest(path) != sha:
            yield f"  {name}: {'is another file now' if path.is_file() else 'is gone'}"
    try:
        now = find(release).version
    except OffloadError:
        return
    if now != record.version:
        yield f"  the kernel is {now} now: `driver build {kind.name}` brings its fixes"


def _loaded(kind: Kind, root: Path) -> str | None:
    """Whose driver the kernel has loaded: one from outside its tree has an O in its taint; None: none."""
    name = next(iter(kind.modules))
    try:
        taint = (root / f"sys/module/{name}/taint").read_text().strip()
    except OSError:
        return None
    whose = "was built outside the kernel" if "O" in taint else "is the kernel's own"
    return f"the loaded {name} {whose}"
