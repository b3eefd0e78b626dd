"""Programs that are stubs: processes of their own that ask a warm server, for tests that start many.

Starting Python and importing costs 40 ms of processor for a small program and 700 for labgrid's client; a
stub costs 3. It sends words, and waits for exit code, output and errors. It may be killed, or outlive others.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[3]
# perl, which every Debian has, starts in a tenth of Python's time; 1, 1: AF_UNIX, SOCK_STREAM
STUB = r"""#!/usr/bin/perl
$0 =~ m{([^/]+)$};
socket(S, 1, 1, 0) && connect(S, pack("S a*", 1, "\0@NAME@")) or die "nobody plays $1: $!\n";
syswrite(S, pack("N/a*", join("\0", @WORDS@)));
my $answer = "";
1 while sysread(S, $answer, 65536, length $answer);
length $answer or die "no answer from who plays $1\n";
my ($code, $out, $err) = unpack("N N/a* N/a*", $answer);
print $out;
print STDERR $err;
kill 2**32 - $code, $$ if $code >> 31;
exit $code;
"""


def listening(name: str) -> socket.socket:
    """A server's socket: an abstract address, which is gone with the server."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(f"\0{name}")
    listener.listen(64)
    return listener


def write(path: Path, name: str, words: str) -> None:
    """Make a stub that asks the server of this name. `words`: what it sends, a list in Perl."""
    path.write_text(STUB.replace("@NAME@", name).replace("@WORDS@", words))
    path.chmod(0o755)


def asked(conn: socket.socket) -> list[str]:
    """The words of a stub that has connected."""
    (length,) = struct.unpack("!I", conn.recv(4, socket.MSG_WAITALL))
    return os.fsdecode(conn.recv(length, socket.MSG_WAITALL)).split("\0")


def answer(conn: socket.socket, code: int, *said: bytes) -> None:
    """How the program ended: exit code, output, errors. The stub may have been killed meanwhile."""
    with suppress(BrokenPipeError, ConnectionResetError):
        head = struct.pack("!I", code % (1 << 32))
        conn.sendall(head + b"".join(struct.pack("!I", len(text)) + text for text in said))
        conn.shutdown(socket.SHUT_WR)


@contextmanager
def warm(path: Path, module: str, words: str) -> Iterator[str]:
    """The path of a stub that `python -m MODULE NAME` plays, which calls `serve`; it ends with this."""
    name = f"ktls-{module}-{os.getpid()}"
    write(path, name, words)
    argv = [sys.executable, "-m", module, name]
    null, pipe = subprocess.DEVNULL, subprocess.PIPE
    with subprocess.Popen(argv, cwd=ROOT, stdin=null, stdout=pipe, text=True) as server:
        try:
            assert server.stdout is not None and server.stdout.readline() == "ready\n"
            yield str(path)
        finally:
            server.terminate()


@dataclass
class Call:
    """A stub that waits, its process, the sign of its end, and its output."""

    conn: socket.socket
    pid: int
    ended: int
    said: tuple[int, int]

    def close(self) -> None:
        """Say how it ended; it is killed if its stub is, as the program itself would be."""
        os.kill(self.pid, signal.SIGKILL)
        code = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        with self.conn:
            answer(self.conn, code, *(Path(f"/proc/self/fd/{file}").read_bytes() for file in self.said))
        for file in (self.ended, *self.said):
            os.close(file)


def serve(listener: socket.socket, play: Callable[[list[str]], int]) -> None:
    """Play each stub in a process of its own, as long as whoever started this lives."""
    owner, calls = os.getppid(), list[Call]()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: whoever started this ends it
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    while os.getppid() == owner:
        watched = [listener, *(one.conn for one in calls), *(one.ended for one in calls)]
        ready = select.select(watched, [], [], 2)[0]
        for one in [one for one in calls if one.conn in ready or one.ended in ready]:
            calls.remove(one)
            one.close()
        if listener in ready and (begun := _begun(listener, play)):
            calls.append(begun)
    for one in calls:
        one.close()


def _begun(listener: socket.socket, play: Callable[[list[str]], int]) -> Call | None:
    """A call, at work; None if its stub is dead already."""
    conn = listener.accept()[0]
    try:
        words = asked(conn)
    except (struct.error, ConnectionResetError):
        conn.close()
        return None
    said = os.memfd_create("out"), os.memfd_create("err")
    pid = os.fork()
    if not pid:
        code = 1
        try:
            listener.close()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.dup2(said[0], 1), os.dup2(said[1], 2)
            code = play(words)
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else int(bool(end.code))
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stdout.flush(), sys.stderr.flush()
            os._exit(code)
    return Call(conn, pid, os.pidfd_open(pid), said)
