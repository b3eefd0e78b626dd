"""What the checks stand on: interfaces in a network namespace of their own, the program, a pcapng reader."""

from __future__ import annotations

import json
import os
import socket
import struct
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

MAC_A, MAC_B, STRANGER = b"\x02\0\0\0\0\x01", b"\x02\0\0\0\0\x02", b"\x02\0\0\0\0\x99"
PIECE = 500  # frames
PROBE = b"\x88\xb5"  # EtherType for experiments (IEEE 802): the kernel sends none of its own


def ip(*words: str) -> str:
    """Run ip(8) and return what it said."""
    return subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout


@contextmanager
def pair() -> Iterator[None]:
    """The cable: va and vb, up, with fixed addresses and no IPv6 chatter."""
    words = f"link add va address {MAC_A.hex(':')} type veth peer vb address {MAC_B.hex(':')}"
    ip(*words.split())
    for dev in ("va", "vb"):
        Path(f"/proc/sys/net/ipv6/conf/{dev}/disable_ipv6").write_text("1")
        ip("link", "set", dev, "up")
    carries()
    try:
        yield
    finally:
        subprocess.run(["ip", "link", "del", "va"], capture_output=True)


def carries() -> None:
    """Wait until the cable carries: a worker of the kernel has to notice it; until then frames are lost."""
    deadline = time.monotonic() + 120
    while any(row["operstate"] != "UP" for row in json.loads(ip("-j", "link", "show", "type", "veth"))):
        assert time.monotonic() < deadline, "no link"
        time.sleep(0.01)


def frame(number: int, size: int = 60, to: bytes = MAC_B, between: bytes = b"") -> bytes:
    """A frame that carries its number; `between` are VLAN tags."""
    body = to + MAC_A + between + PROBE + struct.pack("!I", number)
    return body.ljust(size, b"\xa5")


def sender(dev: str) -> socket.socket:
    """A socket that sends whole frames out of an interface."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
    sock.bind((dev, 0))
    return sock


def send(dev: str, *frames: bytes) -> None:
    """Send frames out of one end of the cable, and return when the kernel has shown them to the other end.

    A busy kernel does that later. Each processor has a queue of its own for it, of netdev_max_backlog (1,000)
    frames: so they are sent by one processor, and the last of each 500 is waited for.
    """
    with sender(dev) as sock, witness({"va": "vb", "vb": "va"}[dev]) as seen, one_processor():
        for first in range(0, len(frames), PIECE):
            piece = frames[first : first + PIECE]
            for data in piece:
                sock.send(data)
            while not seen.recv(65536).endswith(piece[-1][piece[-1].index(PROBE) :]):  # it lost its outer tag
                pass


@contextmanager
def one_processor() -> Iterator[None]:
    """Stay on one processor."""
    all_of_them = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(all_of_them)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, all_of_them)


def witness(dev: str) -> socket.socket:
    """A socket that has what comes in on an interface."""
    sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))  # ETH_P_ALL
    sock.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
    sock.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE: it has to hold a piece
    sock.bind((dev, 3))
    sock.settimeout(60)
    return sock


@dataclass
class Caught:
    """One frame of a capture: bytes, original length, nanoseconds since 1970."""

    data: bytes
    length: int
    when: int


@dataclass
class Capture:
    """A pcapng file, read strictly."""

    link: int = -1
    snaplen: int = -1
    frames: list[Caught] = field(default_factory=list)
    statistics: dict[int, int] = field(default_factory=dict)

    def numbers(self) -> list[int]:
        """The numbers of the frames that `frame` made."""
        return [struct.unpack_from("!I", f.data, 14)[0] for f in self.frames if f.data[12:14] == PROBE]


def options(body: bytes) -> dict[int, bytes]:
    """The options of a block; their end has to be the end of the block."""
    found, at = {}, 0
    while at < len(body):
        code, size = struct.unpack_from("<HH", body, at)
        found[code] = body[at + 4 : at + 4 + size]
        at += 4 + (size + 3 & ~3)
    assert at == len(body) and found.pop(0) == b"", "options do not end where the block does"
    return found


def read(path: Path) -> Capture:
    """Read a capture; AssertionError for anything that is not exactly as pcapng wants it."""
    data, at, out = path.read_bytes(), 0, Capture()
    while at < len(data):
        kind, total = struct.unpack_from("<II", data, at)
        body = data[at + 8 : at + total - 4]
        assert total % 4 == 0 and struct.unpack_from("<I", data, at + total - 4) == (total,), hex(at)
        if kind == 0x0A0D0D0A:
            assert at == 0 and body == struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
        elif kind == 1:
            out.link, _, out.snaplen = struct.unpack_from("<HHI", body)
            assert options(body[8:])[9] == b"\x09"
        elif kind == 6:
            interface, high, low, captured, length = struct.unpack_from("<IIIII", body)
            assert interface == 0 and len(body) == 20 + (captured + 3 & ~3) and captured <= length
            out.frames.append(Caught(body[20 : 20 + captured], length, high << 32 | low))
        else:
            assert kind == 5 and at + total == len(data)
            out.statistics = {k: int.from_bytes(v, "little") for k, v in options(body[12:]).items()}
        at += total
    return out


class Running:
    """wiretap while it captures."""

    def __init__(self, argv: list[str]) -> None:
        self.child = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert self.child.stdout is not None
        first = self.child.stdout.readline()
        assert first == '{"ready":true}\n', (first, self.child.stderr.read() if self.child.stderr else "")

    def stop(self, signal: int = 0, timeout: float = 120) -> tuple[int, dict[str, int], str]:
        """End it by a signal, or by the end of its input: exit code, counts, standard error."""
        if signal:
            self.child.send_signal(signal)
        out, err = self.child.communicate(timeout=timeout) if not signal else self._after(timeout)
        return self.child.returncode, json.loads(out) if out else {}, err

    def _after(self, timeout: float) -> tuple[str, str]:
        """Wait with its input still open: the signal alone has to end it."""
        self.child.wait(timeout)
        return self.child.communicate()


@dataclass
class Rig:
    """The program, and a folder for captures."""

    program: str
    folder: Path

    def path(self) -> Path:
        """A name that no file has."""
        return Path(tempfile.mktemp(suffix=".pcapng", dir=self.folder))

    def run(self, *args: str | Path, before: tuple[str, ...] = ()) -> subprocess.CompletedProcess[str]:
        """Run to the end with empty input; `before` is a program that runs it."""
        argv = [*before, self.program, *map(str, args)]
        return subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120)

    def start(self, dev: str, path: Path, *args: str, before: tuple[str, ...] = ()) -> Running:
        """Start, and return when it captures."""
        return Running([*before, self.program, dev, str(path), *args])

    @contextmanager
    def capturing(self, dev: str, *args: str) -> Iterator[tuple[Capture, dict[str, int]]]:
        """Capture what the block does; after it the two values hold the capture and the counts."""
        path, capture, counts = self.path(), Capture(), dict[str, int]()
        running = self.start(dev, path, *args)
        try:
            yield capture, counts
            rc, said, err = running.stop()
            assert (rc, err) == (0, ""), (rc, err)
            counts.update(said)
            vars(capture).update(vars(read(path)))
            assert counts["frames"] == len(capture.frames) == capture.statistics[4] - capture.statistics[5]
            assert counts["bytes"] == sum(len(f.data) for f in capture.frames)
        finally:
            running.child.kill()
            running.child.communicate()
            path.unlink(missing_ok=True)
