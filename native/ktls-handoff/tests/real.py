"""The checks that need kTLS in the kernel: as root, in a lab of kind veth (README.md)."""

from __future__ import annotations

import hashlib
import json
import os
import pwd
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from rig import STUNNEL, Answer, Rig, receive

GCM = {
    "ECDHE-RSA-AES128-GCM-SHA256": "aes-gcm-128",
    "ECDHE-RSA-AES256-GCM-SHA384": "aes-gcm-256",
}


@pytest.fixture(scope="module", autouse=True)
def kernel() -> None:
    """kTLS in the kernel."""
    subprocess.run(["modprobe", "tls"], check=False)


def echo(sock: socket.socket, line: bytes) -> bytes:
    """Send a line to `openssl s_server -rev` and read its answer."""
    sock.settimeout(120)
    sock.sendall(line + b"\n")
    answer = b""
    while not answer.endswith(b"\n"):
        answer += sock.recv(65536)
    return answer[:-1]


@contextmanager
def sink(rig: Rig, tls: str) -> Iterator[tuple[str, list[bytes]]]:
    """An unmodified stunnel server before a slow reader: its port, and what the reader got in the end."""
    with socket.create_server(("127.0.0.1", 0)) as plain, socket.create_server(("127.0.0.1", 0)) as free:
        port, got = str(free.getsockname()[1]), []
        free.close()
        conf = rig.folder / f"sink-{port}.conf"
        conf.write_text(
            f"foreground = yes\nsyslog = no\npid =\n[sink]\naccept = 127.0.0.1:{port}\n"
            f"connect = 127.0.0.1:{plain.getsockname()[1]}\ncert = {rig.file('server')}\n"
            f"key = {rig.file('server-key')}\nsslVersion = TLSv{tls}\n"
        )
        child = subprocess.Popen([STUNNEL, str(conf)], stderr=subprocess.DEVNULL)
        reader = threading.Thread(target=read_slowly, args=(plain, got))
        reader.start()
        wait_for(port)
        try:
            yield port, got
            reader.join(60)
        finally:
            child.kill()
            child.wait()


def wait_for(port: str) -> None:
    """Wait until something listens, without connecting to it."""
    wanted, end = f":{int(port):04X} 00000000:0000 0A", time.monotonic() + 120
    while wanted not in Path("/proc/net/tcp").read_text():
        assert time.monotonic() < end, "stunnel does not listen"
        time.sleep(0.05)


def read_slowly(plain: socket.socket, got: list[bytes]) -> None:
    """Read one connection to its end; the pause at the start leaves data in stunnel's queue."""
    conn = plain.accept()[0]
    time.sleep(0.5)
    with conn:
        while data := conn.recv(65536):
            got.append(data)


