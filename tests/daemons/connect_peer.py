"""A TLS server that sends back what it gets, and residents and helpers that break their word."""

from __future__ import annotations

import errno
import json
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from offload.connect.client import Target
from offload.suite.traffic.certs import Certs, make

STUNNEL = next((p for p in ("/usr/bin/stunnel4", "/usr/bin/stunnel") if os.access(p, os.X_OK)), "")
needs_stunnel = pytest.mark.skipif(not STUNNEL, reason="no stunnel here")
PAYLOAD = bytes(range(256)) * 400  # 100 KiB
GOOD = json.dumps(
    {"ok": True, "via": "ktls", "version": "1.2", "cipher": "x", "tx": "sw", "rx": "sw"}
).encode()


class Server:
    """An echo over TLS 1.2 on loopback; `port` is where."""

    def __init__(self, folder: Path, certs: Certs) -> None:
        self.ca, pair = folder / "ca.pem", folder / "pair.pem"
        self.ca.write_bytes(certs.ca)
        pair.write_bytes(certs.key + certs.cert)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(pair)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def target(self) -> Target:
        """Where it is."""
        return Target("127.0.0.1", self.port)

    def _serve(self) -> None:
        while True:
            try:
                conn = self._listener.accept()[0]
            except OSError as exc:
                if exc.errno != errno.EMFILE:  # a test takes this process's descriptors away
                    return
                time.sleep(0.02)
            else:
                threading.Thread(target=self._echo, args=(conn,), daemon=True).start()

    def _echo(self, conn: socket.socket) -> None:
        with suppress(OSError), self._context.wrap_socket(conn, server_side=True) as tls:
            while data := tls.recv(16384):
                tls.sendall(data)

    def close(self) -> None:
        """No more connections."""
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()


@contextmanager
def serving(folder: Path) -> Iterator[Server]:
    """A server, and its CA in `ca`."""
    server = Server(folder, make(["127.0.0.1"]))
    try:
        yield server
    finally:
        server.close()


def exchanged(sock: socket.socket) -> bytes:
    """Send the payload and return what comes back; the socket is closed."""
    sock.settimeout(120)
    with sock:
        writer = threading.Thread(target=sock.sendall, args=(PAYLOAD,))
        writer.start()
        got = b""
        while len(got) < len(PAYLOAD) and (part := sock.recv(65536)):
            got += part
        writer.join(120)
    return got


@contextmanager
def resident(folder: Path, act: Callable[[socket.socket], object]) -> Iterator[str]:
    """A unix socket whose first client gets what `act` does, after its request was read; the path."""
    path = str(folder / "resident")
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen()

        def serve() -> None:
            with suppress(OSError), listener.accept()[0] as conn:
                conn.recv(4096)
                act(conn)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield path
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(120)
    Path(path).unlink()


def says(data: bytes, count: int = 0) -> Callable[[socket.socket], None]:
    """An answer of these bytes with so many descriptors of nothing."""

    def act(conn: socket.socket) -> None:
        with Path(os.devnull).open() as null:
            socket.send_fds(conn, [data], [null.fileno()] * count)

    return act


def gives(make_socket: Callable[[], socket.socket]) -> Callable[[socket.socket], None]:
    """A good answer with this socket."""

    def act(conn: socket.socket) -> None:
        with make_socket() as sock:
            socket.send_fds(conn, [GOOD + b"\n"], [sock.fileno()])

    return act
