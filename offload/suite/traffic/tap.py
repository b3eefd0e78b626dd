"""Capture every frame of an interface of a host, and bring the capture here; nothing of the end is lost."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from offload.cmd import wait_until
from offload.errors import RigError
from offload.host.base import Completed, Host, Process
from offload.host.vm import pull
from offload.paths import BUILD

PROGRAM = str(BUILD / "wiretap")
READY = b'{"ready":true}\n'
LOOK = 1.0  # seconds that one look for its first words waits on the host


@dataclass(frozen=True)
class Counts:
    """What a capture holds: frames, their bytes, and frames that were cut (`--snaplen`)."""

    frames: int
    bytes: int
    truncated: int


class Tap:
    """A capture on a host; `counts` is there once it has been stopped."""

    def __init__(self, host: Host, dev: str, path: str, process: Process) -> None:
        self.host, self.dev, self.path = host, dev, path
        self.counts: Counts | None = None
        self._process, self._began, self._asked = process, False, False

    def ready(self) -> bool:
        """Say whether it captures; RigError in its own words if it ended instead."""
        if self._process.news(LOOK)[0].startswith(READY):
            self._began = True
        elif not self._process.running():
            self.stop()
        return self._began

    def end(self) -> None:
        """Ask the capture to end, which takes a while: `stop` waits for that. Harmless again."""
        if not self._asked:
            self._asked = True
            self._process.stdin(b"", eof=True)

    def stop(self) -> Counts:
        """End the capture, with everything that was on the wire before; again: the same counts.

        RigError if a frame was dropped or the program ended badly; the file is then removed.
        """
        if self.counts is None:
            try:
                self.counts = _counts(self._process.wait(60), self._where())
            except RigError:
                self.discard()
                raise
        return self.counts

    def fetch(self, to: Path) -> int:
        """Stop, bring the capture to the new file `to` here (mode 0600), remove it on the host: its bytes.

        RigError if less arrives than the host has; FileExistsError for a `to` that is there.
        """
        self.stop()
        size = int(self.host.run(["stat", "-c", "%s", self.path]).text)
        with ExitStack() as failed:
            fd = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            failed.callback(to.unlink, missing_ok=True)
            with os.fdopen(fd, "wb") as out:
                for piece in pull(self.host, self.path, size):
                    out.write(piece)
                if out.tell() != size:
                    raise RigError(f"{self._where()}: {out.tell()} of {size} bytes of the capture came back")
            failed.pop_all()
        self.discard()
        return size

    def discard(self) -> None:
        """End the capture if it runs, and remove the file that it made on the host; harmless again."""
        self._process.kill(9)
        if self._began:  # else the file, if there is one, is somebody else's
            self.host.run(["rm", "-f", self.path], check=False)

    def _where(self) -> str:
        return f"the tap on {self.dev} ({self.host.name})"


def _counts(done: Completed, where: str) -> Counts:
    """Return what the last line says, or raise RigError in words."""
    said = done.stderr.decode("utf-8", "replace").strip() or "no message"
    if done.rc != 0:
        raise RigError(f"{where} ended with {done.rc}: {said}")
    try:
        line = json.loads(done.stdout.removeprefix(READY))
        counts, dropped = Counts(line["frames"], line["bytes"], line["truncated"]), line["dropped"]
    except (ValueError, KeyError, TypeError):
        raise RigError(f"{where} did not report what it captured: {done.text!r:.200}") from None
    if dropped:
        raise RigError(f"{where} lost {dropped} of {counts.frames + dropped} frames: it could not keep up")
    return counts


@contextmanager
def capturing(host: Host, dev: str, path: str, kept: int = 0) -> Iterator[Tap]:
    """Capture on `dev` into the new file `path` of the host while the block runs; then `fetch` it.

    `kept`: bytes that are kept of a frame, at least 64; 0: all of them.
    RigError if it cannot start, or as for `Tap.stop`. A block that fails leaves no file.
    """
    try:
        process = host.start([PROGRAM, dev, path, *(["--snaplen", str(kept)] if kept else [])])
    except OSError as exc:
        raise RigError(f"cannot run {PROGRAM} on {host.name}: {exc.strerror}", "make build") from None
    tap = Tap(host, dev, path, process)
    try:
        wait_until(tap.ready, 120, f"wiretap on {dev} ({host.name})")
        yield tap
    except BaseException:
        tap.discard()
        raise
    tap.stop()
