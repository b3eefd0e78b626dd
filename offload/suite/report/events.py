"""The events of a run, one JSON object per line: written so that a crash loses nothing, read as hostile."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from offload.errors import ConfigError, RigError

SCHEMA = 2  # of events and report.json; 1 had other names for some keys
OUTCOMES = ("pass", "fail", "xfail", "skip", "error")
MAX_LINE = 1 << 20  # bytes; a longer line is a problem, not a reason to eat all memory
MAX_FILE = 1 << 28
DEEPEST = 16  # levels that an event may nest: the ends of a migration are at 8, what is deeper is text


def now() -> str:
    """Return the time as ISO 8601 in UTC, to the millisecond."""
    return datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def plain(value: Any, depth: int = 0) -> Any:
    """Return `value` as JSON can hold it; what cannot be held becomes text."""
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if value == value and abs(value) != float("inf") else str(value)
    if depth < DEEPEST and isinstance(value, Mapping):
        return {str(key): plain(inner, depth + 1) for key, inner in value.items()}
    if depth < DEEPEST and isinstance(value, Sequence) and not isinstance(value, bytes | bytearray):
        return [plain(inner, depth + 1) for inner in value]
    if isinstance(value, bytes | bytearray):
        return bytes(value).hex() if len(value) <= 64 else f"{len(value)} bytes, {bytes(value[:32]).hex()}..."
    return _text(value)


def _text(value: Any) -> str:
    try:
        return str(value)[:2000]
    except Exception as exc:  # a broken __str__ must not end the run
        return f"<{type(value).__name__} without text: {type(exc).__name__}>"


class Writer:
    """Append events to a file; each is on disk when `write` returns, and numbered (`seq`) without gaps."""

    def __init__(self, path: Path) -> None:
        """Begin or continue the file. ConfigError if it is none (a device, a folder): that is not removed."""
        if path.exists() and not path.is_file():
            raise ConfigError(f"events cannot go to {path}: it is not a plain file")
        path.parent.mkdir(parents=True, exist_ok=True)
        self._seq = _preamble(path)
        if not self._seq:
            path.unlink(missing_ok=True)
        self._out = path.open("ab", buffering=0)

    def write(self, event: str, **fields: Any) -> None:
        """Write one event with its number and the time. RigError if the disk refuses; no half line stays."""
        head = {"schema": SCHEMA, "seq": self._seq, "event": event, "time": now()}
        line = json.dumps(head | plain(fields), ensure_ascii=False) + "\n"
        left, number = memoryview(line.encode("utf-8", "backslashreplace")), self._out.fileno()
        before = os.fstat(number).st_size
        try:
            while left:  # a disk that fills up takes a part first
                left = left[os.write(number, left) :]
            os.fsync(number)
        except OSError as exc:
            with suppress(OSError):
                os.ftruncate(number, before)
            raise RigError(f"cannot write {self._out.name}: {exc.strerror}") from None
        self._seq += 1

    def close(self) -> None:
        """Close the file; nothing is lost without it."""
        self._out.close()


def _preamble(path: Path) -> int:
    """How many events to continue after: those of `certify` before the tests; an earlier run is replaced."""
    if not path.exists():
        return 0
    log = read(path)
    started = any(event["event"] == "run-start" for event in log.events)
    return 0 if started or log.problems else len(log.events)


def resume(path: Path) -> Writer:
    """Return a Writer that adds to whatever is there: for what `certify` must say after the tests."""
    log = read(path) if path.exists() else Log([])
    writer = Writer.__new__(Writer)
    writer._seq = max((event.get("seq", -1) for event in log.events), default=-1) + 1
    if log.torn:
        _drop_tail(path)
    writer._out = path.open("ab", buffering=0)
    return writer


def _drop_tail(path: Path) -> None:
    """Cut off a line that a killed writer did not finish."""
    data = path.read_bytes()
    with path.open("r+b") as out:
        out.truncate(data.rfind(b"\n") + 1)


@dataclass(frozen=True)
class Log:
    """What a file of events says: the events in order, what is wrong with the file, its SHA-256."""

    events: list[dict[str, Any]]
    problems: list[str] = field(default_factory=list)
    torn: bool = False
    sha256: str = ""

    def results(self) -> list[dict[str, Any]]:
        """Return the results in the order of the plan: labs side by side end their tests in any order."""
        plans = [event["tests"] for event in self.events if event["event"] == "plan"][:1]
        names = [test.get("id") for plan in plans for test in plan if isinstance(test, dict)]
        places = {str(name): number for number, name in enumerate(names)}
        found = [event for event in self.events if event["event"] == "test"]
        return sorted(found, key=lambda event: places.get(event["id"], -1))


def content(path: Path) -> bytes:
    """Return the bytes of a plain file. OSError; a pipe or a device is none, and is not waited for."""
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | os.O_NONBLOCK)) as file:
        state = os.fstat(file.fileno())
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "not a plain file", str(path))
        if state.st_size > MAX_FILE:
            raise OSError(errno.EFBIG, f"larger than {MAX_FILE >> 20} MiB", str(path))
        return file.read()


def read(path: Path) -> Log:
    """Read a file of events. Never raises for bad content: the problems are listed. OSError if unreadable."""
    try:
        data = content(path)
    except OSError as exc:
        if exc.errno != errno.EFBIG:
            raise
        return Log([], [f"{path.name} is {exc.strerror}"])
    lines = data.split(b"\n")
    tail = lines.pop()
    found: list[dict[str, Any]] = []
    problems: list[str] = []
    for number, line in enumerate(lines, 1):
        event = parse(line)
        if isinstance(event, str):
            problems.append(f"line {number}: {event}")
        else:
            found.append(event)
    if tail:
        problems.append("the last line is cut off")
    return Log(found, problems, bool(tail), hashlib.sha256(data).hexdigest())


def parse(line: bytes) -> dict[str, Any] | str:
    """Return the event on one line, or what is wrong with it."""
    if len(line) > MAX_LINE:
        return f"longer than {MAX_LINE} bytes"
    try:
        event = json.loads(line.decode("utf-8"), **NUMBERS)
    except (ValueError, RecursionError) as exc:
        return f"not JSON ({type(exc).__name__})"
    if not isinstance(event, dict) or not isinstance(event.get("event"), str):
        return "not an event (an object with the key 'event')"
    if event.get("schema") != SCHEMA:
        return f"schema {event.get('schema')!r}, this program reads {SCHEMA}"
    return _checked(event)


def _refuse(word: str) -> float:
    raise ValueError(f"{word} is not a JSON number")


def _finite(digits: str) -> float:
    """Return a number; one beyond a double (1e999) would come back as a constant that JSON cannot hold."""
    value = float(digits)
    return value if abs(value) != float("inf") else _refuse(digits[:40])


def _whole(digits: str) -> int:
    """Return a whole number; one beyond a double could be read, and then neither divided nor drawn."""
    _finite(digits)
    return int(digits)


NUMBERS: dict[str, Any] = {"parse_constant": _refuse, "parse_float": _finite, "parse_int": _whole}


# Kind of event -> the fields that the verdict relies on, with their types.
FIELDS: dict[str, dict[str, type | tuple[type, ...]]] = {
    "run-start": {"rig": dict, "profile": str, "simulated": bool, "kernel": str},
    "rig": {"rig": dict, "profile": str, "simulated": bool, "kernel": str},
    "judged": {"profile": dict, "tests": dict, "commit": str, "dirty": bool},
    "plan": {"tests": list, "deselected": list},
    "replay": {"of": str, "sha256": str, "kernel": str, "rig": dict, "tests": list},
    "test": {"id": str, "outcome": str, "seconds": (int, float), "reason": str, "evidence": dict},
    "phase": {"name": str, "seconds": (int, float)},
    "memory": {"peak": int},
    "run-end": {"exit": int, "seconds": (int, float)},
}
MOST = {"seconds": 1e9, "peak": 1 << 60}


def _checked(event: dict[str, Any]) -> dict[str, Any] | str:
    for name, kind in FIELDS.get(event["event"], {}).items():
        value = event.get(name)
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            return f"{event['event']}: {name} is {value!r:.60}"
        if name in MOST and not 0 <= event[name] < MOST[name]:
            return f"{event['event']}: {name} is {event[name]!r:.60}"
    return _checked_test(event) if event["event"] == "test" else event


def _checked_test(event: dict[str, Any]) -> dict[str, Any] | str:
    if event["outcome"] not in OUTCOMES:
        return f"test: outcome {event['outcome']!r:.60} is not one of {', '.join(OUTCOMES)}"
    if not isinstance(event.get("promise"), str | None) or not isinstance(event.get("cell"), dict | None):
        return "test: promise is not text, or cell is not an object"
    return event
