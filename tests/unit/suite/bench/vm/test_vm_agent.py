"""The guest's agent, run here over socket pairs, obeys and cleans up as the lab needs."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.cmd import wait_until
from offload.errors import CommandFailed, RigError
from offload.host.vm import VmHost
from offload.suite.bench.vm.client import Client

CODE = "import sys; from offload.suite.bench.vm.guest.agent import main; main(sys.argv[1:])"
ROOT = Path(__file__).parents[5]


class Guest:
    """The real agent in a process of its own, with two lines to it; `first`: what Python runs before it."""

    def __init__(self, first: str = "") -> None:
        pairs = [socket.socketpair(), socket.socketpair()]
        theirs = [str(b.fileno()) for _, b in pairs]
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-s", "-c", first + CODE, *theirs],
            pass_fds=[int(n) for n in theirs],
            cwd=ROOT,
        )
        for _, other in pairs:
            other.close()
        self.socks = [a for a, _ in pairs]
        self.client = Client(self.socks[0], lambda: "  | last words")
        self.client.hello(20)
        self.host = VmHost(self.client, "guest")

    def close(self) -> None:
        """End all of it."""
        self.client.close()
        self.socks[1].close()
        self.process.kill()
        self.process.wait()


@pytest.fixture
def guest() -> Iterator[Guest]:
    """A fresh agent."""
    made = Guest()
    yield made
    made.close()


def gone(pid: int) -> bool:
    """Whether a process has ended (a zombie of the agent counts)."""
    try:
        return "\nState:\tZ" in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_run_gives_outputs_and_code(guest: Guest) -> None:
    """A command's outputs, exit code and input go through."""
    done = guest.host.run(["sh", "-c", "cat; echo err >&2; exit 3"], input=b"\0\xff", check=False)
    assert (done.rc, done.stdout, done.stderr, done.where) == (3, b"\0\xff", b"err\n", "guest")
    with pytest.raises(CommandFailed, match="guest.*exit 1"):
        guest.host.run(["false"])


def test_killed_command_has_a_negative_code(guest: Guest) -> None:
    """A command that a signal ended says which."""
    assert guest.host.run(["sh", "-c", "kill -11 $$"], check=False).rc == -signal.SIGSEGV


def test_missing_program_is_127(guest: Guest) -> None:
    """A program that is not there gives 127, as in a shell."""
    done = guest.host.run(["/no/such/program"], check=False)
    assert done.rc == 127 and b"No such file" in done.stderr


def test_megabytes_go_in_both_directions(guest: Guest) -> None:
    """Large inputs and outputs arrive whole."""
    data = os.urandom(3 << 20)
    assert guest.host.run(["cat"], input=data).stdout == data
    process = guest.host.start(["cat"])
    process.stdin(data)
    assert process.wait(20).stdout == data


def test_time_out_kills_the_group(guest: Guest, tmp_path: Path) -> None:
    """A command that does not end is killed with its children."""
    note = tmp_path / "pid"
    for limit in (0.3, 5, 50):  # a busy machine may need longer to begin
        with pytest.raises(RigError, match=f"timed out after {limit} s"):
            guest.host.run(["sh", "-c", f"sleep 99 & echo $! > {note}; wait"], timeout=limit)
        if note.exists() and note.read_text():
            break
    pid = int(note.read_text())
    wait_until(lambda: gone(pid), 60, "the child's end")


def test_background_process_lives_and_is_asked(guest: Guest) -> None:
    """A started command can be fed, watched and signalled."""
    process = guest.host.start(["cat"])
    process.stdin(b"one\n")
    wait_until(lambda: process.output() == (b"one\n", b""), 60, "the echo")
    assert process.running()
    process.kill(signal.SIGTERM)
    done = process.wait(60)
    assert (done.rc, done.stdout) == (-signal.SIGTERM, b"one\n")
    assert not process.running() and process.wait(20) == done


def test_news_is_waited_for(guest: Guest) -> None:
    """One question waits for a command's next words or its end, at most as long as it says."""
    process = guest.host.start(["sh", "-c", "read a; sleep 0.3; echo $a; read b; echo err >&2; read c"])
    began = time.monotonic()
    assert process.news(0.3) == (b"", b"") and time.monotonic() - began >= 0.3
    process.stdin(b"one\n")
    assert process.news(60) == (b"one\n", b"")
    process.stdin(b"two\n")
    assert process.news(60) == (b"one\n", b"err\n")
    threading.Timer(0.3, process.kill).start()
    assert process.news(60) == (b"one\n", b"err\n") and not process.running()
    assert process.news(600) == (b"one\n", b"err\n") and time.monotonic() - began < 500


