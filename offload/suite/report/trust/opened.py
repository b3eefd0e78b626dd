"""Opens a result: the folder of a run, or an archive of it, which is unpacked for as long as it is read."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from offload.errors import ConfigError
from offload.suite.report.trust import manifest, verify
from offload.suite.report.trust.archive import INDEX, KINDS
from offload.suite.report.trust.kept import Kept
from offload.suite.report.trust.manifest import Listed
from offload.suite.report.trust.saved import EVENTS, MISFITS
from offload.suite.report.trust.unpack import unpack

WHOLE = (EVENTS, "report.json")  # no part of these is ever left out


@contextmanager
def opened(path: Path) -> Iterator[Path]:
    """The folder of a result. ConfigError for an archive that `report archive` cannot have made."""
    if path.is_dir() or not path.name.endswith(KINDS):
        yield path
        return
    if not path.is_file():
        raise ConfigError(f"{path}: no such archive")
    with TemporaryDirectory(prefix="ktls-offload-archive-") as name:
        unpack(path, Path(name))
        yield Path(name)


def whole(folder: Path) -> list[Kept]:
    """The files of the run that an archive holds in part, by its manifest; none if that is damaged."""
    listed = manifest.parse(manifest.content(folder / manifest.NAME) or b"")
    rows = listed.items() if isinstance(listed, dict) else ()
    return [Kept(name, one.size, one.sha256) for name, one in sorted(rows)]


def check(path: Path, allowed: Path | None = None, identity: str | None = None) -> verify.Result:
    """Compare a folder or an archive with its manifest, as verify.check()."""
    with opened(path) as folder:
        found = verify.check(folder, allowed, identity)
        return found if folder == path else _of_archive(found, path)


def _of_archive(found: verify.Result, path: Path) -> verify.Result:
    """Take what an archive leaves out on purpose from the problems; the result names the archive."""
    try:
        known = [one for one in found.problems if _explained(one, found.folder)]
    except (*MISFITS, OSError, ValueError, RecursionError) as exc:
        raise ConfigError(f"{path}: its {INDEX} is damaged ({type(exc).__name__})") from None
    left = tuple(problem for problem in found.problems if problem not in known)
    parts = tuple(problem.path for problem in known if problem.path != INDEX)
    return replace(found, folder=path, problems=left, parts=parts)


def _explained(problem: verify.Problem, folder: Path) -> bool:
    """Say whether an archive must differ so: its own index, a file left out, a capture in part."""
    if problem.path == INDEX:
        return problem.kind == "extra"
    index = json.loads((folder / INDEX).read_bytes())
    if problem.path in WHOLE:
        return False
    if problem.kind == "missing":
        return problem.path in index["left_out"]
    rows = {row["name"]: row for row in index["files"]}
    row = rows.get(problem.path, {})
    if problem.kind != "changed" or not problem.path.endswith(".pcapng") or not row.get("of_sha256"):
        return False
    listed = manifest.parse((folder / manifest.NAME).read_bytes())
    part, whole = Listed(row["size"], row["sha256"]), Listed(row["of_size"], row["of_sha256"])
    same = isinstance(listed, dict) and listed[problem.path] == whole
    return same and manifest.measure(folder / problem.path) == part
