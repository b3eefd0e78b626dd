"""Which tests were begun and never ended? On disk before each one, so that it is known what killed a host."""

from __future__ import annotations

import json
import os
from pathlib import Path

from offload.errors import ConfigError, RigError

MAX_BYTES = 16 << 20


class Attempts:
    """One file of JSON lines: {"begun": id, "at": time}, {"ended": id}, and {"lost": id, "why": text} if the
    run lived to see what became of the host; on disk when a method returns. `lost`: when each that never
    ended began, `why`: what is known of it.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.why: dict[str, str] = {}
        self.lost = self._read()

    def _read(self) -> dict[str, str]:
        """Tests that never ended, with the time when they began."""
        try:
            raw = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as exc:
            raise ConfigError(f"{self.path}: cannot read: {exc.strerror}") from None
        if len(raw) > MAX_BYTES:
            raise ConfigError(
                f"{self.path}: larger than {MAX_BYTES >> 20} MiB: this is not a list of attempts"
            )
        found: dict[str, str] = {}
        lines = raw.decode("utf-8", "replace").splitlines()
        if sum(_noted(line, found, self.why) for line in lines) == 0 and len(lines) > 1:
            raise ConfigError(f"{self.path}: this is not a list of attempts")
        return found

    def begin(self, test: str, at: str) -> None:
        """Note that a test is about to run."""
        self._write({"begun": test, "at": at})

    def end(self, test: str) -> None:
        """Note that it ended, however it did."""
        self._write({"ended": test})

    def lose(self, test: str, why: str) -> None:
        """Note what became of the host under it."""
        self._write({"lost": test, "why": why})

    def forget(self, test: str) -> None:
        """Let a test be tried again."""
        if test in self.lost:
            self.end(test)
            del self.lost[test]

    def _write(self, event: dict[str, str]) -> None:
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            fd = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
            try:
                # a torn line of a crash is ended first: what is written now is a line of its own
                torn = os.path.getsize(self.path) and self.path.read_bytes()[-1:] != b"\n"  # noqa: PTH202
                os.write(fd, (b"\n" if torn else b"") + json.dumps(event).encode() + b"\n")
                os.fsync(fd)
            finally:
                os.close(fd)
        except OSError as exc:
            raise RigError(f"cannot write {self.path}: {exc.strerror}") from None


def _noted(line: str, found: dict[str, str], why: dict[str, str]) -> bool:
    """Take one line in; False for one that was torn when the machine that wrote it died."""
    try:
        event = json.loads(line)
        if "begun" in event:
            found[str(event["begun"])] = str(event.get("at", ""))
            why.pop(str(event["begun"]), None)
        elif "lost" in event:
            why[str(event["lost"])] = str(event["why"])
        else:
            found.pop(str(event["ended"]), None)
        return True
    except (ValueError, TypeError, KeyError):
        return False
