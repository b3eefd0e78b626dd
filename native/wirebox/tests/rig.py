"""What the checks stand on: two veth pairs in a private namespace, hand-made frames, wirebox between."""

from __future__ import annotations

import json
import os
import select
import signal
import socket
import struct
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

IGNORE_OUTGOING, AUXDATA, SOL_PACKET, VLAN_VALID = 23, 8, 263, 0x10
MARK = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x88\xb5"  # a local experimental ethertype (IEEE 802)
FIN, SYN, PSH, ACK = 1, 2, 8, 16


def sh(command: str) -> str:
    """Run a shell command that has to succeed; its output."""
    done = subprocess.run(["sh", "-ec", command], capture_output=True, text=True)
    assert done.returncode == 0, f"{command}: {done.stderr}"
    return done.stdout


def make_links() -> None:
    """Far end a1 - a0 [wirebox] b0 - b1 far end; no protocol of the kernel speaks on them."""
    sh("sysctl -qw net.ipv6.conf.default.disable_ipv6=1 net.ipv6.conf.all.disable_ipv6=1")
    for side in "ab":
        sh(f"ip link add {side}0 type veth peer name {side}1")
        sh(f"ip link set {side}0 up && ip link set {side}1 up")
    links_up()
    sh("ip link add br0 type bridge stp_state 0 forward_delay 0 && ip link set br0 up")


def links_up() -> None:
    """Wait until the cables carry: a worker of the kernel notices a link, and until then frames are lost."""
    deadline = time.monotonic() + 120
    while any(row["operstate"] != "UP" for row in json.loads(sh("ip -j link show type veth"))):
        assert time.monotonic() < deadline, "no link"
        time.sleep(0.01)


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


@dataclass
class Tcp:
    """One direction of a made-up TCP connection: makes frames with right checksums. `isn`: of its SYN."""

    src: str = "192.0.2.1"
    dst: str = "192.0.2.2"
    sport: int = 40000
    dport: int = 4433
    isn: int = 1000
    vlan: int = 0

    def _pseudo(self, size: int) -> bytes:
        family = socket.AF_INET6 if ":" in self.src else socket.AF_INET
        ends = socket.inet_pton(family, self.src) + socket.inet_pton(family, self.dst)
        return ends + (struct.pack("!II", size, 6) if ":" in self.src else struct.pack("!BBH", 0, 6, size))

    def _ip(self, size: int) -> bytes:
        ends = self._pseudo(size)
        if ":" in self.src:
            return struct.pack("!IHBB", 6 << 28, size, 6, 64) + ends[:32]
        head = struct.pack("!BBHHHBBH", 0x45, 0, 20 + size, 7, 0x4000, 64, 6, 0) + ends[:8]
        return head[:10] + struct.pack("!H", checksum(head)) + head[12:]

    def frame(self, offset: int, data: bytes, flags: int = ACK) -> bytes:
        """A segment whose payload begins at this offset of the stream (-1: the SYN)."""
        seq = (self.isn + 1 + offset) & 0xFFFFFFFF
        tcp = struct.pack("!HHIIBBHHH", self.sport, self.dport, seq, 1, 5 << 4, flags, 5000, 0, 0) + data
        tcp = tcp[:16] + struct.pack("!H", checksum(self._pseudo(len(tcp)) + tcp)) + tcp[18:]
        kind = b"\x86\xdd" if ":" in self.src else b"\x08\0"
        tag = struct.pack("!HH", 0x8100, self.vlan) if self.vlan else b""
        return MARK[:12] + tag + kind + self._ip(len(tcp)) + tcp

    def syn(self, flags: int = SYN) -> bytes:
        return self.frame(-1, b"", flags)

    def cut(self, stream: bytes, size: int = 1000) -> list[bytes]:
        """The stream in segments of `size` bytes."""
        return [self.frame(at, stream[at : at + size]) for at in range(0, len(stream), size)]

    def right(self, frame: bytes) -> bool:
        """Say whether the TCP checksum of a frame of this connection is right."""
        tcp = frame[14 + (4 if self.vlan else 0) + (40 if ":" in self.src else 20) :]
        return checksum(self._pseudo(len(tcp)) + tcp) == 0


def record(kind: int, size: int) -> bytes:
    """A TLS record with `size` bytes behind its header."""
    return struct.pack("!BHH", kind, 0x0303, size) + bytes(i * 7 % 251 for i in range(size))


def session(*sizes: int, alert: bool = False) -> bytes:
    """What a TLS 1.2 client sends: ClientHello, key exchange, CCS, Finished (records 0 to 3), then data."""
    start = record(22, 200) + record(22, 70) + record(20, 1) + record(22, 40)
    return start + b"".join(record(23, size) for size in sizes) + (record(21, 26) if alert else b"")