def turns(guest: Guest) -> int:
    """How often the agent has gone to sleep so far: it wakes as often."""
    status = Path(f"/proc/{guest.process.pid}/status").read_text()
    return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])


def test_waiting_for_news_takes_no_turns(guest: Guest) -> None:
    """An emulated guest has one core: while nothing is written, the agent sleeps."""
    process = guest.host.start(["sh", "-c", "read a; echo $a; read b"])
    before = turns(guest)
    assert process.news(3) == (b"", b"")
    assert turns(guest) - before < 30  # three seconds of looks were three hundred
    process.stdin(b"one\n")
    assert process.news(60) == (b"one\n", b"")


def test_every_write_of_many_is_heard(guest: Guest) -> None:
    """No write falls between a look and the next sleep: each of sixty answers comes by itself."""
    process = guest.host.start(["sh", "-c", "while read a; do sleep 0.02; echo $a; done"])
    began = time.monotonic()
    for number in range(60):
        process.stdin(b"%d\n" % number)
        want = b"%d\n" % number
        while not process.news(600)[0].endswith(want):
            pass
    assert time.monotonic() - began < 45, "an answer was only seen by the agent's look once a second"


def test_news_comes_without_inotify() -> None:
    """A host may have no inotify to give: then the agent looks."""
    made = Guest("from offload.suite.bench.vm.guest import growth; growth.TMPFS = ''; ")
    try:
        process = made.host.start(["sh", "-c", "read a; echo $a; read b"])
        process.stdin(b"one\n")
        assert process.news(60) == (b"one\n", b"")
    finally:
        made.close()


def test_news_is_for_those_who_wait(guest: Guest) -> None:
    """A command's end answers all who wait for it; a client's leaving answers nobody."""
    process, answers = guest.host.start(["sh", "-c", "read a; exit 3"]), list[object]()
    watcher = threading.Thread(target=lambda: answers.append(process.news(20)))
    watcher.start()
    assert process.wait(20).rc == 3
    watcher.join(20)
    assert answers == [(b"", b"")]
    sock, lines = guest.socks[1], guest.socks[1].makefile("rb")
    hello, ask = (
        b'{"id": 1, "op": "hello", "nonce": "n"}\n',
        b'{"id": 2, "op": "start", "argv": ["sleep", "9"]}\n',
    )
    sock.sendall(hello + ask)
    job = [json.loads(lines.readline()) for _ in range(2)][1]["job"]
    sock.sendall(b'{"id": 3, "op": "output", "job": %d, "wait": 60}\n' % job + hello)
    assert json.loads(lines.readline())["id"] == 1  # the same client, for the agent a new one: it said hello
    sock.settimeout(1)
    with pytest.raises(TimeoutError):
        lines.readline()


def test_answers_come_in_any_order(guest: Guest) -> None:
    """A short request does not wait for a long one."""
    slow = guest.host.start(["sleep", "999"])
    guest.host.run(["true"])
    assert slow.running()


def test_files_have_the_mode_asked_for(guest: Guest, tmp_path: Path) -> None:
    """A key written to the guest is readable by nobody else, whatever the umask."""
    guest.host.write(f"{tmp_path}/new/key", b"secret")
    guest.host.write(f"{tmp_path}/new/script", b"#!/bin/sh\n", 0o777)
    assert guest.host.read(f"{tmp_path}/new/key") == b"secret"
    modes = [(tmp_path / "new" / n).stat().st_mode & 0o777 for n in ("key", "script")]
    assert modes == [0o600, 0o777]


def test_files_without_a_size_are_read(guest: Guest) -> None:
    """Files of /proc come whole; a missing one is FileNotFoundError."""
    assert guest.host.read("/proc/version").startswith(b"Linux version")
    assert guest.host.read("/proc/sys/kernel/ostype") == b"Linux\n"  # a sysctl refuses a read of many MiB
    with pytest.raises(FileNotFoundError):
        guest.host.read("/no/such/file")


def test_garbage_is_no_request(guest: Guest) -> None:
    """Damaged lines neither end the agent nor get an answer."""
    for line in (
        b"{",
        b"[1]",
        b'"x"',
        b"\xff\xfe",
        b"{}",
        b'{"id":1}',
        b'{"id":1,"op":"nope"}',
        b'{"id":9,"op":["x"]}',
    ):
        guest.socks[0].sendall(line + b"\n")
    assert guest.host.run(["true"]).rc == 0


def test_bad_fields_are_one_error(guest: Guest) -> None:
    """A request with wrong fields is answered, not obeyed."""
    for fields in ({"argv": []}, {"argv": "x"}, {"argv": ["true"], "env": 3}, {}):
        with pytest.raises((RigError, OSError)):
            guest.client.call("start", 20, **fields)
    with pytest.raises(OSError):
        guest.client.call("output", 20, job=12345)


