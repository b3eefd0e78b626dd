"""A terminal in the lab shows all that its programs write, until the last has ended."""

from __future__ import annotations

import base64
import json
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.cmd import wait_until
from offload.suite.bench.vm.client import Answer, Client

# the agent of a busy VM: between "nothing more" from a terminal and the next look time passes
CODE = """
import os, sys, time
read = os.read
def late(fd, size):
    try:
        return read(fd, size)
    except BlockingIOError:
        time.sleep(0.002)
        raise
os.read = late
from offload.suite.bench.vm.guest.agent import main
main(sys.argv[1:])
"""
ROOT = Path(__file__).parents[5]
MANY = 25  # terminals at once: many write while one is read
LINES = 12
CHATTER = f"for i in $(seq {LINES}); do /bin/echo line $i; done; read word; echo it was $word; exit 7"


@pytest.fixture
def line() -> Iterator[socket.socket]:
    """A line to a fresh agent."""
    ours, theirs = socket.socketpair()
    argv = [sys.executable, "-S", "-s", "-c", CODE, str(theirs.fileno())]
    with subprocess.Popen(argv, pass_fds=[theirs.fileno()], cwd=ROOT) as agent:
        theirs.close()
        yield ours
        ours.close()
        agent.kill()


class Screens:
    """What each terminal of an agent showed."""

    def __init__(self, line: socket.socket) -> None:
        self.shown: dict[int, bytes] = {}
        self.ended: dict[int, int] = {}
        self.client = Client(line)
        self.client.on_event = self._note
        self.client.hello(60)

    def _note(self, event: Answer) -> None:
        job = event["job"]
        if event["event"] == "end":
            self.ended[job] = event["rc"]
        else:
            self.shown[job] = self.of(job) + base64.b64decode(event["data"])

    def of(self, job: int) -> bytes:
        """What one terminal showed so far."""
        return self.shown.get(job, b"")

    def start(self, *argv: str) -> int:
        """A program on a terminal of its own; the job's number."""
        return int(self.client.call("terminal", argv=list(argv), rows=24, columns=80)["job"])

    def type(self, job: int, text: bytes) -> None:
        """Press keys."""
        self.client.call("stdin", job=job, data=base64.b64encode(text).decode())

    def see(self, job: int, text: bytes) -> None:
        """Wait until a terminal shows something."""
        wait_until(lambda: text in self.of(job), 120, f"{text!r} on terminal {job}")

    def end(self, job: int) -> int:
        """Wait for the end of a terminal's program; its exit code."""
        wait_until(lambda: job in self.ended, 120, f"the end on terminal {job}")
        return self.ended[job]


@pytest.fixture
def screens(line: socket.socket) -> Iterator[Screens]:
    """A fresh agent's terminals."""
    made = Screens(line)
    yield made
    made.client.close()


def test_no_terminal_of_two_hundred_is_lost(screens: Screens) -> None:
    """200 terminals show all their lines, still take a word after them, and end."""
    said = b"".join(b"line %d\r\n" % n for n in range(1, LINES + 1))
    for _ in range(200 // MANY):
        jobs = [screens.start("sh", "-c", CHATTER) for _ in range(MANY)]
        for job in jobs:
            screens.see(job, b"line %d\r\n" % LINES)
            screens.type(job, b"yes\n")
        assert [screens.end(job) for job in jobs] == [7] * MANY
        assert {screens.of(job) for job in jobs} == {said + b"yes\r\nit was yes\r\n"}


def test_flood_is_ended_from_the_keyboard(screens: Screens) -> None:
    """Ctrl-C reaches a program that writes without end, and the shell goes on."""
    job = screens.start("bash", "--norc", "-i")
    screens.type(job, b"yes\n")
    screens.see(job, b"y\r\ny\r\n" * 5000)
    screens.type(job, b"\x03")
    screens.type(job, b"echo still $((6 * 7))\n")
    screens.see(job, b"still 42")
    screens.type(job, b"exit 3\n")
    assert screens.end(job) == 3


def test_terminal_that_was_let_go_is_taken_up_again(screens: Screens) -> None:
    """A program that closes its terminal and opens it later is seen again."""
    away = "exec </dev/null >/dev/null 2>&1; sleep 0.5; exec </dev/tty >/dev/tty 2>&1"
    job = screens.start("sh", "-c", f"echo one; {away}; echo two; read word; exit 4")
    screens.see(job, b"one\r\ntwo\r\n")
    screens.type(job, b"\n")
    assert screens.end(job) == 4


def test_last_words_are_shown_before_the_end(screens: Screens) -> None:
    """A program's last words arrive before its end is told, though others hold the terminal."""
    job = screens.start("sh", "-c", "trap '' HUP; sleep 60 & seq 2000; exit 0")
    assert screens.end(job) == 0
    assert screens.of(job).endswith(b"\r\n1999\r\n2000\r\n")


def test_what_a_client_does_not_read_waits_in_the_terminal(line: socket.socket, tmp_path: Path) -> None:
    """A program waits for a client that does not read, and then every line of it arrives."""
    argv = ["sh", "-c", f"seq 1000000; touch {tmp_path}/written; sleep 60"]
    ask = {"id": 1, "op": "terminal", "argv": argv, "rows": 24, "columns": 80}
    line.sendall(json.dumps(ask).encode() + b"\n")
    time.sleep(1)  # time to do wrong: with nobody to hold it back the program writes 8 MB in less
    assert not (tmp_path / "written").exists()
    shown = bytearray()
    with line.makefile("rb") as lines:
        while not shown.endswith(b"\n1000000\r\n"):
            shown += base64.b64decode(json.loads(lines.readline()).get("data", ""))
    assert shown.split() == [b"%d" % n for n in range(1, 1000001)]
