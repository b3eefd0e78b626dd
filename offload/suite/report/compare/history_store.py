"""Results of many runs in one SQLite file: what a history needs of each, found again by bench and time."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.errors import ConfigError, RigError
from offload.suite.report.compare.diff import figures
from offload.suite.report.render.summary import clean
from offload.suite.report.trust.saved import MISFITS, saved_file

MARK, VERSION = 0x6B544C53, 1  # application_id ("kTLS") and user_version of our files
DEEP, LONGEST = 6, 300  # folders below the one that is named; characters of a text
MOST = 300  # promises, or figures, of one result
SOUND = ("kept", "not promised")  # only the other states are stored
TABLES = """
CREATE TABLE result (id INTEGER PRIMARY KEY, run TEXT NOT NULL UNIQUE,
    place TEXT NOT NULL, stamp TEXT NOT NULL,
    card TEXT NOT NULL, kernel TEXT NOT NULL, firmware TEXT NOT NULL, simulated INTEGER NOT NULL,
    finished TEXT NOT NULL, verdict TEXT NOT NULL, headline TEXT NOT NULL);
CREATE INDEX bench ON result (card, kernel, firmware, simulated, finished, verdict);
CREATE INDEX place ON result (place, stamp);
CREATE TABLE trouble (result INTEGER NOT NULL, promise TEXT NOT NULL, state TEXT NOT NULL,
    PRIMARY KEY (result, promise)) WITHOUT ROWID;
CREATE TABLE figure (result INTEGER NOT NULL, name TEXT NOT NULL, mean REAL NOT NULL, low REAL, high REAL,
    PRIMARY KEY (result, name)) WITHOUT ROWID;
