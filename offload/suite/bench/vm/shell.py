"""An interactive shell in the lab: this terminal, connected to one in the guest."""

from __future__ import annotations

import binascii
import os
import queue
import select
import shlex
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offload.suite.bench.vm.lab import Lab

# as `lab run` has it: in bash a function that comes by the environment
OURS = {"BASH_FUNC_ktls-offload%%": f'() {{ {shlex.quote(sys.executable)} -m offload "$@"; }}'}
HUNG_UP = 129  # the exit code of a shell whose terminal went away: 128 + SIGHUP


class Wake:
    """A pipe that ends a select: for the thread that hears events, and for a signal. Never blocks."""

    def __init__(self) -> None:
        self.fd, self._end = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self.events: queue.SimpleQueue[dict[str, Any]] = queue.SimpleQueue()
        self.resized = False

    def note(self, event: dict[str, Any]) -> None:
        """An event of the guest, in the client's thread."""
        self.events.put(event)
        self._ring()

    def resize(self, *_: object) -> None:
        """SIGWINCH: it may come while this thread holds the client's lock, so it asks for nothing."""
        self.resized = True
        self._ring()

    def _ring(self) -> None:
        with suppress(BlockingIOError):  # it is full of rings
            os.write(self._end, b".")

    def hush(self) -> None:
        """Forget the rings so far."""
        with suppress(BlockingIOError):
            while os.read(self.fd, 4096):
                pass

    def close(self) -> None:
        """Give the pipe back."""
        os.close(self.fd)
        os.close(self._end)


def interact(lab: Lab, place: str) -> int:
    """Run bash on a terminal in the lab until it ends; its exit code. The terminal is put back."""
    with ExitStack() as undo:
        wake = Wake()
        undo.callback(wake.close)
        lab.client.on_event = wake.note
        undo.callback(setattr, lab.client, "on_event", lambda event: None)
        size = _size()
        env = {"TERM": os.environ.get("TERM", "dumb"), "PS1": f"{lab.name}/{place}# ", **OURS}
        answer = lab.client.call(
            "terminal",
            argv=["bash", "--norc", "-i"],
            ns="" if place == "root" else place,
            env=env,
            rows=size.lines,
            columns=size.columns,
        )
        undo.enter_context(raw(wake))
        return _connect(lab, answer["job"], wake)


@contextmanager
def raw(wake: Wake) -> Iterator[None]:
    """Every key of this terminal is the guest's; its size is watched."""
    before, old = termios.tcgetattr(0), signal.signal(signal.SIGWINCH, wake.resize)
    try:
        tty.setraw(0)
        yield
    finally:
        signal.signal(signal.SIGWINCH, old)
        with suppress(termios.error):  # the terminal may be what has gone
            termios.tcsetattr(0, termios.TCSADRAIN, before)


def _connect(lab: Lab, job: int, wake: Wake) -> int:
    """Pass keys on and show what comes, until the shell ends; its exit code."""
    while True:
        ready, _, _ = select.select([0, wake.fd], [], [])
        if wake.fd in ready:
            wake.hush()
            code = _show(wake.events)
            if code is not None:
                return code
        keys = _keys() if 0 in ready else None
        if keys == b"":
            return HUNG_UP
        with suppress(ProcessLookupError):  # the shell has just ended: the event is on its way
            if keys:
                lab.client.call("stdin", job=job, data=binascii.b2a_base64(keys).decode())
            if wake.resized:
                wake.resized = False
                size = _size()
                lab.client.call("resize", job=job, rows=size.lines, columns=size.columns)


def _size() -> os.terminal_size:
    """The size of this terminal; LINES and COLUMNS, if a parent exported them, do not follow its window."""
    try:
        return os.get_terminal_size(0)
    except OSError:  # it has just gone
        return os.terminal_size((80, 24))


def _keys() -> bytes:
    """Return what was typed; nothing if the terminal has gone."""
    try:
        return os.read(0, 4096)
    except OSError:
        return b""


def _show(events: queue.SimpleQueue[dict[str, Any]]) -> int | None:
    """Show what came; the exit code if the shell has ended."""
    while not events.empty():
        event = events.get()
        if event["event"] == "end":
            return int(event["rc"]) if event["rc"] >= 0 else 128 - int(event["rc"])
        if event["event"] == "data":
            sys.stdout.buffer.write(binascii.a2b_base64(event["data"]))
            sys.stdout.buffer.flush()
    return None
