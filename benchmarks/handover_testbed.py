"""What benchmarks/handover.py stands on: unmodified stunnels, a resident, and clients of it."""

from __future__ import annotations

import errno
import os
import re
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from offload.connect.client import Policy, Target, connect, helper
from offload.suite.traffic import certs, stunnel

CHECKS = Path(__file__).parents[1] / "build/ktls-handoff.d"
FAKE, CLOCK = CHECKS / "fake_ktls.so", CHECKS / "clock"
GREETING = b"!"
CIPHER = "ECDHE-RSA-AES256-GCM-SHA384"


def kernel_tls() -> bool:
    """Whether the kernel does TLS, as ktls-handoff asks: the list in /proc is of the first namespace only."""
    with socket.socket() as sock:
        try:
            sock.setsockopt(socket.IPPROTO_TCP, 31, b"tls")  # TCP_ULP
        except OSError as exc:
            return exc.errno == errno.ENOTCONN
    return True


STAND_IN = os.environ.get("LD_PRELOAD") == str(FAKE)
REAL = not STAND_IN and kernel_tls()
PLAIN = {key: value for key, value in os.environ.items() if key != "LD_PRELOAD"}


def under_stand_in() -> None:
    """Where the kernel has no TLS, begin again under the checks' stand-in: clients ask the socket, too."""
    if not REAL and not STAND_IN:
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, "LD_PRELOAD": str(FAKE)})


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def plain(act: Callable[[socket.socket], None]) -> Iterator[int]:
    """A TCP server whose connections `act` has, each in a thread; its port."""
    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        with attended(listener, act):
            yield int(listener.getsockname()[1])


@contextmanager
def attended(listener: socket.socket, act: Callable[[socket.socket], None]) -> Iterator[None]:
    """Let `act` have each connection of a listening socket, in a thread of its own, until the block ends."""

    def attend(conn: socket.socket) -> None:
        with suppress(OSError), conn:
            act(conn)

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=attend, args=(listener.accept()[0],), daemon=True).start()

    threading.Thread(target=serve, daemon=True).start()
    yield
    listener.shutdown(socket.SHUT_RDWR)


def greet(conn: socket.socket) -> None:
    """Greet, then wait for the end."""
    conn.sendall(GREETING)
    conn.recv(1)


def echo(conn: socket.socket) -> None:
    """Send back what comes."""
    while data := conn.recv(65536):
        conn.sendall(data)


@contextmanager
def process(argv: Sequence[str], **how: object) -> Iterator[subprocess.Popen[bytes]]:
    """A program until the block ends."""
    child = subprocess.Popen(argv, **how)  # type: ignore[call-overload]
    try:
        yield child
    finally:
        child.terminate()
        child.wait(20)


def until(done: Callable[[], bool]) -> None:
    """Wait for what has to become true soon."""
    end = time.monotonic() + 60
    while not done():
        assert time.monotonic() < end, "it does not come up"
        time.sleep(0.02)


def listens(port: int) -> bool:
    """Whether a port is served, without connecting to it."""
    return f"0100007F:{port:04X} 00000000:0000 0A" in Path("/proc/net/tcp").read_text()


def processor(child: subprocess.Popen[bytes]) -> float:
    """Milliseconds of processor time that a process has used, threads that ended included."""
    return time.clock_gettime((~child.pid << 3) | 2) * 1000  # CPUCLOCK_SCHED: linux/posix-timers_types.h


