"""Ask the native core, build/ktls-wire: secrets go to it in memory, its answer is checked before use."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from offload.cmd import run
from offload.errors import ConfigError, RigError
from offload.paths import BUILD
from offload.suite.wire.ask import Ask
from offload.suite.wire.document import misfit

PROGRAM = str(BUILD / "ktls-wire")
LONGEST = 256 << 20  # bytes of an answer; 65536 connections make about 100 MiB
EXITS = {0: "", 20: "different", 21: "inconclusive"}  # code: the outcome that it promises
SLOWEST = 20 << 20  # bytes of capture per second; slower than that is no progress


def built() -> bool:
    """Say whether the core is there."""
    return os.access(PROGRAM, os.X_OK)


def verify(ask: Ask) -> dict[str, Any]:
    """Return the core's document. ConfigError in its words for bad input, RigError if it broke."""
    if not built():
        raise RigError(f"the native core is not built ({PROGRAM})", "in a checkout: make build")
    with ExitStack() as undo:
        given = {"--keylog": ask.keylog, "--payload": ask.payload, "--reply": ask.reply}
        fds: list[int] = []
        argv = ["prlimit", f"--fsize={LONGEST}", PROGRAM, "verify", _name(ask.capture)]
        for option, content in given.items():
            if isinstance(content, bytes):
                fds.append(undo.enter_context(memory(content)))
                argv += [option, f"/proc/self/fd/{fds[-1]}"]
            elif content is not None:
                argv += [option, _name(content)]
        answer = undo.enter_context(memory(b""))
        argv += _options(ask)
        rc, _, err, _ = run(argv, timeout=_patience(ask.capture), pass_fds=fds, stdout=answer)
        return _document(rc, os.pread(answer, LONGEST, 0), err)


@contextmanager
def memory(content: bytes) -> Iterator[int]:
    """A file that is in no folder, with this content; overwritten before it is gone."""
    fd = os.memfd_create("ktls-wire")
    try:
        with os.fdopen(os.dup(fd), "wb") as out:
            out.write(content)
        yield fd
    finally:
        os.pwrite(fd, bytes(len(content)), 0)
        os.close(fd)


def _name(path: Path) -> str:
    """Return the path such that it cannot be taken for an option."""
    return f"./{path}" if str(path).startswith("-") else str(path)


def _options(ask: Ask) -> list[str]:
    port = ["--port", str(ask.port)] if ask.port is not None else []
    sums = ["--checksums"] if ask.checksums else []
    return [*port, *sums, *(["--threads", str(ask.threads)] if ask.threads else [])]


def _patience(capture: Path) -> float:
    """Return the seconds after which the core hangs."""
    try:
        return 600 + capture.stat().st_size / SLOWEST
    except OSError:
        return 600  # the core says what is wrong with it


def _document(rc: int, out: bytes, err: bytes) -> dict[str, Any]:
    """Return the answer once it has the form of docs/reference/wire.md."""
    said = err.decode("utf-8", "replace").strip().removeprefix("ktls-wire: ")
    if rc == 2:
        raise ConfigError(said.splitlines()[0] if said else "the native core rejects the request")
    if rc == -signal.SIGXFSZ:
        raise RigError(f"the native core's answer is longer than {LONGEST >> 20} MiB")
    if rc not in EXITS:
        raise RigError(f"the native core ended with {rc}: {said[-2000:] or 'no message'}")
    try:
        document = json.loads(out)
    except (ValueError, RecursionError) as exc:
        raise RigError(f"the native core's answer is not JSON: {exc!s:.200}") from None
    words = misfit(document) or _contradiction(rc, document["outcome"])
    if words:
        raise RigError(f"the native core's answer does not follow docs/reference/wire.md: {words}")
    return dict(document)


def _contradiction(rc: int, outcome: str) -> str:
    """Return how exit code and document disagree; a code of 0 says nothing of the outcome."""
    return "" if EXITS[rc] in ("", outcome) else f"outcome: {outcome!r} with exit {rc}"
