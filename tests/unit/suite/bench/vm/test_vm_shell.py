"""A person's terminal and one in the lab behave as one, whatever the moment."""

from __future__ import annotations

import fcntl
import os
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload import __version__

ROOT = Path(__file__).parents[5]
# `lab shell` with an agent of its own; each request is met by a signal that the window has changed
CODE = """
import os, signal, socket, subprocess, sys
from types import SimpleNamespace
from offload.suite.bench.vm.client import Client
from offload.suite.bench.vm.shell import interact

class Window:
    def __init__(self, sock):
        self.sock = sock
    def __getattr__(self, name):
        return getattr(self.sock, name)
    def sendall(self, data):
        os.kill(os.getpid(), signal.SIGWINCH)
        self.sock.sendall(data)

ours, theirs = socket.socketpair()
agent = "import sys; from offload.suite.bench.vm.guest.agent import main; main(sys.argv[1:])"
argv = [sys.executable, "-S", "-s", "-c", agent, str(theirs.fileno())]
guest = subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdin=subprocess.DEVNULL)
client = Client(Window(ours))
client.hello(60)
try:
    code = interact(SimpleNamespace(name="lab", client=client), "root")
finally:
    guest.kill()
sys.exit(code)
"""


class Terminal:
    """A person at a terminal in which `lab shell` runs."""

    def __init__(self) -> None:
        self.fd, theirs = os.openpty()
        self.size(24, 80)
        env = {**os.environ, "TERM": "dumb", "LINES": "24", "COLUMNS": "80"}  # as readline does
        self.before = termios.tcgetattr(self.fd)
        self.process = subprocess.Popen(
            [sys.executable, "-c", CODE], cwd=ROOT, env=env, stdin=theirs, stdout=theirs, stderr=theirs
        )
        os.close(theirs)
        self.shown = b""

    def size(self, rows: int, columns: int) -> None:
        """Drag the window."""
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: bytes) -> None:
        """Press keys."""
        os.write(self.fd, text)

    def close(self) -> None:
        """Take the terminal away."""
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = -1

    def see(self, text: bytes) -> None:
        """Wait until something is shown."""
        deadline = time.monotonic() + 120
        while text not in self.shown:
            left = deadline - time.monotonic()
            assert left > 0 and select.select([self.fd], [], [], left)[0], (
                f"{text!r} is not in {self.shown!r}"
            )
            self.shown += os.read(self.fd, 65536)


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    made = Terminal()
    made.see(b"lab/root# ")
    yield made
    made.process.kill()
    made.process.wait()
    made.close()


def test_shell_goes_on_though_its_window_changes(terminal: Terminal) -> None:
    """Keys arrive though the size changes at that moment, and the guest learns the size."""
    terminal.size(33, 77)
    terminal.type(b"echo $((6 * 7))\n")
    terminal.see(b"\r\n42\r\n")
    terminal.type(b"stty size\n")
    terminal.see(b"\r\n33 77\r\n")
    assert termios.tcgetattr(terminal.fd) != terminal.before
    terminal.type(b"exit 3\nwhat nobody reads")
    assert terminal.process.wait(120) == 3
    assert termios.tcgetattr(terminal.fd) == terminal.before


def test_shell_has_our_own_command(terminal: Terminal) -> None:
    """`ktls-offload` in a shell of the lab is this installation's, as with `lab run`."""
    terminal.type(b"ktls-offload --version\n")
    terminal.see(f"\r\nktls-offload {__version__}\r\n".encode())


def test_shell_ends_with_its_terminal(terminal: Terminal) -> None:
    """A shell whose terminal has gone ends, instead of asking it again and again."""
    terminal.close()
    assert terminal.process.wait(120) == 129
