"""What does a hand-over cost beside a running stunnel, and does anything leak in many of them?

usage: python benchmarks/handover.py [--pairs 100] [--count 10000] [--failures 1000]

Both arms connect through the same unmodified stunnel server to a program that greets, taking turns; measured
is from the first system call of the client to the socket (fd), and to the first byte of the greeting (byte).
Leaks are looked for in a resident that has handed over --count sockets: descriptors, threads, memory, and the
keys of the last ones. --failures: helpers and residents that fail in every way, at random; each stream has to
arrive by stunnel, byte by byte. Where the kernel has no TLS, a library of ktls-handoff's checks stands in for
it (`make -C native/ktls-handoff check` builds it): all else is real. Exit 0 if every bar is met, 1 if not.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from offload import connect_client  # noqa: E402
from offload.connect_client import Policy, Target, connect, helper  # noqa: E402
from offload.traffic import certs, stunnel  # noqa: E402

ROOT = Path(__file__).parents[1]
FAKE = ROOT / "build/ktls-handoff.d/fake_ktls.so"
REAL = "tls" in Path("/proc/sys/net/ipv4/tcp_available_ulp").read_text().split()
SOL_TLS, TLS_TX, TLS_RX, GCM256 = 282, 1, 2, 56  # linux/tls.h; size of tls12_crypto_info_aes_gcm_256
RATIO, MEMORY_KIB, GROWN_KIB = 1.2, 8192, 256  # bars: of a stunnel's set-up; in all; after the first tenth
GREETING = b"!"
LAST = 20  # so many of the last keys are looked for
GOOD = b'{"ok":true,"via":"ktls","version":"1.2","cipher":"x","tx":"sw","rx":"sw"}\n'


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@contextmanager
def plain(act: Callable[[socket.socket], None]) -> Iterator[int]:
    """A TCP server whose connections `act` has, each in a thread; its port."""

    def attend(conn: socket.socket) -> None:
        with suppress(OSError), conn:
            act(conn)

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=attend, args=(listener.accept()[0],), daemon=True).start()

    with socket.create_server(("127.0.0.1", 0), backlog=128) as listener:
        threading.Thread(target=serve, daemon=True).start()
        yield int(listener.getsockname()[1])
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


class Bed:
    """Certificates, two unmodified stunnel servers (greeting, echo), a stunnel client and a resident."""

    def __init__(self, undo: ExitStack) -> None:
        self.folder = Path(undo.enter_context(tempfile.TemporaryDirectory()))
        made = certs.make(["127.0.0.1"])
        names = [self.folder / name for name in ("ca.pem", "cert.pem", "key.pem")]
        for path, text in zip(names, (made.ca, made.cert, made.key), strict=True):
            path.write_bytes(text)
            path.chmod(0o600)
        self.at = certs.Placed(str(self.folder), *map(str, names))
        self.ca, self.greets, self.echoes, self.client = self.at.ca, free_port(), free_port(), free_port()
        ends = {
            port: undo.enter_context(plain(act)) for port, act in ((self.greets, greet), (self.echoes, echo))
        }
        services = [stunnel.Service(f"s{p}", f"127.0.0.1:{p}", f"127.0.0.1:{to}") for p, to in ends.items()]
        here = f"127.0.0.1:{self.client}"
        client = stunnel.Service("client", here, f"127.0.0.1:{self.greets}", client=True, version="1.2",
                                 ciphers="ECDHE-RSA-AES256-GCM-SHA384", resume=False)  # fmt: skip
        for name, group in (("servers", services), ("client", [client])):
            conf = self.folder / f"{name}.conf"
            conf.write_text(stunnel.config(group, self.at))
            undo.enter_context(process(["stunnel4", str(conf)], stderr=subprocess.DEVNULL))
        self.path, self.keys = str(self.folder / "resident"), self.folder / "keys"
        env = (
            {**os.environ}
            if REAL
            else {**os.environ, "LD_PRELOAD": str(FAKE), "FAKE_KTLS_KEYS": str(self.keys)}
        )
        argv = [helper(), "serve", self.path, "--ca", self.ca]
        self.resident = undo.enter_context(process(argv, env=env))
        until(lambda: all(map(listens, (self.greets, self.echoes, self.client))) and Path(self.path).exists())
        time.sleep(0.2)

    def ask(self, port: int) -> socket.socket:
        """A socket of the resident, as the client library gets it."""
        got = connect(Target("127.0.0.1", port), Policy(ca=self.ca), via=self.path, fallback=False)
        return got.sock

    def status(self, key: str) -> int:
        """A number of the resident's /proc/PID/status."""
        text = Path(f"/proc/{self.resident.pid}/status").read_text()
        found = re.search(rf"^{key}:\s+(\d+)", text, re.M)
        assert found is not None
        return int(found[1])

    def files(self) -> int:
        """Descriptors that the resident has."""
        return len(list(Path(f"/proc/{self.resident.pid}/fd").iterdir()))