class Testbed:
    """Stunnel servers (`greets`, `echoes`), stunnel clients (`full`, `resumed`), a resident, a C client."""

    def __init__(self, undo: ExitStack) -> None:
        self.folder = Path(undo.enter_context(tempfile.TemporaryDirectory()))
        made = certs.make(["127.0.0.1"])
        names = [self.folder / name for name in ("ca.pem", "cert.pem", "key.pem")]
        for path, text in zip(names, (made.ca, made.cert, made.key), strict=True):
            path.write_bytes(text)
            path.chmod(0o600)
        self.at, self.ca = certs.Placed(str(self.folder), *map(str, names)), str(names[0])
        self._undo = undo
        self._servers()
        self.full, self.by_full = self._client("full", resume=False)
        self.resumed, self.by_resumed = self._client("resumed", resume=True)
        self._resident()
        until(lambda: all(map(listens, (self.greets, self.echoes, self.full, self.resumed))))
        self._clock()

    def _stunnel(self, name: str, services: Sequence[stunnel.Service]) -> subprocess.Popen[bytes]:
        """A stunnel with these services, until the testbed is taken away."""
        conf = self.folder / f"{name}.conf"
        conf.write_text(stunnel.config(services, self.at))
        return self._undo.enter_context(
            process(["stunnel4", str(conf)], stderr=subprocess.DEVNULL, env=PLAIN)
        )

    def _servers(self) -> None:
        """What greets and what echoes, each behind stunnel's defaults."""
        self.greets, self.echoes = free_port(), free_port()
        ends = {
            port: self._undo.enter_context(plain(act))
            for port, act in ((self.greets, greet), (self.echoes, echo))
        }
        self._stunnel(
            "servers",
            [
                stunnel.Service(f"s{port}", f"127.0.0.1:{port}", f"127.0.0.1:{to}")
                for port, to in ends.items()
            ],
        )

    def _client(self, name: str, *, resume: bool) -> tuple[int, subprocess.Popen[bytes]]:
        """A running stunnel in front of what greets: its port and its process."""
        port = free_port()
        service = stunnel.Service(
            name,
            f"127.0.0.1:{port}",
            f"127.0.0.1:{self.greets}",
            client=True,
            version="1.2",
            ciphers=CIPHER,
            resume=resume,
        )
        return port, self._stunnel(name, [service])

    def _resident(self) -> None:
        """A resident at `path`; keys that the stand-in sees are written to `keys`."""
        self.keys = self.folder / "keys"
        self.path, self.resident = self.serving("resident", FAKE_KTLS_KEYS=str(self.keys))

    def serving(self, name: str, **fake: str) -> tuple[str, subprocess.Popen[bytes]]:
        """A resident whose kernel, where it is the stand-in, is like this: its socket and its process."""
        path = str(self.folder / name)
        env = {**os.environ, **({} if REAL else fake)}
        child = self._undo.enter_context(process([helper(), "serve", path, "--ca", self.ca], env=env))
        until(lambda: Path(path).exists())
        time.sleep(0.2)
        return path, child

    def _clock(self) -> None:
        """The C client, which waits for what to time."""
        policy = self.folder / "policy.conf"
        policy.write_text(f"CAfile = {self.ca}\nverifyChain = yes\n")
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self._timer = self._undo.enter_context(process([str(CLOCK), self.path, str(policy)], **pipes))

    def timed(self, how: str, port: int) -> tuple[float, float]:
        """Milliseconds of the C client to its socket and to the first byte; how: ktls or tcp."""
        assert self._timer.stdin and self._timer.stdout
        self._timer.stdin.write(f"{how} {port}\n".encode())
        self._timer.stdin.flush()
        answer = self._timer.stdout.readline()
        assert answer, "the C client failed"
        socket_at, byte_at = (float(word) / 1000 for word in answer.split())
        return socket_at, byte_at

    def ask(self, port: int) -> socket.socket:
        """A socket of the resident, as the Python client gets it."""
        return connect(Target("127.0.0.1", port), Policy(ca=self.ca), via=self.path, fallback=False).sock

    def status(self, key: str) -> int:
        """A number of the resident's /proc/PID/status."""
        text = Path(f"/proc/{self.resident.pid}/status").read_text()
        found = re.search(rf"^{key}:\s+(\d+)", text, re.M)
        assert found is not None
        return int(found[1])

    def memory(self) -> str:
        """The resident's memory in KiB: all, its share, its own."""
        share = re.search(r"^Pss:\s+(\d+)", Path(f"/proc/{self.resident.pid}/smaps_rollup").read_text(), re.M)
        assert share is not None
        return f"RSS {self.status('VmRSS')}, PSS {share[1]}, its own {self.status('RssAnon')}"

    def files(self) -> int:
        """Descriptors that the resident has."""
        return len(list(Path(f"/proc/{self.resident.pid}/fd").iterdir()))
