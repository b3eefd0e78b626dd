"""The one way to run a command on this machine, to wait for a condition, and to be interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from types import FrameType
from typing import Any

from offload.errors import TimedOut

# Descriptors that every command run here keeps open: the journal's lock. A child that outlives a killed
# parent then still holds it, and `restore` waits until that child has ended.
KEEP_OPEN: set[int] = set()
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGALRM)  # the last is ours: see _again
AGAIN = 0.01  # seconds until an interrupt that Python swallowed comes again
SLICE = 1.0  # seconds after which a wait for a program hears a signal that it missed
SBIN = ("/usr/sbin", "/sbin")  # ethtool, tc, nginx: a user's search path on Debian has neither


class Pace:
    """How many times longer than usual everything may take: more where a debug kernel runs."""

    factor = 1.0


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
    began, child = time.monotonic(), None
    try:
        with interrupts_wait():
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
        out, err = child.communicate(input, timeout)
    except subprocess.TimeoutExpired:
        _end(child)
        raise TimedOut(f"timed out after {timeout:g} s: {' '.join(argv)}") from None
    except BaseException:
        _end(child)
        raise
    return child.returncode, out or b"", err, time.monotonic() - began


def _end(child: subprocess.Popen[bytes] | None) -> None:
    """Kill a command with all that it started."""
    if child:
        kill_group(child.pid)
        child.communicate()


def kill_group(pid: int, sig: int = signal.SIGKILL) -> None:
    """Signal the process group that `pid` leads; harmless if it is gone."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, sig)


def settles(condition: Callable[[], bool], timeout: float, every: float = 0.05) -> bool:
    """Say as soon as `condition()` holds; after `timeout` seconds (times Pace), that it does not."""
    deadline = time.monotonic() + timeout * Pace.factor
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(every)
    return True


def wait_until(condition: Callable[[], bool], timeout: float, what: str, every: float = 0.05) -> None:
    """Return as soon as `condition()` holds; TimedOut naming `what` after `timeout` seconds."""
    if not settles(condition, timeout, every):
        raise TimedOut(f"gave up after {timeout * Pace.factor:g} s waiting for {what}")


class _Waiting:
    """How many blocks want an interrupt to wait, and whether one came."""

    blocks, came = 0, False


def _interrupt(number: int, frame: FrameType | None) -> None:
    """A signal ends a verb as Ctrl-C does; later, where a block must not be cut in two."""
    if _Waiting.blocks:
        _Waiting.came = True
    elif _dropped_in(frame):
        _again()
    else:
        raise KeyboardInterrupt


def _dropped_in(frame: FrameType | None) -> bool:
    """Whether Python drops what is raised here, too: it is about to tell of another drop."""
    while frame and frame.f_code is not _swallowed.__code__:
        frame = frame.f_back
    return frame is not None


def _swallowed(usual: Callable[[Any], object], trouble: Any) -> None:
    """Python drops what a destructor or a callback raises: an interrupt that hit one comes again."""
    if issubclass(trouble.exc_type, KeyboardInterrupt):
        _again()
    else:
        usual(trouble)


def _again() -> None:
    """An interrupt comes soon. By a timer and not by a thread, whose start could be cut in two."""
    signal.setitimer(signal.ITIMER_REAL, AGAIN)


@contextmanager
def signals_interrupt() -> Iterator[None]:
    """SIGTERM and SIGHUP end a verb as Ctrl-C does, so that every undo runs. For the main thread."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    hook = sys.unraisablehook
    for number, handler in before.items():
        if number != signal.SIGINT or handler is signal.default_int_handler:
            signal.signal(number, _interrupt)  # a shell's background job ignores SIGINT: so do we
    sys.unraisablehook = partial(_swallowed, hook)
    try:
        yield
    finally:
        sys.unraisablehook = hook
        signal.setitimer(signal.ITIMER_REAL, 0)
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def interrupts_wait() -> Iterator[None]:
    """An interrupt waits until the block has ended: `child = Popen(...)`, cut in two, leaves a child unknown.

    The child inherits nothing of it, unlike a blocked signal. Python interrupts only the main thread.
    """
    here = threading.current_thread() is threading.main_thread()
    _Waiting.blocks += here
    try:
        yield
    finally:
        _Waiting.blocks -= here
        if here and _Waiting.came and not _Waiting.blocks:
            _Waiting.came = False
            raise KeyboardInterrupt


@contextmanager
def shielded() -> Iterator[None]:
    """No signal that a person sends stops an undo half-way, nor a command that it runs.

    A signal that came meanwhile comes after the block; if an error is on its way already, it is dropped.
    """
    dropped = sys.exc_info()[0] is not None
    before = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        yield
    finally:
        while dropped and signal.sigtimedwait(SIGNALS, 0):
            pass
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def ended(child: subprocess.Popen[bytes]) -> int:
    """Wait until a program ends: its exit code.

    In slices: a signal that comes just before a system call does not interrupt it, and Python would hear of
    it when the program ends.
    """
    while True:
        with suppress(subprocess.TimeoutExpired):
            return child.wait(SLICE)
