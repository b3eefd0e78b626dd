"""Without kernel TLS, the stream arrives all the same, and one line says why."""

from __future__ import annotations

import os
import select
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from offload.cli import main as cli
from offload.cmd import wait_until
from offload.connect import client
from offload.connect.client import Policy, Target, connect
from offload.connect.verbs import as_text
from offload.errors import ConfigError, RigError
from tests.daemons.connect_peer import (
    GOOD,
    PAYLOAD,
    Server,
    exchanged,
    gives,
    needs_stunnel,
    resident,
    says,
    serving,
)

ROOT = Path(__file__).parents[2]
HALF = 0.5 - 10 * client.STEPS  # with 10 s for each step: half a second for a helper
HANDOFF = ROOT / "build/ktls-handoff"
KERNEL_TLS = "tls" in Path("/proc/sys/net/ipv4/tcp_available_ulp").read_text().split()
pytestmark = needs_stunnel


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """One server for all."""
    with serving(tmp_path_factory.mktemp("server")) as found:
        yield found


def falls_back(server: Server, **how: str) -> str:
    """Connect; the one warning, after the payload came back unharmed and its stunnel ended."""
    lines: list[str] = []
    got = connect(server.target, Policy(ca=str(server.ca)), warn=lines.append, **how)
    assert got.process and got.line["via"] == "stunnel" and got.line["version"] == "1.2", got
    assert exchanged(got.sock) == PAYLOAD
    assert got.process.wait(120) == 0
    assert lines == [got.warning] and lines[0].startswith(f"127.0.0.1 port {server.port}: no kTLS (")
    return got.warning


def listening(path: Path) -> bool:
    """Say whether somebody listens there: between bind() and listen() a socket is there, and refuses."""
    rows = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return any(row[3] == "00010000" and row[7:] == [str(path)] for row in rows)


def script(folder: Path, text: str, mode: int = 0o755) -> str:
    """A program that stands for ktls-handoff."""
    path = folder / "handoff"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


HELPERS = {
    "missing": (None, 0, "no program /nowhere"),
    "not executable": ("#!/bin/sh\n", 0o644, "no program"),
    "no program": ("\x7fELF", 0o755, "Exec format error"),
    "killed": ("#!/bin/sh\nkill -9 $$\n", 0o755, "without an answer"),
    "silent": ("#!/bin/sh\nexit 0\n", 0o755, "without an answer"),
    "mute": ("#!/bin/sh\nexec sleep 600\n", 0o755, "no answer in time"),
}


