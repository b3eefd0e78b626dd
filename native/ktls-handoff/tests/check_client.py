"""ktls-connect.h: a resident's socket, or stunnel and one warning line, whatever the resident does."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from check_serve import pump, resident
from rig import STUNNEL, Rig, listening, refusing_port

LINE = b"through stunnel\n"
PYTHON = Path(__file__).with_name("pyclient.py")
CLIENTS = {"C": "ktls-connect", "Python": "ktls-offload"}  # and by which name each warns


def call(
    rig: Rig, port: str, policy: str, path: str, *more: str, kind: str = "C"
) -> subprocess.CompletedProcess[bytes]:
    """Run a client by the fake kernel, with a line for the peer: one that uses the header, or Python's."""
    where = rig.folder / "client.conf"
    where.write_text(policy)
    program = {"C": [Path(rig.fake).with_name("client")], "Python": [sys.executable, "-B", PYTHON]}[kind]
    argv = [*map(str, program), "127.0.0.1", port, str(where), path, *more]
    return subprocess.run(argv, input=LINE, capture_output=True, timeout=120, env=rig.env({}))


def chain(rig: Rig) -> str:
    """A policy that checks the chain."""
    return f"CAfile = {rig.file('ca')}\nverifyChain = yes\n"


def falls_back(rig: Rig, path: str, *more: str, policy: str = "", at: str = "", kind: str = "C") -> str:
    """Call; the warning, after the line came back through stunnel, reversed; at: another peer's port."""
    with rig.server() as own:
        port = at or own
        got = call(rig, port, policy or chain(rig), path, *more, kind=kind)
    out, said = got.stdout.split(b"\n", 1), got.stderr.decode()
    assert got.returncode == 0 and json.loads(out[0])["via"] == "stunnel", got
    assert out[1] == LINE[-2::-1] + b"\n" and said.count("\n") == 1, got
    assert said.startswith(f"{CLIENTS[kind]}: warning: 127.0.0.1 port {port}: no kTLS (resident {path}: "), (
        said
    )
    return said


@contextmanager
def liar(rig: Rig, data: bytes, fds: Callable[[], list[int]] = list) -> Iterator[str]:
    """A resident that answers so; the path."""
    path = rig.folder / "liar"
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(str(path))
        listener.listen()

        def serve() -> None:
            with suppress(OSError), listener.accept()[0] as conn:
                conn.recv(4096)
                given = fds()
                if data:
                    socket.send_fds(conn, [data], given)
                for fd in given:
                    os.close(fd)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield str(path)
        finally:
            thread.join(120)
            path.unlink()


def nothing(count: int) -> Callable[[], list[int]]:
    """So many descriptors of nothing."""
    return lambda: [os.open(os.devnull, os.O_RDONLY) for _ in range(count)]


def check_client_gets_the_socket(rig: Rig) -> None:
    """By the fake kernel: the resident's line and socket, no warning, nothing else open."""
    with resident(rig) as home, rig.server() as port:
        got = call(rig, port, chain(rig), str(home.path))
    assert got.returncode == 0 and not got.stderr and json.loads(got.stdout)["via"] == "ktls", got


def check_client_falls_back(rig: Rig) -> None:
    """A resident that is absent, says why not, or breaks its word: one line, and stunnel carries on."""
    assert "No such file" in falls_back(rig, "/nowhere")
    with resident(rig, fake={"FAKE_KTLS_ABSENT": "1"}) as home:
        assert "modprobe tls" in falls_back(rig, str(home.path))
    good = b'{"ok":true,"via":"ktls"}\n'
    for data, fds, why in (
        (b"", nothing(0), "without an answer"),
        (good, nothing(0), "0 descriptors"),
        (good, nothing(2), "2 descriptors"),
        (good, nothing(200), "cut off"),
        (b"x" * 9000 + b"\n", nothing(1), "cut off"),
        (b'{"ok":false,"message":"told so"}\n', nothing(0), "told so"),
        (b'{"ok":false,"message":"told so"}\n', nothing(1), "1 descriptors"),
    ):
        with liar(rig, data, fds) as path:
            assert why in falls_back(rig, path), data


@contextmanager
def moody(rig: Rig, first: Callable[[socket.socket], None]) -> Iterator[str]:
    """A peer whose first connection `first` has, after its hello; the next one is a server's. Its port."""

    def serve() -> None:
        with listener.accept()[0] as conn, suppress(OSError):
            conn.recv(4096)
            first(conn)
            near, far = listener.accept()[0], socket.create_connection(("127.0.0.1", int(port)))
            threading.Thread(target=pump, args=(far, near), daemon=True).start()
            pump(near, far)

    with rig.server() as port, socket.create_server(("127.0.0.1", 0)) as listener:
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield str(listener.getsockname()[1])
        thread.join(120)


