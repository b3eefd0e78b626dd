"""The oracle on sessions of the openssl programs: what Python's ssl cannot choose."""

from __future__ import annotations

import re
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from offload.suite.wire.ask import Ask
from offload.suite.wire.oracle import verify
from tests.unit.suite.wire.oracle.wire_make import Flow, certificate

OPENSSL = shutil.which("openssl")
pytestmark = pytest.mark.skipif(OPENSSL is None, reason="the openssl program is not installed")
TEXT = b"text of one line that the client sends\n"
PATIENCE = 120


class Relay:
    """Stands between client and server and notes what passes, as a Flow."""

    def __init__(self, port: int) -> None:
        self.flow, self.target = Flow(), port
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        self.lock = threading.Lock()
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        with self.listener, self.listener.accept()[0] as client:
            with socket.create_connection(("127.0.0.1", self.target)) as server:
                back = threading.Thread(target=self._carry, args=("server", server, client), daemon=True)
                back.start()
                self._carry("client", client, server)
                back.join(PATIENCE)

    def _carry(self, side: str, source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                with self.lock:
                    self.flow.send(side, data)
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass  # the program at the other end left first
        with self.lock:
            self.flow.fin(side)

    def wait(self, side: str, size: int) -> None:
        """Until a side has sent more than `size` bytes."""
        end = time.monotonic() + PATIENCE
        while self.flow.sent[side] <= size:
            assert time.monotonic() < end, "nothing passed"
            time.sleep(0.01)


@contextmanager
def server(folder: Path, *more: str) -> Iterator[int]:
    """`openssl s_server` for one connection; its port."""
    (folder / "pem").write_text(certificate())
    args = ["s_server", "-accept", "0", "-naccept", "1", "-cert", str(folder / "pem"), *more]
    pipe = subprocess.PIPE
    with subprocess.Popen([str(OPENSSL), *args], stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL) as child:
        patience = threading.Timer(4 * PATIENCE, child.kill)
        patience.start()
        try:
            assert child.stdout is not None
            port = next(m for line in child.stdout if (m := re.search(rb"ACCEPT .*:(\d+)", line)))
            yield int(port[1])
        finally:
            patience.cancel()
            child.kill()


def talk(folder: Path, lines: list[bytes], ours: list[str], theirs: list[str]) -> Any:
    """The document for a client that types lines, each after the one before has passed."""
    with ExitStack() as undo:
        relay = Relay(undo.enter_context(server(folder, *theirs)))
        args = ["s_client", "-connect", f"127.0.0.1:{relay.port}", "-keylogfile", str(folder / "keys"), *ours]
        child = undo.enter_context(
            subprocess.Popen(
                [str(OPENSSL), *args],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )
        )
        undo.callback(child.kill)
        patience = threading.Timer(4 * PATIENCE, child.kill)  # no read waits for ever
        patience.start()
        undo.callback(patience.cancel)
        assert child.stdin is not None and child.stdout is not None
        next(line for line in child.stdout if b"Verif" in line)
        for line in lines:
            before = relay.flow.sent["client"]
            child.stdin.write(line)
            child.stdin.flush()
            relay.wait("client", before)
        child.stdin.close()
        child.stdout.read()
        child.wait(PATIENCE)
        relay.thread.join(PATIENCE)
    return verify(Ask(relay.flow.write(folder / "c"), folder / "keys", TEXT * lines.count(TEXT)))


@pytest.mark.parametrize(
    ("name", "suite"),
    [
        ("TLS_AES_128_GCM_SHA256", "1301"),
        ("TLS_AES_256_GCM_SHA384", "1302"),
        ("TLS_CHACHA20_POLY1305_SHA256", "1303"),
    ],
)
def test_each_suite_of_tls_13(tmp_path: Path, name: str, suite: str) -> None:
    """TLS 1.3 of openssl is equal with each of its suites."""
    found = talk(tmp_path, [TEXT, TEXT], ["-tls1_3", "-ciphersuites", name], [])
    (one,) = found["connections"]
    assert found["outcome"] == "equal", one
    assert (one["version"], one["suite"]) == ("1.3", suite)
    assert one["from_client"]["payload_bytes"] == 2 * len(TEXT)


def test_a_hello_retry_request(tmp_path: Path) -> None:
    """A session in which the server asked for another group is equal."""
    found = talk(tmp_path, [TEXT], ["-tls1_3", "-groups", "X25519:P-384"], ["-groups", "P-384"])
    (one,) = found["connections"]
    assert found["outcome"] == "equal", one
    assert one["from_client"]["payload_bytes"] == len(TEXT)


@pytest.mark.parametrize(("key", "epochs"), [(b"k\n", {2}), (b"K\n", {2, 3})])
def test_key_updates(tmp_path: Path, key: bytes, epochs: set[int]) -> None:
    """openssl's KeyUpdate, asked for or not, is followed in both directions."""
    found = talk(tmp_path, [TEXT, key, TEXT], ["-tls1_3"], [])
    (one,) = found["connections"]
    assert found["outcome"] == "equal", one
    # asked for one as well, the server answers before its next data: it may close first
    assert one["from_client"]["epochs"] == 3 and one["from_server"]["epochs"] in epochs
    assert one["from_client"]["payload_bytes"] == 2 * len(TEXT)