def test_hello_ends_what_an_earlier_client_left(guest: Guest) -> None:
    """A client that died in mid-request leaves nothing that the next one meets."""
    left = guest.host.start(["sleep", "99"])
    guest.socks[0].sendall(b'{"id": 77, "op": "run", "argv": ["sleep')  # cut short
    guest.client.hello(20)
    wait_until(lambda: gone(left.pid), 60, "the end of the old client's process")
    assert guest.host.run(["echo", "ok"]).text == "ok\n"


def test_words_before_an_apparent_end_are_answered(guest: Guest) -> None:
    """A request is answered though the line seems to end right behind it."""
    guest.socks[1].sendall(b'{"id": 1, "op": "hello", "nonce": "n"}\n')
    guest.socks[1].shutdown(socket.SHUT_WR)
    guest.socks[1].settimeout(120)
    assert b'"nonce": "n"' in guest.socks[1].recv(4096)


def test_idle_agent_ends_itself_but_not_under_a_command(guest: Guest) -> None:
    """A lab that nobody asks for anything ends; one in which something runs goes on."""
    sleeper = guest.host.start(["sleep", "60"])
    guest.client.call("idle", seconds=0.1)
    time.sleep(1.5)  # the loop wakes once a second, and leaves it alone
    assert guest.process.poll() is None
    sleeper.kill()
    wait_until(lambda: not sleeper.running(), 120, "the end of a killed command")
    sleeper.wait(120)
    guest.process.wait(120)


def test_hello_is_said_again_until_answered() -> None:
    """A first word that the guest dropped does not cost the connection."""
    ours, theirs = socket.socketpair()
    client = Client(ours)

    def answer_the_second() -> None:
        with theirs.makefile("rb") as lines:
            said = [json.loads(line) for line in itertools.islice(filter(bytes.strip, lines), 2)]
        theirs.sendall(json.dumps({"id": said[1]["id"], "nonce": said[1]["nonce"]}).encode() + b"\n")

    thread = threading.Thread(target=answer_the_second)
    thread.start()
    assert client.hello(20)["nonce"]
    thread.join()
    client.close()
    theirs.close()


def test_second_line_is_independent(guest: Guest) -> None:
    """A person can look while a test runs: two clients do not end each other's processes."""
    mine = guest.host.start(["sleep", "99"])
    second = Client(guest.socks[1])
    second.hello(20)
    theirs = VmHost(second, "second").start(["sleep", "99"])
    assert mine.running()
    second.close()
    wait_until(lambda: gone(theirs.pid), 60, "the end of the second client's process")
    assert mine.running()


def test_terminal_is_one(guest: Guest) -> None:
    """A shell in the lab has a controlling terminal of the right size."""
    events: list[dict[str, object]] = []
    guest.client.on_event = events.append
    script = "tty >/dev/null && stty size </dev/tty; exit 5"
    guest.client.call("terminal", argv=["sh", "-c", script], rows=33, columns=77)
    wait_until(lambda: any(e["event"] == "end" for e in events), 60, "the end of the shell")
    import base64

    shown = b"".join(base64.b64decode(str(e["data"])) for e in events if e["event"] == "data")
    assert shown == b"33 77\r\n" and events[-1]["rc"] == 5


def test_lost_vm_says_its_last_words(guest: Guest) -> None:
    """A VM that dies is an error with the console's last lines, for calls under way too."""
    guest.process.kill()
    with pytest.raises(RigError, match=r"VM is gone(.|\n)*last words"):
        guest.host.run(["true"])


def test_lost_vm_names_its_kernels_fault_first(guest: Guest) -> None:
    """A headline is the first line of an error: the panic that ended the VM stands in it."""
    guest.client._last_words = lambda: "  | [ 5.0] Kernel panic - not syncing: x\n  | [ 5.1] R8"
    guest.process.kill()
    with pytest.raises(RigError, match=r"VM is gone: Kernel panic - not syncing: x; the console says:\n  \|"):
        guest.host.run(["true"])


def test_what_is_only_told_has_no_answer(guest: Guest) -> None:
    """Neither the input of a program nor what fails is answered; a VM that is gone is."""
    lines: list[bytes] = []
    heard = guest.client._dispatch
    guest.client._dispatch = lambda line: (lines.append(line), heard(line))[1]  # type: ignore[method-assign]
    process = guest.host.start(["cat"])
    process.stdin(b"one\n")
    guest.client.tell("stdin", job=99, data="")
    assert process.wait(60).stdout == b"one\n"
    assert [json.loads(line)["id"] for line in lines] == [2, 3]
    guest.client.close()
    with pytest.raises(RigError, match="closed"):
        guest.client.tell("stdin", job=99, data="")