def safe_close(rig: Rig, sock: socket.socket) -> Answer:
    """Run the verb close on a socket of ours."""
    sock.setblocking(True)
    argv = [rig.program, "close", "--timeout", "20", "--fd", str(sock.fileno())]
    child = subprocess.Popen(argv, pass_fds=[sock.fileno()], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    sock.close()
    out, err = child.communicate(timeout=300)
    return Answer(child.returncode, json.loads(out), None, err.decode().splitlines())


def check_tls12_both_ciphers(rig: Rig) -> None:
    """TLS 1.2 AES-GCM: both directions by the kernel in software, payload both ways, clean close."""
    for cipher, kernel in GCM.items():
        with rig.server() as port:
            got = rig.run("connect", "127.0.0.1", port, "--no-verify", "--ciphers", cipher, "--want", "both")
            assert got.rc == 0 and got.sock, got
            assert (got.json["cipher"], got.json["kernel_cipher"]) == (cipher, kernel)
            assert (got.json["tx"], got.json["rx"]) == ("sw", "sw"), got
            assert got.json["tx_seq"] == got.json["rx_seq"] == f"{1:016x}"
            for line in (b"a", b"palindrome", b"x" * 10000 + b"y"):
                assert echo(got.sock, line) == line[::-1]
            closed = safe_close(rig, got.sock)
            assert closed.json == {"ok": True, "drained": 0, "alert": "close_notify"}, closed


def check_ipv6(rig: Rig) -> None:
    """The same over IPv6: inet_diag finds that socket too."""
    argv = ["openssl", "s_server", "-accept", "[::1]:14433", "-cert", rig.file("server"), "-rev", "-quiet"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    child = subprocess.Popen([*argv, "-key", rig.file("server-key")], **quiet)
    try:
        for _ in range(100):
            got = rig.run("connect", "::1", "14433", "--no-verify")
            if got.rc != 5:
                break
            time.sleep(0.1)
        assert (got.rc, got.json["tx"], got.json["peer"]) == (0, "sw", "[::1]:14433"), got
        assert echo(got.sock, b"abc") == b"cba"
    finally:
        child.kill()
        child.wait()


def check_tls13_sends_only(rig: Rig) -> None:
    """TLS 1.3 with OpenSSL 3.0: send by the kernel, receive not; wanting receive is refused, and says why."""
    suites = {"TLS_AES_128_GCM_SHA256": "aes-gcm-128", "TLS_AES_256_GCM_SHA384": "aes-gcm-256"}
    for cipher, kernel in suites.items():
        with rig.server(tls="1.3") as port:
            args = ("connect", "127.0.0.1", port, "--no-verify", "--tls", "1.3", "--ciphers", cipher)
            got = rig.run(*args)
            assert (got.rc, got.json["version"], got.json["kernel_cipher"]) == (0, "1.3", kernel), got
            assert (got.json["tx"], got.json["rx"], got.json["rx_seq"]) == ("sw", "none", None)
            got.sock.close()
            got = rig.run(*args, "--want", "rx")
            assert (got.rc, got.json["cause"], got.sock) == (3, "ktls", None), got
            assert "OpenSSL before 3.2" in got.json["message"]


def check_cbc_refused(rig: Rig) -> None:
    """A CBC suite: exit 3 and the reason; with a fallback, stunnel carries it over a new connection."""
    suite = "ECDHE-RSA-AES256-SHA384"
    with rig.server("-cipher", suite) as port:
        args = ("connect", "127.0.0.1", port, "--no-verify", "--ciphers", suite)
        got = rig.run(*args)
        assert (got.rc, got.json["cause"]) == (3, "ktls") and "does not support this cipher" in got.json[
            "message"
        ], got
        got = rig.run(*args, "--fallback", STUNNEL)
        assert (got.rc, got.json["via"], len(got.errors)) == (0, "stunnel", 1), got
        assert echo(got.sock, b"abc") == b"cba"


def check_chacha_is_named(rig: Rig) -> None:
    """ChaCha20-Poly1305 is taken by the kernel's software; kernel_cipher says that no card does it."""
    suite = "ECDHE-RSA-CHACHA20-POLY1305"
    with rig.server("-cipher", suite) as port:
        got = rig.run("connect", "127.0.0.1", port, "--no-verify", "--ciphers", suite)
        assert (got.rc, got.json.get("kernel_cipher"), got.json.get("tx")) == (
            0,
            "chacha20-poly1305",
            "sw",
        ), got
        assert echo(got.sock, b"abc") == b"cba"


def check_close_delivers_everything(rig: Rig) -> None:
    """1 MiB to an unmodified stunnel arrives whole, although nobody ever read its session tickets."""
    payload = os.urandom(1 << 20)
    for tls in ("1.2", "1.3"):
        with sink(rig, tls) as (port, got):
            conn = rig.run("connect", "127.0.0.1", port, "--ca", rig.file("ca"), "--tls", tls)
            assert conn.rc == 0 and conn.sock, conn
            conn.sock.sendall(payload)
            closed = safe_close(rig, conn.sock)
        assert closed.rc == 0, closed
        assert (closed.json["alert"], closed.json["drained"] > 0) == (
            ("close_notify", False) if tls == "1.2" else (None, True)
        ), closed
        arrived = b"".join(got)
        assert hashlib.sha256(arrived).digest() == hashlib.sha256(payload).digest(), (tls, len(arrived))


def check_accept_both_versions(rig: Rig) -> None:
    """accept: an openssl client gets 1 MiB that the consumer wrote, to the last byte."""
    for tls in ("1.2", "1.3"):
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        argv = [rig.program, "accept", "127.0.0.1", "0", "--cert", rig.file("server"), "--tls", tls]
        argv += ["--key", rig.file("server-key"), "--announce", "--fd", str(theirs.fileno())]
        with (
            ours,
            theirs,
            subprocess.Popen(argv, pass_fds=[theirs.fileno()], stdout=subprocess.PIPE) as child,
        ):
            port = child.stdout.readline().rsplit(b":", 1)[1].strip().decode()
            argv = [
                "openssl",
                "s_client",
                "-connect",
                f"127.0.0.1:{port}",
                "-quiet",
                "-CAfile",
                rig.file("ca"),
            ]
            client = subprocess.Popen(
                argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, stdin=subprocess.PIPE
            )
            line, sock = receive(ours)
            answer = json.loads(line)
            assert answer["ok"] and (answer["tx"], answer["rx"]) == ("sw", "sw" if tls == "1.2" else "none")
            assert answer["tx_seq"] == f"{1 if tls == '1.2' else 0:016x}"
            payload = os.urandom(1 << 20)
            sock.sendall(payload)
            out = subprocess.Popen(["sha256sum"], stdin=client.stdout, stdout=subprocess.PIPE)
            closed = safe_close(rig, sock)
            client.wait(120)
            client.stdin.close()
            client.stdout.close()
            arrived = out.communicate(timeout=120)[0].split()[0].decode()
        assert closed.rc == 0 and arrived == hashlib.sha256(payload).hexdigest(), (tls, closed)


def check_server_that_talks_first(rig: Rig) -> None:
    """Data that the server sends right after the handshake is left for the consumer, to the first byte."""
    payload = rig.folder / "greeting"
    payload.write_bytes(b"220 ready" + os.urandom(30000))
    argv = ["openssl", "s_server", "-accept", "127.0.0.1:0", "-cert", rig.file("server"), "-tls1_2"]
    for _ in range(5):
        with payload.open("rb") as text:
            server = subprocess.Popen(
                [*argv, "-key", rig.file("server-key"), "-naccept", "1"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
            line = next(x for x in server.stdout if b"ACCEPT" in x)
            server.stdin.write(text.read())
            server.stdin.flush()
            got = rig.run("connect", "127.0.0.1", line.rsplit(b":", 1)[1].strip().decode(), "--no-verify")
        assert got.rc == 0 and got.json["pending"] == 0, got
        got.sock.settimeout(120)
        data = b""
        while len(data) < 9:
            data += got.sock.recv(4096)
        assert data.startswith(b"220 ready")
        got.sock.close()
        server.kill()
        server.communicate()


def check_without_privilege(rig: Rig) -> None:
    """A user without CAP_NET_ADMIN gets the socket too; where inet_diag does not tell him, tx is unknown."""
    release = tuple(int(x) for x in os.uname().release.split("-")[0].split(".")[:2])
    nobody = pwd.getpwnam("nobody")
    with rig.server() as port:
        argv = [rig.program, "connect", "127.0.0.1", port, "--no-verify", "--timeout", "40"]
        done = subprocess.run(
            argv, capture_output=True, user=nobody.pw_uid, group=nobody.pw_gid, extra_groups=[], timeout=200
        )
    got = json.loads(done.stdout)
    assert got["ok"] and got["tx"] == ("unknown" if release < (7, 0) else "sw"), (got, done.stderr)


def check_module_absent(rig: Rig) -> None:
    """Without the tls module: exit 4 and what to do. (The module is taken out, and put back.)"""
    helper = Path("/proc/sys/kernel/modprobe")
    program = helper.read_text()
    removed = subprocess.run(["rmmod", "tls"], capture_output=True, text=True)
    assert removed.returncode == 0, removed.stderr
    try:
        helper.write_text("/bin/false")
        with rig.server() as port:
            got = rig.run("connect", "127.0.0.1", port, "--no-verify")
            assert (got.rc, got.json["cause"]) == (4, "ktls") and "modprobe tls" in got.json["message"], got
            got = rig.run("connect", "127.0.0.1", port, "--no-verify", "--fallback", STUNNEL)
            assert (got.rc, got.json["via"]) == (0, "stunnel") and echo(got.sock, b"abc") == b"cba"
    finally:
        helper.write_text(program)
        subprocess.run(["modprobe", "tls"], check=False)
