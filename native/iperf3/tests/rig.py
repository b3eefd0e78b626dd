"""What the checks stand on: servers and clients on loopback, a relay between them, a hand-made client."""

from __future__ import annotations

import json
import os
import socket
import ssl
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

STOCK = os.environ.get("IPERF3", "/usr/bin/iperf3")
COOKIE = b"c" * 36 + b"\0"
PARAM_EXCHANGE, CREATE_STREAMS, READY, SERVER_ERROR = 9, 10, 77, 0xFE
LIMIT = 120  # seconds for one program
PORTS = count(20_000)  # below those that the kernel gives away, in a network namespace of these checks alone
# how a server says that it has not yet ended the test before, or does not listen again
BETWEEN = ("Connection refused", "server is busy", "unexpectedly", "Connection reset by peer", "Broken pipe")


@dataclass
class Answer:
    """What a program did: exit code, both outputs, and its JSON (empty without -J)."""

    rc: int
    out: str
    err: str
    json: dict[str, Any] = field(default_factory=dict)

    @property
    def words(self) -> str:
        """The error, wherever it was printed."""
        return self.json.get("error", "") + self.err


@dataclass
class Server:
    """A running server: its port, and what it answered after `with`."""

    port: int
    answer: Answer | None = None


@dataclass
class Rig:
    """The program under test, a library that fakes a kernel with kTLS, a folder for certificates."""

    program: str
    fake: str
    folder: Path

    def __post_init__(self) -> None:
        """Write once what no check may change: two programs that run side by side read it as they end."""
        self.leaks.write_text("leak:libiperf.so\n")

    @property
    def leaks(self) -> Path:
        """What the leak sanitizer passes over: libiperf 3.12 leaks some bytes of each stream."""
        return self.folder / "leaks"

    def environment(self, fake: str) -> dict[str, str]:
        """With `fake` (FAKE_KTLS_TX=0) the kernel seems to do kTLS, less what that says."""
        options = f"suppressions={self.leaks}:print_suppressions=0"
        env = {**os.environ, "LC_ALL": "C", "LSAN_OPTIONS": options}
        if fake:
            name, _, value = fake.partition("=")
            env |= {"LD_PRELOAD": self.fake, "ASAN_OPTIONS": "verify_asan_link_order=0", name: value}
        return env

    def run(self, *args: str, program: str = "", fake: str = "") -> Answer:
        """Run to the end."""
        how: dict[str, Any] = {"capture_output": True, "text": True, "timeout": LIMIT}
        done = subprocess.run([program or self.program, *args], env=self.environment(fake), **how)
        return answered(done.returncode, done.stdout, done.stderr)

    def client(self, port: int, *args: str, program: str = "", fake: str = "") -> Answer:
        """A client with JSON output against 127.0.0.1; a server between two tests is waited for."""
        end = time.monotonic() + LIMIT
        while True:
            got = self.run("-c", "127.0.0.1", "-p", str(port), "-J", *args, program=program, fake=fake)
            early = got.rc == 1 and any(words in got.words for words in BETWEEN)
            if not early or time.monotonic() > end:
                return got
            time.sleep(0.05)

    @contextmanager
    def server(self, *args: str, program: str = "", fake: str = "") -> Iterator[Server]:
        """A server that is ended with the block, or with its only test (-1)."""
        found = Server(next(PORTS))
        argv = [program or self.program, "-s", "-p", str(found.port), *args]
        pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        child = subprocess.Popen(argv, env=self.environment(fake), **pipes)
        try:
            wait_listening(found.port, child)
            yield found
        finally:
            if "-1" not in args:
                child.terminate()
            try:
                out, err = child.communicate(timeout=LIMIT)
            except subprocess.TimeoutExpired:
                child.kill()
                out, err = child.communicate()
            found.answer = answered(child.returncode, out, err)
        assert "Sanitizer" not in err and "runtime error" not in err, err


def answered(rc: int, out: str, err: str) -> Answer:
    """Outputs as an Answer."""
    return Answer(rc, out, err, json.loads(out) if out.startswith("{") else {})


def wait_listening(port: int, child: subprocess.Popen[str]) -> None:
    """Wait until the port is listened on, without connecting: the server would take that for a client."""
    end = time.monotonic() + LIMIT
    wanted = f":{port:04X} "
    while time.monotonic() < end and child.poll() is None:
        tables = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
        if any(wanted in line and " 0A " in line for line in tables.splitlines()):
            return
        time.sleep(0.02)
    raise AssertionError(f"no server: {child.poll()}")


