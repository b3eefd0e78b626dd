"""A program with a line of its own: what goes past the agent comes whole, and ends as a pipe would."""

from __future__ import annotations

import errno
import os
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from offload.errors import RigError
from offload.host.direct import Direct, free
from offload.host.local import LocalHost
from offload.host.vm import DirectProcess, VmHost, pull, talk
from offload.suite.bench.vm.guest import direct as guest_direct
from tests.unit.suite.bench.vm.test_vm_agent import Guest

BIG = os.urandom(3 << 20)


class Ports:
    """A lab's folder with these ports; `program` runs behind each, once somebody has it open."""

    def __init__(self, folder: Path, names: list[str], program: Callable[[socket.socket], None]) -> None:
        self.folder, self._program = folder, program
        self._servers = [self._serve(folder / name) for name in names]

    def _serve(self, path: Path) -> socket.socket:
        server = socket.socket(socket.AF_UNIX)
        server.bind(str(path))
        server.listen()
        threading.Thread(target=self._accept, args=[server], daemon=True).start()
        return server

    def _accept(self, server: socket.socket) -> None:
        with suppress(OSError):
            while True:
                end, _ = server.accept()
                with end, suppress(OSError):
                    self._program(end)

    def close(self) -> None:
        """End the lab."""
        for server in self._servers:
            server.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept, who would take one more
            server.close()


def echo(end: socket.socket) -> None:
    """Say what was said, until there is no more."""
    while data := end.recv(65536):
        end.sendall(data)


def file(end: socket.socket) -> None:
    """Give a file's bytes, and wait to be let go."""
    end.sendall(BIG)
    end.recv(1)


class FakeAgent:
    """An agent whose jobs live until they are asked for; `said`: what each request was."""

    def __init__(self, folder: Path | None, missing: str = "") -> None:
        self._folder, self._missing = folder, missing
        self.said: list[dict[str, Any]] = []

    def call(self, op: str, patience: float = 0, **fields: Any) -> dict[str, Any]:
        """Answer as one whose program has ended well."""
        self.said.append({"op": op, **fields})
        if op == "start" and fields["argv"][0] == self._missing:
            raise FileNotFoundError(errno.ENOENT, "no such file", self._missing)
        ended = {"job": 1, "pid": 7, "rc": 0, "seconds": 0.1, "timed_out": False, "out": "", "err": "d29l\n"}
        return ended if op != "run" else ended | {"out": "cnVu\n"}

    def tell(self, op: str, **fields: Any) -> None:
        """Note it."""
        self.said.append({"op": op, **fields})

    def direct(self) -> Direct | None:
        """Take a line of the folder."""
        return free(self._folder) if self._folder else None


@pytest.fixture
def ports(tmp_path: Path) -> Iterator[Ports]:
    """A lab with two ports behind which somebody echoes."""
    made = Ports(tmp_path, ["own00", "own01"], echo)
    yield made
    made.close()


def heard(line: Direct, size: int) -> bytes:
    """This many bytes of a line."""
    found = b""
    while len(found) < size and (piece := line.take(60)):
        found += piece
    return found


def test_a_line_is_one_programs_alone(ports: Ports) -> None:
    """Two lines are two; a third there is not; one that was given back is there again."""
    first, second = free(ports.folder), free(ports.folder)
    assert first and second and first.name != second.name and free(ports.folder) is None
    first.close()
    again = free(ports.folder)
    assert again and again.name == first.name
    again.send(b"a")
    assert heard(again, 1) == b"a"


def test_a_folder_without_ports_has_no_line(tmp_path: Path) -> None:
    """A lab that an older version booted has none, and a port without a lab behind it is none."""
    assert free(tmp_path) is None
    Ports(tmp_path, ["own00"], echo).close()
    (tmp_path / "own01").touch()
    assert free(tmp_path) is None


def test_megabytes_are_said_while_as_many_are_heard(ports: Ports) -> None:
    """A program that answers before it has heard all does not stop: neither end waits for the other."""
    line = free(ports.folder)
    assert line
    first = line.send(BIG)
    assert first + heard(line, len(BIG) - len(first)) == BIG