def timed(start: Callable[[], socket.socket]) -> tuple[float, float]:
    """Milliseconds to the socket, and to the first byte on it (by the fake kernel: of a record)."""
    began = time.perf_counter()
    with start() as sock:
        first = time.perf_counter()
        assert sock.recv(1), "no greeting"
        return (first - began) * 1000, (time.perf_counter() - began) * 1000


def latency(bed: Bed, pairs: int) -> bool:
    """Both arms take turns; the bar is on the medians."""
    figures: dict[str, list[float]] = {"resident fd": [], "resident byte": [], "stunnel byte": []}
    for number in range(pairs + 3):
        fd, byte = timed(lambda: bed.ask(bed.greets))
        _, other = timed(lambda: socket.create_connection(("127.0.0.1", bed.client)))
        for name, value in zip(figures, (fd, byte, other), strict=True):
            if number >= 3:  # the first ones find cold caches
                figures[name].append(value)
    for name, values in figures.items():
        low, middle, high = min(values), statistics.median(values), max(values)
        print(f"{name:16} ms  min {low:7.2f}  median {middle:7.2f}  max {high:7.2f}  of {len(values)}")
    middle = {name: statistics.median(values) for name, values in figures.items()}
    ratio = middle["resident fd"] / middle["stunnel byte"]
    print(f"to the first byte: {middle['resident byte'] / middle['stunnel byte']:.2f} times stunnel's")
    return line("hand-over beside a stunnel's set-up", f"{ratio:.2f} times", ratio <= RATIO)


def line(what: str, figure: str, held: bool) -> bool:
    """Print one figure beside its bar."""
    print(f"{what:44} {figure:24} {'held' if held else 'MISSED'}", flush=True)
    return held


def leaks(bed: Bed, count: int) -> bool:
    """So many hand-overs; then descriptors, threads, memory and keys of the resident."""
    bed.ask(bed.greets).close()
    time.sleep(0.5)
    before, keys, early = bed.files(), [], 0
    for number in range(count):
        with bed.ask(bed.greets) as sock:
            if REAL and number >= count - LAST:
                keys += [sock.getsockopt(SOL_TLS, way, GCM256)[12:44] for way in (TLS_TX, TLS_RX)]
        if number == count // 10:
            early = bed.status("VmRSS")
    time.sleep(1)
    if not REAL:
        text = bed.keys.read_bytes()[-2 * LAST * GCM256 :]
        keys = [text[at + 12 : at + 44] for at in range(0, len(text), GCM256)]
    grown, left = bed.status("VmRSS") - early, found(bed.resident.pid, keys)
    assert len(keys) == 2 * min(LAST, count) and all(len(set(key)) > 8 for key in keys), "no keys to look for"
    return all([
        line(f"{count} hand-overs: descriptors more", str(bed.files() - before), bed.files() == before),
        line("threads of the resident", str(bed.status("Threads")), bed.status("Threads") == 1),
        line("memory grown after the first tenth, KiB", str(grown), grown <= GROWN_KIB),
        line("memory at most, KiB", str(bed.status("VmHWM")), bed.status("VmHWM") < MEMORY_KIB),
        line(f"of {len(keys)} keys found in its memory", str(left), left == 0),
    ])  # fmt: skip