@pytest.mark.parametrize("name", HELPERS)
def test_helper_that_fails(
    name: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A helper that is missing, dies or hangs is one warning, and stunnel carries on."""
    text, mode, why = HELPERS[name]
    if name == "mute":
        monkeypatch.setattr(client, "SPARE", HALF)
    began = time.monotonic()
    program = script(tmp_path, text, mode) if text else "/nowhere"
    assert why in falls_back(server, program=program)
    assert time.monotonic() - began < 300, "it waited for the end of a helper that hangs"


def open_files() -> int:
    """How many descriptors this process has."""
    return len(list(Path("/proc/self/fd").iterdir()))


def unconnected() -> socket.socket:
    """A TCP socket that leads nowhere."""
    return socket.socket()


KEPT: list[socket.socket] = []  # the peers of those


def connected() -> socket.socket:
    """A TCP connection without kernel TLS."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.create_connection(listener.getsockname())
        KEPT.append(listener.accept()[0])
    return near


def was_reset() -> socket.socket:
    """The same, after the peer has reset it."""
    near, far = connected(), KEPT.pop()
    far.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    far.close()
    ended = select.poll()
    ended.register(near, select.POLLHUP)
    assert ended.poll(20_000)
    return near


ANSWERS: dict[str, tuple[Callable[[socket.socket], object], str]] = {
    "leaves": (lambda conn: None, "without an answer"),
    "mute": (lambda conn: conn.recv(1), "no answer in time"),  # until the client leaves
    "no descriptor": (says(GOOD + b"\n"), "an answer with 0 descriptors"),
    "two descriptors": (says(GOOD + b"\n", 2), "an answer with 2 descriptors"),
    "many descriptors": (says(GOOD + b"\n", 200), "a truncated answer"),
    "why not, and a descriptor": (says(b'{"ok":false,"message":"x"}\n', 1), "an answer with 1 descriptors"),
    "no socket": (says(GOOD + b"\n", 1), "a descriptor that is not a socket"),
    "not connected": (gives(unconnected), "not a connected TCP socket"),
    "other socket": (gives(lambda: socket.socket(socket.AF_UNIX)), "not a connected TCP socket"),
    "plain TCP": (gives(connected), "the kernel does not encrypt on the socket"),
    "reset": (gives(was_reset), "right after the handshake: Connection reset by peer"),
    "cut off": (says(GOOD[:20], 1), "a truncated answer"),
    "too long": (says(b" " * 9000 + b"\n", 1), "a truncated answer"),
    "no JSON": (says(b"ok\n", 1), "an invalid answer"),
    "deep JSON": (says(b"[" * 4000 + b"\n"), "an invalid answer"),
    "not an object": (says(b"[true]\n"), "an invalid answer"),
    "no verdict": (says(b'{"ok": 1}\n', 1), "an invalid answer"),
    "says why not": (says(b'{"ok":false,"cause":"verify","message":"told so","exit":2}\n'), "(told so)"),
    "finds fault": (says(b'{"ok":false,"message":"bad request","exit":1}\n'), "bad request"),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_resident_that_fails(
    name: str, server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a resident answers instead of a socket is one warning; stunnel carries on."""
    act, why = ANSWERS[name]
    if name == "mute":
        monkeypatch.setattr(client, "SPARE", HALF)
    before = open_files()
    with resident(tmp_path, act) as path:
        assert why in falls_back(server, via=path)
    while KEPT:
        KEPT.pop().close()
    wait_until(lambda: open_files() <= before, 120, "descriptors that somebody sent to be closed")


def test_resident_that_is_not_there(server: Server, tmp_path: Path) -> None:
    """A resident that was never started, or was killed, is one warning."""
    path = tmp_path / "left"
    assert "No such file" in falls_back(server, via=str(path))
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as gone:
        gone.bind(str(path))
    assert "Connection refused" in falls_back(server, via=str(path))


@pytest.mark.skipif(
    KERNEL_TLS or not HANDOFF.exists(), reason="a kernel without TLS, and ktls-handoff, wanted"
)
def test_kernel_without_tls(server: Server, tmp_path: Path) -> None:
    """On a kernel without TLS, helper and resident say so, and stunnel carries the stream."""
    assert "modprobe tls" in falls_back(server, program=str(HANDOFF))
    path = tmp_path / "resident"
    argv = [sys.executable, "-m", "offload", "connect", "--serve", str(path), "--ca", str(server.ca)]
    with subprocess.Popen(argv, cwd=ROOT) as child:
        wait_until(lambda: listening(path) or child.poll() is not None, 60, "the resident to listen")
        assert "modprobe tls" in falls_back(server, via=str(path))
        child.terminate()
        assert child.wait(120) == 0 and not path.exists()


def test_peer_that_is_not_who_it_should_be(server: Server, tmp_path: Path) -> None:
    """stunnel refuses whom ktls-handoff would refuse: no warning, an error, no socket."""
    lines: list[str] = []
    other = tmp_path / "other.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes"]
    argv = [*make, "-subj", "/CN=other", "-keyout", os.devnull, "-out", str(other)]
    subprocess.run(argv, check=True, capture_output=True)
    how = {"program": "/nowhere", "warn": lines.append}
    for target, policy in (
        (server.target, Policy(ca=str(other))),
        (server.target, Policy(pin=str(other))),
        (Target("127.0.0.1", server.port, "other.test"), Policy(ca=str(server.ca))),
    ):
        with pytest.raises(RigError, match=r"no program /nowhere.*the fallback failed too: stunnel: "):
            connect(target, policy, **how)
    with pytest.raises(RigError, match="no stunnel"):
        connect(server.target, Policy(ca=str(server.ca)), stunnel="/nowhere", **how)
    with pytest.raises(RigError, match=r"no kTLS \(no program /nowhere\)$"):
        connect(server.target, Policy(ca=str(server.ca)), fallback=False, **how)
    assert not lines


def typed(server: Server, *more: str, fds: tuple[int, ...] = ()) -> subprocess.CompletedProcess[str]:
    """The command as a person types it, for a resident that is not there; exit code 0."""
    words = ["connect", "127.0.0.1", str(server.port), "--ca", str(server.ca), "--via", "/nowhere", *more]
    how = {"pass_fds": fds, "capture_output": True, "text": True, "timeout": 300}
    done = subprocess.run([sys.executable, "-m", "offload", *words], cwd=ROOT, **how)  # type: ignore[call-overload]
    assert done.returncode == 0 and done.stderr.count("\n") == 1, done
    assert done.stderr.startswith(f"ktls-offload: warning: 127.0.0.1 port {server.port}: no kTLS (")
    return done


def test_command_hands_over(server: Server, tmp_path: Path) -> None:
    """The command gives line and socket to who listens; people get one line."""
    for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
        path = str(tmp_path / f"to-{kind}")
        with socket.socket(socket.AF_UNIX, kind) as listener:
            listener.bind(path)
            listener.listen()
            assert not typed(server, "--to", path).stdout
            with listener.accept()[0] as conn:
                data, fds, _, _ = socket.recv_fds(conn, 8192, 4)
        assert b'"via": "stunnel"' in data and data.endswith(b"\n") and len(fds) == 1
        assert exchanged(socket.socket(fileno=fds[0])) == PAYLOAD


def test_command_uses_what_it_inherits(server: Server) -> None:
    """The command hands over on a descriptor too, and --json repeats the line."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
    with ours, theirs:
        done = typed(server, "--fd", str(theirs.fileno()), "--json", fds=(theirs.fileno(),))
        data, fds, _, _ = socket.recv_fds(ours, 8192, 4)
    assert data.decode() == done.stdout
    assert exchanged(socket.socket(fileno=fds[0])) == PAYLOAD


def test_command_tells_what_would_be(server: Server) -> None:
    """Without a receiver the command says what a connection is, and closes it."""
    said = typed(server).stdout
    assert said == f"{server.target}: TLS 1.2, ECDHE-RSA-AES256-GCM-SHA384, by stunnel\n"


def test_text_names_who_does_it() -> None:
    """The text for a person says which card or driver works, in each direction."""
    line = {
        "via": "ktls",
        "version": "1.2",
        "cipher": "C",
        "tx": "hw",
        "tx_by": "eth0",
        "rx": "sw",
        "rx_by": "gcm",
    }
    said = as_text(Target("h", 1), line).splitlines()
    assert said == ["h port 1: TLS 1.2, C", "send     hardware  eth0", "receive  software  gcm"]
    said = as_text(
        Target("h", 1), line | {"tx": "unknown", "tx_by": None, "rx": "none", "rx_by": None}
    ).splitlines()
    assert said[1].startswith("send     unknown (needs CAP") and said[2] == "receive  not by the kernel"


@pytest.mark.parametrize(
    ("more", "why"),
    [
        (["--to", "/nowhere"], "no program accepts a socket"),
        (["--fd", "0"], "no program accepts a socket"),
        (["--to", "/" + "x" * 200], "too long"),
        (["--to", ""], "not an empty string"),
        (["--fd", "-1"], "no program accepts a socket"),
        (["--via", ""], "not an empty string"),
        (["--timeout", "0"], "--timeout"),
        (["--clients", "4"], "need --serve"),
    ],
)
def test_command_refuses(
    more: list[str], why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A wrong option ends with 2, before anything is connected."""
    (tmp_path / "ca.pem").touch()
    assert cli.main(["connect", "127.0.0.1", "1", "--ca", str(tmp_path / "ca.pem"), *more]) == 2
    assert why in capsys.readouterr().err


def test_target_is_a_host_and_a_port() -> None:
    """A target that could add a line or an option somewhere is refused."""
    for host, port in (
        ("", 1),
        ("a b", 1),
        ("a\nb", 1),
        ("--fallback", 1),
        ("x" * 254, 1),
        ("h", 0),
        ("h", 65536),
    ):
        with pytest.raises(ConfigError):
            Target(host, port)