"""
MADE = f"PRAGMA application_id = {MARK}; PRAGMA user_version = {VERSION};"


@dataclass(frozen=True)
class Entry:
    """What a history keeps of one result; `run`: SHA-256 of its events, so that a copy counts once."""

    run: str
    row: tuple[Any, ...]  # card, kernel, firmware, simulated, finished, verdict, headline
    trouble: tuple[tuple[str, str], ...]
    figures: tuple[tuple[str, float, float | None, float | None], ...]


def entry(report: Mapping[str, Any]) -> Entry:
    """Return what to keep of a report. KeyError, TypeError, ValueError if it is damaged."""
    bench = (report["card"]["name"], report["kernel"], report["rig"].get("firmware", ""))
    said = (report["finished"], report["verdict"], report["headline"])
    row = (*map(_text, bench), int(report["simulated"] is not False), *map(_text, said))
    trouble = {_text(p["id"]): _text(p["state"]) for p in report["promises"] if p["state"] not in SOUND}
    time = sum(float(phase["seconds"]) for phase in report["phases"])
    found = figures(report) | {"run time in s": {"mean": time, "low": None, "high": None}}
    kept = ((_text(name), *_ends(value)) for name, value in list(found.items())[:MOST])
    numbers = tuple((name, mean, low, high) for name, mean, low, high in kept if mean is not None)
    return Entry(_text(report["digests"]["events"]), row, tuple(trouble.items())[:MOST], numbers)


def _text(value: Any) -> str:
    return clean(str(value)[:LONGEST])


def _ends(value: Mapping[str, Any]) -> tuple[float | None, float | None, float | None]:
    """Return mean, low and high; what is no number that can be drawn is none."""
    mean, low, high = (
        float(one) if type(one) in (int, float) and 0 <= one < 1e12 else None
        for one in (value["mean"], value["low"], value["high"])
    )
    return (
        (mean, low, high)
        if mean is None or low is None or high is None or low <= mean <= high
        else (mean, None, None)
    )


def open_store(path: Path | None, change: bool = False) -> sqlite3.Connection:
    """Open a store: in memory without a path; made again if it is to be changed and is not there.

    ConfigError if the file is no history, or one of another version; RigError if it cannot be made.
    One that is only read is never written.
    """
    if path is None:
        return _made(sqlite3.connect(":memory:"))
    if path.exists() and not path.is_file():  # SQLite would wait for a pipe
        raise ConfigError(
            f"cannot read {path}: not a plain file", "name a folder of results, or a file that --db wrote"
        )
    new, mode = change and not os.path.lexists(path), "rwc" if change else "ro"
    store: sqlite3.Connection | None = None
    try:
        store = sqlite3.connect(f"{path.absolute().as_uri()}?mode={mode}", uri=True, isolation_level=None)
        if new:
            _made(store)
        store.execute("PRAGMA trusted_schema = OFF")  # the file can be anybody's
        known = [store.execute(f"PRAGMA {name}").fetchone()[0] for name in ("application_id", "user_version")]
        if known == [MARK, VERSION]:
            return store
        why = f"not a history of version {VERSION}"
    except sqlite3.Error as exc:
        why = str(exc)
    if store is not None:
        store.close()
    if new and store is not None:
        path.unlink(missing_ok=True)  # half of a history is none, and nothing could be kept in it
        raise RigError(f"cannot write {path}: {why}")
    raise ConfigError(f"{path}: {why}", "name a folder of results, or a file that --db wrote")


def _made(store: sqlite3.Connection) -> sqlite3.Connection:
    store.executescript(f"BEGIN; {TABLES} {MADE} COMMIT")
    return store


def add_folder(store: sqlite3.Connection, folder: Path) -> list[tuple[str, str]]:
    """Add every result below a folder that is new or changed: what could not be read, with the reason.

    ConfigError if there is no such folder, RigError if the store cannot be written.
    """
    if not folder.is_dir():
        raise ConfigError(f"{folder}: no such folder", "name a folder of results, or a file that --db wrote")
    wrong: list[tuple[str, str]] = []
    try:
        with closing(store.cursor()) as cursor:
            if not store.in_transaction:
                cursor.execute("BEGIN IMMEDIATE")
            for path in reports(folder):
                why = _add_file(cursor, path)
                wrong += [(str(path), why)] if why else []
            store.commit()
    except sqlite3.Error as exc:
        store.rollback()
        raise RigError(f"cannot write the history: {exc}") from None
    return wrong


def reports(folder: Path) -> Iterator[Path]:
    """Yield every report.json below a folder, by name; inside of a run there is no other run."""
    for top, folders, names in os.walk(folder):
        deep = len(Path(top).relative_to(folder).parts)
        folders[:] = sorted(folders) if deep < DEEP and "report.json" not in names else []
        if "report.json" in names:
            yield Path(top) / "report.json"


def _add_file(cursor: sqlite3.Cursor, path: Path) -> str:
    """Add one report unless it is there as it is; say why it cannot be."""
    try:
        state = path.stat()
        place, stamp = str(path.parent.absolute()), f"{state.st_mtime_ns}-{state.st_size}"
        if cursor.execute("SELECT 1 FROM result WHERE place = ? AND stamp = ?", (place, stamp)).fetchone():
            return ""
        add(cursor, entry(saved_file(path)), place, stamp)
    except (ConfigError, OSError) as exc:
        return str(exc).partition("\n")[0].removeprefix(f"{path}: ")
    except MISFITS as exc:
        return f"damaged: {type(exc).__name__} at {exc}"
    return ""


def add(cursor: sqlite3.Cursor, found: Entry, place: str, stamp: str) -> None:
    """Add one result; the same run again takes the place of the former one. sqlite3.Error."""
    for table in ("trouble", "figure"):
        cursor.execute(
            f"DELETE FROM {table} WHERE result = (SELECT id FROM result WHERE run = ?)", (found.run,)
        )
    cursor.execute("DELETE FROM result WHERE run = ?", (found.run,))
    names = "run, place, stamp, card, kernel, firmware, simulated, finished, verdict, headline"
    values = (found.run, place, stamp, *found.row)
    cursor.execute(f"INSERT INTO result ({names}) VALUES ({', '.join('?' * len(values))})", values)
    number = cursor.lastrowid
    cursor.executemany("INSERT INTO trouble VALUES (?, ?, ?)", [(number, *row) for row in found.trouble])
    cursor.executemany("INSERT INTO figure VALUES (?, ?, ?, ?, ?)", [(number, *row) for row in found.figures])


def ask(store: sqlite3.Connection, words: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return the rows of a query. ConfigError if the file is damaged."""
    try:
        return store.execute(words, values).fetchall()
    except sqlite3.Error as exc:
        raise ConfigError(
            f"the history is damaged: {exc}", "create it again with --db from the results"
        ) from None
