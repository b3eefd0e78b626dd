"""`wire capture`: run build/wiretap on an interface of this machine until Ctrl-C, and say what it caught."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from offload.cmd import ended
from offload.errors import ConfigError, NoDevice, NoPermission, OffloadError, RigError
from offload.paths import BUILD

PROGRAM = str(BUILD / "wiretap")
READY = b'{"ready":true}\n'
CAUSES: dict[int, type[OffloadError]] = {1: ConfigError, 2: NoDevice, 4: NoPermission, 5: ConfigError}


def capture(dev: str, path: Path, seconds: int | None, buffer: int) -> int:
    """Capture until the time is over, Ctrl-C or SIGTERM; nothing before that is lost: 0.

    `buffer`: MiB in which the kernel queues frames. ConfigError, NoDevice or NoPermission if it cannot
    begin; RigError if it breaks, or if frames were dropped.
    """
    name = f"./{path}" if str(path).startswith("-") else str(path)
    argv = [PROGRAM, dev, name, "--buffer", str(buffer)]
    pipe = subprocess.PIPE
    try:
        # a session of its own: Ctrl-C is for us, and we end it by the end of its input
        child = subprocess.Popen(argv, stdin=pipe, stdout=pipe, stderr=pipe, start_new_session=True)
    except OSError as exc:
        raise RigError(f"cannot run {PROGRAM}: {exc.strerror}", "make build") from None
    with child:
        assert child.stdout is not None
        if child.stdout.readline() != READY:
            raise _failed(child, CAUSES)
        _wait(child, f"capturing {dev} into {path}", seconds)
        return _end(child, dev, path)


def _wait(child: subprocess.Popen[bytes], words: str, seconds: int | None) -> None:
    """Return when it is time to stop."""
    until = f"for {seconds} s, or until Ctrl-C" if seconds else "until Ctrl-C"
    try:
        sys.stderr.write(f"{words} {until}\n")
        sys.stderr.flush()
        child.wait(seconds) if seconds else ended(child)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        pass


def _end(child: subprocess.Popen[bytes], dev: str, path: Path) -> int:
    """Stop it and tell its counts."""
    assert child.stdin is not None and child.stdout is not None
    child.stdin.close()
    out = child.stdout.read()
    if child.wait() != 0:
        raise _failed(child, {2: NoDevice})
    counts = json.loads(out)
    said = f"{counts['frames']:,} frames, {counts['bytes']:,} bytes in {path}"
    if counts["dropped"]:
        hint = "a larger --buffer, or a shorter capture: a proof needs every frame"
        raise RigError(f"{said}; {counts['dropped']:,} more were lost: traffic on {dev} was too fast", hint)
    sys.stderr.write(f"{said}; none lost\n")
    return 0


def _failed(child: subprocess.Popen[bytes], causes: dict[int, type[OffloadError]]) -> OffloadError:
    """Return the program's own words as an error of ours."""
    assert child.stderr is not None
    said = child.stderr.read().decode("utf-8", "replace").strip().removeprefix("wiretap: ")
    kind = causes.get(child.wait(), RigError)
    return kind(said or f"wiretap ended with {child.returncode} without a message")
