"""The configuration files of a program, as they lie on a host: bounded in number, size and time."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from offload.doctor.reasons import plain
from offload.errors import OffloadError
from offload.host.base import Host

MAX_BYTES, MAX_FILES, MAX_DEPTH = 1 << 20, 500, 20
DUMP = re.compile(r"^# configuration file (/[^\n]{1,400}):$", re.M)  # nginx -T, src/core/nginx.c
# no word splitting; whatever is in the pattern, it is only a pattern
GLOB = 'IFS=; for f in $1; do [ -e "$f" ] && printf "%s\\0" "$f"; done; :'


@dataclass(frozen=True)
class Place:
    """A line of a file; `str()` is FILE:LINE, for people."""

    path: str
    line: int

    def __str__(self) -> str:
        return plain(f"{self.path}:{self.line}")


@dataclass
class Files:
    """What was read, and what could not be: `problems` has place (or None) and reason."""

    host: Host
    dump: dict[str, str] = field(default_factory=dict)  # of `nginx -T`: path -> text
    read: list[str] = field(default_factory=list)
    problems: list[tuple[str, str]] = field(default_factory=list)

    def problem(self, where: object, why: str) -> None:
        """Keep what could not be understood."""
        row = (str(where), plain(why))
        if row not in self.problems and len(self.problems) < 50:
            self.problems.append(row)

    def there(self, path: str) -> bool:
        """Say whether there is such a file."""
        return path in self.dump or self.host.run(["test", "-e", path], check=False).rc == 0

    def text(self, path: str, asked: object = "") -> str | None:
        """A file's text, other bytes than UTF-8 replaced; None (and a problem) if it cannot be had."""
        if len(self.read) >= MAX_FILES:
            self.problem(asked or path, f"more than {MAX_FILES} files: ignored the rest")
            return None
        if path in self.dump:
            self.read.append(path)
            return self.dump[path]
        found = self._bytes(path)
        if isinstance(found, str):
            self.problem(asked or path, f"{path}: {found}")
            return None
        if len(found) > MAX_BYTES:
            self.problem(path, f"longer than {MAX_BYTES >> 20} MiB: ignored")
            return None
        self.read.append(path)
        return found.decode("utf-8", "replace").removeprefix("\ufeff")

    def _bytes(self, path: str) -> bytes | str:
        """The bytes, or why there are none; a pipe that nobody writes to ends after some seconds."""
        try:
            done = self.host.run(["head", "-c", str(MAX_BYTES + 1), "--", path], check=False, timeout=10)
        except (OffloadError, OSError, ValueError) as exc:
            return str(exc)
        return done.stdout if done.rc == 0 else _reason(done.stderr)

    def matching(self, pattern: str) -> list[str]:
        """The files that a shell pattern names, in the order of their names; itself if it is no pattern."""
        if self.dump:
            return sorted(path for path in self.dump if fnmatch.fnmatchcase(path, pattern))
        if not re.search(r"[*?\[]", pattern):
            return [pattern]
        try:
            done = self.host.run(["sh", "-c", GLOB, "sh", pattern], check=False, timeout=10)
        except (OffloadError, OSError, ValueError) as exc:
            self.problem(pattern, str(exc))
            return []
        return [path.decode("utf-8", "surrogateescape") for path in done.stdout.split(b"\0") if path]

    def unpack(self, path: str) -> str:
        """Read `path`; if it is what `nginx -T` printed, what was dumped is read instead. The first file."""
        text = self.text(path)
        marks = list(DUMP.finditer(text or ""))
        if text is None or not marks:
            self.read = []
            return path
        for mark, after in zip(marks, [*marks[1:], None]):
            body = text[mark.end() + 1 : after.start() if after else None]
            self.dump.setdefault(mark[1], body)
        self.read = []
        return marks[0][1]


def _reason(stderr: bytes) -> str:
    """The last words of a complaint: `No such file or directory`."""
    said = stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
    return said.rpartition(": ")[2] or "not readable"


def entering(files: Files, stack: Sequence[str], path: str, asked: object) -> str | None:
    """The text of an included file; None (and a problem) for one that includes itself, or too deep."""
    if path in stack:
        files.problem(asked, f"{path} includes itself")
        return None
    if len(stack) >= MAX_DEPTH:
        files.problem(asked, f"more than {MAX_DEPTH} files deep")
        return None
    return files.text(path, asked)
