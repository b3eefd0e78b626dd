"""The one way to run a command on this machine, and to wait for a condition until a deadline."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from offload.errors import TimedOut

# Descriptors that every command run here keeps open: the journal's lock. A child that outlives a killed
# parent then still holds it, and `restore` waits until that child has ended.
KEEP_OPEN: set[int] = set()
SBIN = ("/usr/sbin", "/sbin")  # ethtool, tc, nginx: a user's search path on Debian has neither


def environment(more: Mapping[str, str] | None = None) -> dict[str, str]:
    """Our environment plus `more`, with LC_ALL=C so that output can be parsed, and sbin at the path's end."""
    path = os.environ.get("PATH", os.defpath)
    path = os.pathsep.join([path, *(folder for folder in SBIN if folder not in path.split(os.pathsep))])
    return {**os.environ, "PATH": path, "LC_ALL": "C", **(more or {})}


def run(
    argv: Sequence[str],
    *,
    input: bytes = b"",
    timeout: float = 60.0,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    pass_fds: Sequence[int] = (),
    stdout: int = subprocess.PIPE,
) -> tuple[int, bytes, bytes, float]:
    """Run to the end in its own process group: (exit code, stdout, stderr, seconds).

    The environment is that of environment(`env`).
    `pass_fds` stay open in it; a descriptor `stdout` takes its output, and the answer's is then empty.
    A missing program gives 127, as a shell would. RigError after `timeout` seconds; the group is then killed.
    """
    began = time.monotonic()
    try:
        child = subprocess.Popen(
            list(argv),
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=environment(env),
            cwd=cwd,
            start_new_session=True,
            pass_fds=(*KEEP_OPEN, *pass_fds),
        )
    except (FileNotFoundError, PermissionError, NotADirectoryError) as exc:
        return 127, b"", f"{argv[0]}: {exc.strerror}".encode(), 0.0
    try:
        out, err = child.communicate(input, timeout)
    except subprocess.TimeoutExpired:
        kill_group(child.pid)
        child.communicate()
        raise TimedOut(f"timed out after {timeout:g} s: {' '.join(argv)}") from None
    except BaseException:
        kill_group(child.pid)
        child.communicate()
        raise
    return child.returncode, out or b"", err, time.monotonic() - began


def kill_group(pid: int, sig: int = signal.SIGKILL) -> None:
    """Signal the process group that `pid` leads; harmless if it is gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, sig)


def settles(condition: Callable[[], bool], timeout: float, every: float = 0.05) -> bool:
    """Say as soon as `condition()` holds; after `timeout` seconds, that it does not."""
    deadline = time.monotonic() + timeout
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def wait_until(condition: Callable[[], bool], timeout: float, what: str, every: float = 0.05) -> None:
    """Return as soon as `condition()` holds; TimedOut naming `what` after `timeout` seconds."""
    if not settles(condition, timeout, every):
        raise TimedOut(f"gave up after {timeout:g} s waiting for {what}")
