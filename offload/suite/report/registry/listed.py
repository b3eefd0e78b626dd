"""Which archives of a folder may be listed: intact, signed by an allowed signer, with the right verdict."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.errors import ConfigError
from offload.suite.report import criteria, files
from offload.suite.report.compare.diff import compare
from offload.suite.report.compare.diff import text as in_words
from offload.suite.report.render.render import html
from offload.suite.report.trust import manifest
from offload.suite.report.trust.archive import KINDS
from offload.suite.report.trust.opened import check, opened
from offload.suite.report.trust.saved import MISFITS, saved


@dataclass(frozen=True)
class Entry:
    """A result that may be listed: its archive and digest, the document, who signed, what was not checked."""

    archive: str
    sha256: str
    document: dict[str, Any]
    signer: str
    remark: str

    @property
    def slug(self) -> str:
        """Return the name of its folder on the site."""
        return f"{re.sub('[^0-9TZ]', '', self.document['started'][:19])}-{self.sha256[:12]}"

    @property
    def bench(self) -> tuple[str, str, str]:
        """Return what it is listed by: card, kernel, driver."""
        card, rig = self.document["card"], self.document["rig"]
        driver = f"{rig.get('driver') or card['driver']} {rig.get('driver version', '')}".strip()
        return (
            card["name"] + (" (SIMULATED)" if self.document["simulated"] else ""),
            self.document["kernel"],
            driver,
        )


@dataclass(frozen=True)
class Compared:
    """A result with what became of it since the one before of the same bench."""

    entry: Entry
    changed: str
    words: str


def read(folder: Path, allowed: Path, identity: str | None) -> tuple[list[Entry], dict[str, str]]:
    """Return the results that may be listed, newest first, and why others may not. ConfigError, RigError."""
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder", "name a folder of archives, as `report archive` makes")
    found, wrong = list[Entry](), dict[str, str]()
    for path in sorted(one for one in folder.iterdir() if one.name.endswith(KINDS)):
        try:
            found.append(_entry(path, allowed, identity))
        except ConfigError as exc:
            wrong[path.name] = str(exc).partition("\n")[0]
        except MISFITS as exc:
            wrong[path.name] = f"its report is damaged: {type(exc).__name__}"
    found.sort(key=lambda one: (one.document["finished"], one.sha256), reverse=True)
    return found, wrong


def _entry(path: Path, allowed: Path, identity: str | None) -> Entry:
    """Return one result. ConfigError if it may not be listed."""
    result = check(path, allowed, identity)
    if result.signature.state != "good":
        raise ConfigError(f"not signed by an allowed signer: {result.signature.words}")
    if result.problems:
        raise ConfigError(
            f"not intact: {manifest.shown(result.problems[0].path)}: {result.problems[0].words}"
        )
    with opened(path) as folder:
        document = saved(folder)
        remark = _follows(document, folder)
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    entry = Entry(path.name, digest, document, result.signature.signer, remark)
    _is_whole(entry)
    return entry


def _is_whole(entry: Entry) -> None:
    """Look whether a result has all that the site shows of it: one of MISFITS if not."""
    html(entry.document)
    compare(entry.document, entry.document)
    if not all(isinstance(part, str) for part in (entry.slug, *entry.bench, entry.document["finished"])):
        raise TypeError("text")


def _follows(document: Mapping[str, Any], folder: Path) -> str:
    """Return what could not be checked of a verdict, else nothing. ConfigError if it does not follow."""
    if document["digests"]["criteria"] != criteria.load().sha256:
        return "judged by the criteria of another version"
    again = files.compute(folder)
    if _states(again) != _states(document):
        raise ConfigError("its verdict does not follow from its events")
    return ""


def _states(document: Mapping[str, Any]) -> tuple[Any, ...]:
    promises = [(one["id"], one["state"]) for one in document["promises"]]
    return (document["verdict"], document["simulated"], document["card"], document["kernel"], promises)


def compared(entries: Iterable[Entry]) -> list[Compared]:
    """Return results, newest first, each with what changed since the last one of its bench."""
    rows = list(entries)
    found = []
    for number, entry in enumerate(rows):
        before = next((one for one in rows[number + 1 :] if one.bench == entry.bench), None)
        words = in_words(compare(before.document, entry.document)) if before else ""
        found.append(Compared(entry, words.partition("\n")[0] or "the first of its kind", words))
    return found