@contextmanager
def relay(target: int, change: Callable[[int, bytes], bytes]) -> Iterator[tuple[int, list[bytearray]]]:
    """A TCP relay: its port, and the bytes of each connection towards the server.

    `change` gets the number of the connection (0: control) and each piece that goes to the server.
    """
    seen: list[bytearray] = []
    threads: list[threading.Thread] = []

    def pump(source: socket.socket, sink: socket.socket, number: int | None) -> None:
        try:
            while data := source.recv(65536):
                if number is not None:
                    data = change(number, data)
                    seen[number] += data
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            sink.close()

    def serve(listener: socket.socket) -> None:
        try:
            while True:
                near = listener.accept()[0]
                far = socket.create_connection(("127.0.0.1", target))
                seen.append(bytearray())
                for ends in ((near, far, len(seen) - 1), (far, near, None)):
                    threads.append(threading.Thread(target=pump, args=ends, daemon=True))
                    threads[-1].start()
        except OSError:
            return

    with socket.create_server(("127.0.0.1", 0)) as listener:
        threading.Thread(target=serve, args=(listener,), daemon=True).start()
        yield int(listener.getsockname()[1]), seen
        listener.shutdown(socket.SHUT_RDWR)
    for thread in threads:
        thread.join(LIMIT)


@contextmanager
def hand_made(port: int, tls: object, **more: object) -> Iterator[socket.socket]:
    """The control connection of a client of our own, its parameters sent."""
    with accepted(port) as control:
        text = json.dumps({"tcp": True, "time": 5, "parallel": 1, "len": 4096, "tls": tls, **more}).encode()
        control.sendall(struct.pack(">I", len(text)) + text)
        yield control


def accepted(port: int) -> socket.socket:
    """A control connection that is served: a server between two tests resets those that come too early."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            control = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
            control.sendall(COOKIE)
            assert control.recv(1)[0] == PARAM_EXCHANGE
            return control
        except (OSError, IndexError, AssertionError):
            assert time.monotonic() < end, "the server does not serve"
            time.sleep(0.02)


def stream(port: int) -> ssl.SSLSocket:
    """A data connection of that client, after the handshake."""
    raw = socket.create_connection(("127.0.0.1", port), timeout=LIMIT)
    raw.sendall(COOKIE)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context.wrap_socket(raw)


def refusal(control: socket.socket) -> int:
    """The number in a SERVER_ERROR message; other states before it are passed over."""
    while (state := control.recv(1)) and state[0] != SERVER_ERROR:
        pass
    assert state, "the server closed without a word"
    return int(struct.unpack(">i", control.recv(4, socket.MSG_WAITALL))[0])


def records(data: bytes) -> list[tuple[int, int]]:
    """(type, length) of each TLS record behind the cookie; the last one may be cut off."""
    at, found = len(COOKIE), []
    while at + 5 <= len(data):
        kind, _, size = struct.unpack(">BHH", data[at : at + 5])
        found.append((kind, size))
        at += 5 + size
    return found


def make_certificates(folder: Path) -> None:
    """ca.pem signed server.pem (127.0.0.1); other.pem: a CA that signed nothing; named.pem: another name."""

    def openssl(*args: str) -> None:
        subprocess.run(["openssl", *args], cwd=folder, check=True, capture_output=True)

    key = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2"]
    for ca in ("ca", "other"):
        openssl("req", "-x509", *key, "-subj", f"/CN={ca}", "-keyout", f"{ca}-key.pem", "-out", f"{ca}.pem")
    for name, alt in (("server", "IP:127.0.0.1"), ("named", "DNS:server.test")):
        request = ["-subj", f"/CN={name}", "-addext", f"subjectAltName={alt}", "-keyout", f"{name}-key.pem"]
        openssl("req", *key, *request, "-out", f"{name}.csr")
        sign = ["-CA", "ca.pem", "-CAkey", "ca-key.pem", "-copy_extensions", "copy", "-days", "2"]
        openssl("x509", "-req", "-in", f"{name}.csr", *sign, "-out", f"{name}.pem")
        (folder / f"{name}-key.pem").chmod(0o600)
