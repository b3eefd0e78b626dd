"""labgrid's own client, imported once: `python -m tests.lib.labgrid_client NAME` forks for each stub.

Each start of labgrid-client itself costs 0.7 s of processor, nearly all of it imports.
"""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.lib import stub

WORDS = '@ARGV, "", map { "$_=$ENV{$_}" } grep { /^LG_/ } keys %ENV'


@contextmanager
def warm(folder: Path) -> Iterator[str]:
    """The path of a labgrid-client that starts at once; it ends with this."""
    name, program = f"ktls-labgrid-{os.getpid()}", folder / "labgrid-client"
    stub.write(program, name, WORDS)
    server = subprocess.Popen([sys.executable, "-m", __name__, name], stdout=subprocess.PIPE, text=True)
    with server:
        try:
            assert server.stdout is not None and server.stdout.readline() == "ready\n"
            yield str(program)
        finally:
            server.terminate()


def serve(listener: socket.socket, owner: int) -> None:
    """A process for each call; it is killed if its stub is, as the client itself would be."""
    working: dict[socket.socket, int] = {}
    while os.getppid() == owner:
        for ready in select.select([listener, *working], [], [], 2)[0]:
            if ready is not listener:  # the stub has its answer, or is dead
                os.kill(working[ready], signal.SIGKILL)
                os.waitpid(working.pop(ready), 0)
                ready.close()
                continue
            conn = listener.accept()[0]
            given = stub.asked(conn)  # what can be read of it after this is its end
            working[conn] = os.fork()
            if not working[conn]:
                try:
                    call(conn, given)
                finally:
                    os._exit(1)


def call(conn: socket.socket, given: list[str]) -> None:
    """Be the client with these words and this environment."""
    from labgrid.remote.client import main

    end = given.index("")
    sys.argv[:] = ["labgrid-client", *given[:end]]
    os.environ.update(pair.split("=", 1) for pair in given[end + 1 :])
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        os.dup2(out.fileno(), 1), os.dup2(err.fileno(), 2)
        try:
            main()
            code = 0
        except SystemExit as end_of_main:
            code = end_of_main.code if isinstance(end_of_main.code, int) else int(bool(end_of_main.code))
        sys.stdout.flush(), sys.stderr.flush()
        stub.answer(conn, code, *(os.pread(file.fileno(), 1 << 20, 0) for file in (out, err)))


if __name__ == "__main__":
    import labgrid.remote.client  # noqa: F401  (what costs)

    listening = stub.listening(sys.argv[1])
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    serve(listening, os.getppid())