def found(pid: int, secrets: Sequence[bytes]) -> int:
    """How many of these are anywhere in a process's memory."""
    seen: set[bytes] = set()
    with Path(f"/proc/{pid}/mem").open("rb", 0) as memory:
        for row in Path(f"/proc/{pid}/maps").read_text().splitlines():
            begin, end = (int(n, 16) for n in row.split()[0].split("-"))
            if row.split()[1][0] == "r" and "[v" not in row:
                memory.seek(begin)
                data = memory.read(end - begin)
                seen |= {secret for secret in secrets if secret in data}
    return len(seen)


def lie(conn: socket.socket) -> None:
    """One of the ways in which a resident can fail."""
    conn.recv(4096)
    null = os.open(os.devnull, os.O_RDONLY)
    ways: list[tuple[bytes, int]] = [
        (b"", 0), (GOOD, 0), (GOOD, 1), (GOOD, 2), (GOOD, 100), (GOOD[:30], 1), (b"x" * 9000, 1),
        (b"[1]\n", 0),
        (random.randbytes(200) + b"\n", 1), (b'{"ok":false,"message":"no","exit":2}\n', 0),
        (b'{"ok":false,"message":"no","exit":4}\n', 1),
    ]  # fmt: skip
    data, fds = random.choice(ways)
    if data:
        socket.send_fds(conn, [data], [null] * fds)
    elif random.random() < 0.2:
        time.sleep(1)  # mute
    os.close(null)


@contextmanager
def liar(path: str) -> Iterator[None]:
    """A resident that always fails."""

    def attend(conn: socket.socket) -> None:
        with suppress(OSError), conn:
            lie(conn)

    def serve() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=attend, args=(listener.accept()[0],), daemon=True).start()

    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listener:
        listener.bind(path)
        listener.listen(64)
        threading.Thread(target=serve, daemon=True).start()
        yield
        listener.shutdown(socket.SHUT_RDWR)


def failures(bed: Bed, count: int) -> bool:
    """So many streams whose hand-over fails; each has to arrive, with one warning."""
    connect_client.SPARE = -29.5  # with ten seconds for each of three steps: half a second for a mute one
    path, arrived, why = str(bed.folder / "liar"), 0, Counter[str]()
    ways: list[dict[str, str]] = [{"via": path}] * 8 + [{"via": "/nowhere"}, {"program": "/nowhere"}]
    ways += [{"program": "/bin/false"}, {"program": "/bin/cat"}]
    with liar(path):
        for _ in range(count):
            warnings: list[str] = []
            payload = random.randbytes(random.randint(1, 1 << 17))
            how = random.choice(ways)
            got = connect(Target("127.0.0.1", bed.echoes), Policy(ca=bed.ca), warn=warnings.append, **how)
            arrived += returned(got.sock, payload) and len(warnings) == 1 and got.line["via"] == "stunnel"
            assert got.process is not None
            got.process.wait(20)
            why[re.sub(r".*: |\).*", "", warnings[0].split("no kTLS (")[1].split(");")[0])] += 1
    print("reasons: " + ", ".join(f"{text} {n}" for text, n in why.most_common()))
    return line(f"of {count} failures, streams that arrived", str(arrived), arrived == count)


def returned(sock: socket.socket, payload: bytes) -> bool:
    """Whether everything that is sent comes back as it was."""
    sock.settimeout(60)
    with sock:
        writer = threading.Thread(target=sock.sendall, args=(payload,))
        writer.start()
        got = b""
        while len(got) < len(payload) and (part := sock.recv(1 << 17)):
            got += part
        writer.join(60)
    return got == payload


def main() -> int:
    """Run what is asked for; 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name, default in (("pairs", 100), ("count", 10000), ("failures", 1000)):
        parser.add_argument(f"--{name}", type=int, default=default)
    args = parser.parse_args()
    print(f"kernel {os.uname().release}: {'its own TLS' if REAL else 'TLS of the kernel by a stand-in'}")
    with ExitStack() as undo:
        bed = Bed(undo)
        asked = ((latency, args.pairs), (leaks, args.count), (failures, args.failures))
        held = [act(bed, number) for act, number in asked if number]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