class Far:
    """A far end: sends and receives whole frames."""

    def __init__(self, dev: str) -> None:
        self.sock = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3))
        self.sock.setsockopt(SOL_PACKET, IGNORE_OUTGOING, 1)
        self.sock.setsockopt(socket.SOL_SOCKET, 33, 16 << 20)  # SO_RCVBUFFORCE: it has to hold a burst
        self.sock.setsockopt(SOL_PACKET, AUXDATA, 1)
        self.sock.bind((dev, 3))
        self.marks = 0

    def send(self, frames: list[bytes]) -> None:
        for frame in frames:
            self.sock.send(frame)

    def mark(self) -> bytes:
        """Send a frame that no rule touches; return it."""
        self.marks += 1
        frame = MARK + struct.pack("!I", self.marks) + bytes(42)
        self.sock.send(frame)
        return frame

    def until(self, last: bytes, timeout: float = 120) -> list[bytes]:
        """Return the frames that come before this one."""
        found: list[bytes] = []
        while (frame := self.one(timeout)) != last:
            assert frame is not None, f"no mark after {len(found)} frames"
            found.append(frame)
        return found

    def one(self, timeout: float = 120) -> bytes | None:
        """Return the next frame, or None."""
        if not select.select([self.sock], [], [], timeout)[0]:
            return None
        frame, ancillary, _, _ = self.sock.recvmsg(70000, 100)
        for _, kind, data in ancillary:
            status, _, _, _, _, tci, tpid = struct.unpack("IIIHHHH", data)
            if kind == AUXDATA and status & VLAN_VALID:  # the kernel takes the outer tag off
                frame = frame[:12] + struct.pack("!HH", tpid, tci) + frame[12:]
        return frame


@dataclass
class Box:
    """wirebox, running: what it said so far."""

    child: subprocess.Popen[bytes]
    said: list[dict] = field(default_factory=list)
    _part: bytes = b""

    def read(self, want: str, timeout: float = 120) -> dict:
        """Wait for a line with this key; return it."""
        deadline = time.monotonic() + timeout
        seen = len(self.said)
        while not (found := [s for s in self.said[seen:] if want in s]):
            left = max(0.0, deadline - time.monotonic())
            assert self.child.stdout and select.select([self.child.stdout], [], [], left)[0], f"no {want}"
            data = os.read(self.child.stdout.fileno(), 65536)
            assert data, f"ended without {want}"
            self._take(data)
        return found[0]

    def listen(self) -> None:
        """Take in what it has said; it waits for us when its pipe is full."""
        while self.child.stdout and select.select([self.child.stdout], [], [], 0)[0]:
            self._take(os.read(self.child.stdout.fileno(), 65536))

    def _take(self, data: bytes) -> None:
        *lines, self._part = (self._part + data).split(b"\n")
        self.said += [json.loads(line) for line in lines]

    def tell(self, line: str) -> None:
        """Send a line to its standard input."""
        assert self.child.stdin
        self.child.stdin.write(line.encode() + b"\n")
        self.child.stdin.flush()

    def add(self, line: str) -> int:
        """Add a rule; its number."""
        self.tell(line)
        return self.read("added")["added"]

    def read_text(self) -> str:
        """The text of the rule that was added last."""
        return [line["text"] for line in self.said if "added" in line][-1]

    def end(self, how: int = signal.SIGTERM) -> dict:
        """End it; the summary."""
        if how:
            self.child.send_signal(how)
        rest, err = self.child.communicate(timeout=120)
        self._take(rest)
        assert (self.child.returncode, err) == (0, b""), (self.child.returncode, err)
        return self.said[-1]["summary"]

    def actions(self) -> list[dict]:
        """What it did so far, once it has ended."""
        return [line for line in self.said if "action" in line]


class Rig:
    """The program and both far ends."""

    def __init__(self, program: str) -> None:
        self.program = program
        self.a, self.b = Far("a1"), Far("b1")

    def start(self, *args: str, ports: tuple[str, str] = ("a0", "b0")) -> subprocess.Popen[bytes]:
        pipe = subprocess.PIPE
        return subprocess.Popen([self.program, *ports, *args], stdin=pipe, stdout=pipe, stderr=pipe)

    @contextmanager
    def started(self, ports: tuple[str, str]) -> Iterator[subprocess.Popen[bytes]]:
        """Start it; it does not outlive the block."""
        child = self.start(ports=ports)
        try:
            yield child
        finally:
            child.kill()
            child.communicate()

    def refused(self, *args: str, ports: tuple[str, str] = ("a0", "b0")) -> tuple[int, str]:
        """Exit code and standard error of a call that has to end by itself."""
        child = self.start(*args, ports=ports)
        out, err = child.communicate(timeout=120)
        assert b"ready" not in out
        return child.returncode, err.decode()

    @contextmanager
    def box(self, *rules: str, args: tuple[str, ...] = ()) -> Iterator[Box]:
        """Run wirebox with these rules; it is killed if the check did not end it."""
        self.drain()
        box = Box(self.start(*args))
        try:
            box.read("ready")
            for rule in rules:
                box.add(rule)
            yield box
        finally:
            if box.child.poll() is None:
                box.child.kill()
            box.child.communicate()

    def drain(self) -> None:
        """Forget what came before."""
        for far in (self.a, self.b):
            while far.one(0) is not None:
                pass

    def through(self, frames: list[bytes], back: bool = False) -> list[bytes]:
        """Send frames from a to b (or back); what arrives before a mark that follows them."""
        near, far = (self.b, self.a) if back else (self.a, self.b)
        near.send(frames)
        return far.until(near.mark())
