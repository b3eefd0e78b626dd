"""What answers for the fake programs: one warm process, so that a call costs 4 ms of processor and not 40.

A program on PATH is a stub: a process of its own, which may be killed, outlive its parent, and hold what it
inherited. It sends its parent's pid and its words, and waits for exit code, output and errors.
"""

from __future__ import annotations

import io
import os
import select
import signal
import socket
import struct
import traceback
import weakref
from contextlib import redirect_stderr, redirect_stdout, suppress
from itertools import count
from pathlib import Path

from tests.unit import fake_tools

# perl, which every Debian has, starts in a tenth of Python's time; 1, 1: AF_UNIX, SOCK_STREAM
STUB = r"""#!/usr/bin/perl
$0 =~ m{([^/]+)$};
socket(S, 1, 1, 0) && connect(S, pack("S a*", 1, "\0@NAME@")) or die "nobody plays $1: $!\n";
syswrite(S, pack("N/a*", join("\0", getppid(), $1, @ARGV)));
my $answer = "";
1 while sysread(S, $answer, 65536, length $answer);
length $answer or die "no answer from who plays $1\n";
my ($code, $out, $err) = unpack("N N/a* N/a*", $answer);
print $out;
print STDERR $err;
exit $code;
"""
SERIAL = count()


class Tools:
    """The server of one state file, and the programs in a folder; both end with this object."""

    def __init__(self, folder: Path, state: Path, names: tuple[str, ...]) -> None:
        name = f"ktls-fake-{os.getpid()}-{next(SERIAL)}"
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"\0{name}")
        listener.listen()
        for program in names:
            (folder / program).write_text(STUB.replace("@NAME@", name))
            (folder / program).chmod(0o755)
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
    (length,) = struct.unpack("!I", conn.recv(4, socket.MSG_WAITALL))
    parent, program, *args = os.fsdecode(conn.recv(length, socket.MSG_WAITALL)).split("\0")

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
    said = [text.getvalue().encode() for text in (out, err)]
    answer = struct.pack("!I", code) + b"".join(struct.pack("!I", len(text)) + text for text in said)
    with suppress(BrokenPipeError):  # the stub may have been killed meanwhile
        conn.sendall(answer)
    if os.getpid() != server:
        os._exit(0)