def check_client_of_a_peer_that_fails_first(rig: Rig) -> None:
    """A handshake that is reset, is no TLS, or never ends: one line says which, and stunnel carries on."""

    def reset(conn: socket.socket) -> None:
        conn.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        conn.close()

    for first, limit, why in (
        (reset, "60", "Connection reset by peer"),
        (lambda conn: conn.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"), "60", "wrong version number"),
        (lambda conn: None, "3", "not finished within 3 s"),
    ):
        with resident(rig, "--ca", rig.file("ca"), "--timeout", limit) as home:
            with moody(rig, first) as port:
                assert why in falls_back(rig, str(home.path), at=port)


def check_client_of_a_resident_that_is_killed(rig: Rig) -> None:
    """A resident killed in the middle of a handshake is a lost answer: one line, and stunnel carries on."""
    path = rig.folder / "killed"
    argv = [rig.program, "serve", str(path), "--ca", rig.file("ca")]
    with subprocess.Popen(argv, env=rig.env({})) as child:
        while not listening(path):
            time.sleep(0.01)
        with moody(rig, lambda conn: child.kill()) as port:
            said = falls_back(rig, str(path), at=port)
    assert "without an answer" in said or "reset by peer" in said, said
    assert child.wait(120) == -signal.SIGKILL


def check_client_verifies(rig: Rig) -> None:
    """stunnel gets the policy and refuses whom it does not verify; a name asked for replaces the policy's."""
    pin = f"CAfile = {rig.file('server')}\nverifyPeer = yes\n"
    falls_back(rig, "/nowhere", policy=pin)
    falls_back(rig, "/nowhere", policy=chain(rig) + "checkHost = server.test\n")
    falls_back(rig, "/nowhere", "", "server.test", policy=chain(rig) + "checkHost = other.test\n")
    other = f"CAfile = {rig.file('other')}\nverifyChain = yes\n"
    wrong = [(other, ""), (pin.replace("server", "other"), ""), (chain(rig), "other.test")]
    wrong += [(chain(rig) + "checkHost = server.test\n", "other.test")]
    for policy, name in wrong:
        with rig.server() as port:
            got = call(rig, port, policy, "/nowhere", "", name)
        assert (
            got.returncode == 2 and not got.stderr and b"the fallback failed too: stunnel: " in got.stdout
        ), got
    with rig.server(cert="expired") as port:  # a pin does not outlive its date, as with ktls-handoff
        got = call(rig, port, pin.replace("server.pem", "expired.pem"), "/nowhere")
    assert got.returncode == 2 and b"certificate has expired" in got.stdout, got
    for policy in ("", "CAfile = /x\n", pin + "verifyChain = yes\n", "verifyChain = yes\n", "[s]\n" + pin):
        got = call(rig, "1", policy, "/nowhere")
        assert got.returncode == 2 and b"policy" in got.stdout and not got.stderr, got


def check_client_names_the_line(rig: Rig) -> None:
    """A policy that is wrong is refused by file and line, as by the two other readers."""
    for more, why in (
        ("cipher = X\n", b"client.conf:3: unknown key 'cipher'"),
        ("\n; a comment\n  nothing\n", b"client.conf:5: KEY = VALUE"),
        ("checkHost = a\ncheckIP = ::1\n", b"client.conf:4: more than one name"),
        ("verify = 0", b"client.conf:3: unknown key 'verify'"),
    ):
        got = call(rig, "1", chain(rig) + more, "/nowhere")
        assert got.returncode == 2 and why in got.stdout and not got.stderr, (more, got)
    falls_back(rig, "/nowhere", policy=chain(rig).replace("\n", "\r\n") + "# x\n\n\tclient=yes\nsni =\n")


def check_client_learns_why(rig: Rig) -> None:
    """A path that is too long is not cut off, and what stunnel says of its configuration is passed on."""
    path = "/" + "x" * 107
    with rig.server() as port:
        got = call(rig, port, chain(rig), path)
    assert got.returncode == 0 and got.stderr.count(b"\n") == 1 and b"File name too long" in got.stderr, got
    got = call(rig, "1", chain(rig), "")
    assert got.returncode == 2 and b"resident must be set" in got.stdout, got
    got = call(rig, "1", chain(rig) + "curves = NOSUCH\n", "/nowhere")
    assert got.returncode == 2 and b"Invalid groups list" in got.stdout, got


def check_client_without_descriptors(rig: Rig) -> None:
    """Too few descriptors are told as such: one line, or no socket and both reasons."""
    client, where = str(Path(rig.fake).with_name("client")), rig.folder / "client.conf"
    where.write_text(chain(rig))
    outcomes = set()
    with rig.server() as port:
        for most in range(4, 20, 2):
            argv = [
                "sh",
                "-c",
                f'ulimit -n {most}; exec "$@"',
                "sh",
                client,
                "127.0.0.1",
                port,
                str(where),
                "/nowhere",
            ]
            got = subprocess.run(argv, input=LINE, capture_output=True, timeout=120)
            outcomes.add((got.returncode, b"Too many open files" in got.stdout))
            assert b"Bad file descriptor" not in got.stdout, (most, got)
    assert {(0, False), (2, True)} <= outcomes, outcomes


def check_client_without_stunnel(rig: Rig) -> None:
    """Neither way: no socket, no line on standard error, and both reasons."""
    for stunnel, why in (
        ("/nowhere/stunnel", b"No such file"),
        ("/bin/false", b"without a message"),
        (STUNNEL, b"refused"),
    ):
        got = call(rig, refusing_port(), chain(rig), "/nowhere", stunnel)
        assert got.returncode == 2 and got.stdout.count(b"No such file") >= 1 and why in got.stdout, got
        assert not got.stderr