def test_a_program_that_does_not_listen_is_a_broken_rig(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it would have to read does not stop us for ever."""
    monkeypatch.setattr("offload.host.direct.SILENT", 0.05)
    made, over = Ports(tmp_path, ["own00"], lambda _: over.wait(60)), threading.Event()
    line = free(tmp_path)
    assert line
    with pytest.raises(RigError, match="own00 has read nothing for 0.05 s"):
        line.send(BIG)
    over.set()
    made.close()


def test_a_line_whose_lab_is_gone_says_so(tmp_path: Path) -> None:
    """Nothing waits for a VM that has ended, and nothing is lost that it said before."""
    made = Ports(tmp_path, ["own00"], lambda end: end.sendall(b"last"))
    line = free(tmp_path)
    assert line and heard(line, 5) == b"last" and line.ended
    assert line.send(BIG) == b"" and line.take(60) == b""
    made.close()


def test_what_a_program_says_is_its_output(ports: Ports) -> None:
    """Output comes by the line, standard error and the end by the agent."""
    agent = FakeAgent(ports.folder)
    process = talk(VmHost(agent, "guest", "dut"), ["echo"])
    assert isinstance(process, DirectProcess) and process.news(0) == (b"", b"")
    assert agent.said == [{"op": "start", "argv": ["echo"], "ns": "dut", "direct": "own00"}]
    process.stdin(b"one\n")
    assert process.news(60) == (b"one\n", b"")
    process.stdin(b"two\n")
    while process.news(60)[0] != b"one\ntwo\n":
        pass
    assert process.output() == (b"one\ntwo\n", b"woe") and not process.running()
    assert process.wait(5).stdout == b"one\ntwo\n"


def test_a_program_that_is_not_there_takes_no_line(ports: Ports) -> None:
    """An error leaves every line free."""
    with pytest.raises(FileNotFoundError):
        VmHost(FakeAgent(ports.folder, missing="none"), "guest").direct(["none"])
    kept = [free(ports.folder), free(ports.folder)]
    assert all(kept)


def test_without_a_line_the_agent_carries_it(tmp_path: Path) -> None:
    """A lab without lines starts the program as any other, and gives files piece by piece."""
    agent = FakeAgent(None)
    host = VmHost(agent, "guest")
    assert not isinstance(talk(host, ["echo"]), DirectProcess)
    assert b"".join(pull(host, "/file", 3)) == b"run" and agent.said[-1]["argv"][0] == "dd"


def test_a_file_comes_whole_and_gives_the_line_back(tmp_path: Path) -> None:
    """All bytes of a file arrive; what reads it is ended, and its job forgotten, also if we stop before."""
    made = Ports(tmp_path, ["own00"], file)
    for size in (len(BIG), 1000):
        agent = FakeAgent(tmp_path)
        found = b""
        pieces = pull(VmHost(agent, "guest"), "/file", size)
        for piece in pieces:
            found += piece
            if size == 1000:
                pieces.close()
        assert found[:size] == BIG[:size] and (size == 1000 or found == BIG)
        assert [said["op"] for said in agent.said] == ["start", "kill", "stdin", "wait"]
        again = free(tmp_path)
        assert again
        again.close()
    made.close()


def test_a_file_of_another_host_comes_too(tmp_path: Path) -> None:
    """A host that is no VM gives its file by `dd`; a file that is shorter gives what there is."""
    (tmp_path / "file").write_bytes(BIG)
    assert b"".join(pull(LocalHost(), str(tmp_path / "file"), len(BIG))) == BIG
    assert b"".join(pull(LocalHost(), str(tmp_path / "file"), len(BIG) + 9)) == BIG


def test_the_agent_gives_a_program_a_port() -> None:
    """It reads and prints there; standard error and the exit code stay with the agent."""
    ours, theirs = os.openpty()
    name = os.ttyname(theirs)
    made = Guest(
        f"from offload.suite.bench.vm.guest import agent; agent.named = lambda: {{'own00': {name!r}}}; "
    )
    try:
        program = "stty raw -echo; echo ready; read a; echo heard $a; echo woe >&2; exit 3"
        job = made.client.call("start", argv=["sh", "-c", program], direct="own00")["job"]
        assert os.read(ours, 99).strip() == b"ready"
        os.write(ours, b"one\n")
        assert os.read(ours, 99) == b"heard one\n"
        done = made.client.call("wait", 60, job=job, timeout=50)
        assert (done["rc"], done["out"], done["err"]) == (3, "", "d29lCg==")
        with pytest.raises(RigError, match="own99"):
            made.client.call("start", argv=["true"], direct="own99")
        with pytest.raises(FileNotFoundError):
            made.client.call("start", argv=["/no/such/program"], direct="own00")
    finally:
        made.close()


def test_a_port_that_nobody_has_open_is_not_given(monkeypatch: pytest.MonkeyPatch) -> None:
    """A program there would read the end of its input at once, so there is an error, and no leak."""
    held, gone = os.pipe()
    os.close(gone)
    monkeypatch.setattr(guest_direct, "PATIENCE", 0.05)
    monkeypatch.setattr(guest_direct.os, "open", lambda *_: held)
    with pytest.raises(OSError, match="not connected"):
        guest_direct.opened("/dev/vport0p9")
    with pytest.raises(OSError, match="Bad file"):
        os.fstat(held)


def test_a_port_is_free_once_what_a_killed_program_started_is_gone(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is waited for, but not for ever; any other error is told at once."""
    theirs, ours = socket.socketpair()
    refused: list[int] = [errno.EBUSY] * 3

    def open_(*_: object) -> int:
        if refused:
            number = refused.pop()
            raise OSError(number, os.strerror(number))
        return os.dup(theirs.fileno())

    monkeypatch.setattr(guest_direct.os, "open", open_)
    with theirs, ours:
        os.close(guest_direct.opened("/dev/vport0p9"))
        refused += [errno.ENOENT] * 2
        with pytest.raises(FileNotFoundError):
            guest_direct.opened("/dev/vport0p9")
        assert len(refused) == 1
        monkeypatch.setattr(guest_direct, "PATIENCE", 0.05)
        refused[:] = [errno.EBUSY] * 10_000
        with pytest.raises(OSError, match="busy"):
            guest_direct.opened("/dev/vport0p9")


def test_a_guest_without_ports_has_none(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A host by ssh has no such folder."""
    monkeypatch.setattr(guest_direct, "BASE", str(tmp_path / "none"))
    assert guest_direct.named() == {}
    for device, name in (("vport0p1", "lab0"), ("vport0p2", "own00")):
        (tmp_path / device).mkdir()
        (tmp_path / device / "name").write_text(f"{name}\n")
    monkeypatch.setattr(guest_direct, "BASE", str(tmp_path))
    assert guest_direct.named() == {"lab0": "/dev/vport0p1", "own00": "/dev/vport0p2"}
