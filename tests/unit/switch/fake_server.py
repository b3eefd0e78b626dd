"""What answers for the fake programs: one warm process, so that a call costs 4 ms of processor and not 40.

A program on PATH is a stub (tests/lib/rig/stub.py): a process of its own that may be killed, outlive its
parent, and hold what it inherited. It sends its parent's pid and its words.
"""

from __future__ import annotations

import io
import os
import select
import signal
import socket
import traceback
import weakref
from contextlib import redirect_stderr, redirect_stdout
from itertools import count
from pathlib import Path

from tests.lib.rig import stub
from tests.unit.switch import fake_tools

SERIAL = count()


class Tools:
    """The server of one state file, and the programs in a folder; both end with this object."""

    def __init__(self, folder: Path, state: Path, names: tuple[str, ...]) -> None:
        name = f"ktls-fake-{os.getpid()}-{next(SERIAL)}"
        listener = stub.listening(name)
        for program in names:
            stub.write(folder / program, name, "getppid(), $1, @ARGV")
        parent, pid = os.getpid(), os.fork()
        if not pid:
            try:
                _serve(listener, state, parent)
            finally:
                os._exit(0)
        listener.close()
        weakref.finalize(self, _end, parent, pid)


def _end(owner: int, pid: int) -> None:
    """End the server, unless this is a child of its owner."""
    if os.getpid() == owner:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def _serve(listener: socket.socket, state: Path, parent: int) -> None:
    """Answer one call after the other, as long as there is somebody to ask."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    listener.settimeout(2)
    while os.getppid() == parent:
        try:
            conn = listener.accept()[0]
        except TimeoutError:
            continue
        with conn:
            _answer(conn, state, os.getpid())


def _answer(conn: socket.socket, state: Path, server: int) -> None:
    """Read a call, play it, and say how it ended."""
    parent, program, *args = stub.asked(conn)

    def nap(seconds: float) -> None:
        """Wait elsewhere, as a process would: the next call is not kept waiting. Ends early with the stub."""
        if os.fork():
            raise InterruptedError
        select.select([conn], [], [], seconds)

    out, err = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            code = fake_tools.main(state, program, args, int(parent), nap)
    except InterruptedError:
        return
    except Exception:
        code = 1
        err.write(traceback.format_exc())
    stub.answer(conn, code, *(text.getvalue().encode() for text in (out, err)))
    if os.getpid() != server:
        os._exit(0)
