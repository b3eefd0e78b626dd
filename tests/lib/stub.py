"""Programs that are stubs: processes of their own that ask a warm server, for tests that start many.

Starting Python and importing costs 40 ms of processor for a small program and 700 for labgrid's client; a
stub costs 3. It sends words, and waits for exit code, output and errors. It may be killed, or outlive others.
"""

from __future__ import annotations

import os
import socket
import struct
from contextlib import suppress
from pathlib import Path

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
    with suppress(BrokenPipeError):
        conn.sendall(struct.pack("!I", code) + b"".join(struct.pack("!I", len(text)) + text for text in said))
        conn.shutdown(socket.SHUT_WR)
