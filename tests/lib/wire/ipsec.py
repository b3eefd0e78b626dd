"""ESP between DUT and peer: what it leaves on the wire, a forged reset, and who can answer in its name."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

from offload.cmd import settles
from offload.host.base import Bench, Host, Side
from offload.suite.traffic import ipsec
from offload.suite.traffic.drive import PYTHON
from tests.lib.life.life import Pair
from tests.lib.rig.rig import Rig
from tests.lib.wire.captures import HOST
from tests.lib.wire.frames import folded
from tests.lib.wire.wire import Segment, share

TCP, ESP = 6, 50  # IANA protocol numbers
RST = 4
# reads frames in hexadecimal, a line each, and puts them on an interface as they are
INJECT = (
    "import socket,sys\n"
    "s=socket.socket(socket.AF_PACKET,socket.SOCK_RAW)\n"
    "s.bind((sys.argv[1],0))\n"
    "for line in sys.stdin: s.send(bytes.fromhex(line))\n"
)
# listens, says so, and takes all of one connection: a program of somebody else on the peer's host
TAKER = (
    "import socket,sys,hashlib,os\n"
    "s=socket.create_server((sys.argv[1],int(sys.argv[2])))\n"
    "s.settimeout(180)\n"
    "print(os.getuid(),flush=True)\n"
    "c,_=s.accept()\n"
    "h=hashlib.sha256()\n"
    "while (d:=c.recv(65536)): h.update(d)\n"
    "print(h.hexdigest())\n"
)
NOBODY = "65534"


@dataclass(frozen=True)
class Packet:
    """An IPv4 packet that was captured: addresses, protocol, and what is behind the IP header."""

    source: str
    target: str
    protocol: int
    frame: bytes = field(repr=False)
    body: bytes = field(repr=False)


def packets(capture: bytes) -> Iterator[Packet]:
    """Yield the IPv4 packets of a pcapng file as wiretap writes it (little-endian)."""
    at = 0
    while at + 12 <= len(capture):
        kind, size = struct.unpack_from("<II", capture, at)
        if kind == 6:  # enhanced packet block
            frame = capture[at + 28 : at + 28 + struct.unpack_from("<I", capture, at + 20)[0]]
            ip = frame[14:]
            if frame[12:14] == b"\x08\0" and len(ip) >= 20:
                ends = (".".join(map(str, ip[n : n + 4])) for n in (12, 16))
                body = ip[(ip[0] & 15) * 4 : int.from_bytes(ip[2:4], "big")]
                yield Packet(*ends, ip[9], frame, body)
        at += size


class Seen:
    """What two taps have: on the wire, and at the DUT's host port."""

    def __init__(self) -> None:
        self.wire: list[Packet] = []
        self.host: list[Packet] = []

    def of(self, protocol: int) -> list[Packet]:
        """The packets of a protocol on the wire."""
        return [packet for packet in self.wire if packet.protocol == protocol]

    def spis(self) -> set[int]:
        """The numbers of the states whose packets were on the wire (RFC 4303 section 2.1)."""
        return {int.from_bytes(packet.body[:4], "big") for packet in self.of(ESP)}

    def clear(self, content: bytes) -> float:
        """How much of the content is on the wire as it is, 0 to 1."""
        return share(content, [Segment(0, 0, 0, packet.body) for packet in self.wire])


@contextmanager
def watching(rig: Rig) -> Iterator[Seen]:
    """Capture while the block runs; what was seen is there after it."""
    bench, seen = rig.bench, Seen()
    assert bench.wire is not None
    places = {"wire": (bench.wire, bench.wire_ports[0]), HOST: (bench.dut.host, bench.dut.dev)}
    with TemporaryDirectory(prefix="ktls-offload-") as name:
        with rig.captures.taking(places, Path(name), also={ESP}) as taken:
            yield seen
        files = taken.files()
        seen.wire += packets(files["wire"].read_bytes())
        seen.host += packets(files[HOST].read_bytes())


def between(bench: Bench, protocol: int, seen: Sequence[Packet]) -> list[Packet]:
    """The packets of a protocol between DUT and peer."""
    ends = {bench.dut.v4, bench.peer.v4}
    return [p for p in seen if p.protocol == protocol and {p.source, p.target} == ends]


@contextmanager
def esp_between(rig: Rig, cipher: str, *, card: bool = False) -> Iterator[ipsec.Esp]:
    """ESP between DUT and peer (`card`: the DUT's does it); IPsec refuses and loses nothing meanwhile."""
    dut, peer = rig.bench.dut, rig.bench.peer
    before = [ipsec.errors(side.host) for side in (dut, peer)]
    with ipsec.protected(dut, peer, cipher, card=card) as made:
        yield made
        for side, old in zip((dut, peer), before, strict=True):
            assert ipsec.errors(side.host) == old, f"IPsec refused or lost packets on {side.host.name}"


def quiet(rig: Rig, port: int) -> None:
    """Assert that soon neither end of a connection has anything to send: no data, no end of it.

    What is sent again after ESP was taken away would be on the wire as it is.
    """
    argv = ["ss", "-Htan", "state", "all", "exclude", "time-wait", f"( sport = :{port} or dport = :{port} )"]

    def silent() -> bool:
        rows = [row.split() for side in sides for row in side.host.run(argv).text.splitlines()]
        return all(state == "ESTAB" and waiting == "0" for state, _, waiting, *_ in rows)

    sides = (rig.bench.dut, rig.bench.peer)
    assert settles(silent, 60), f"port {port} still has something to send"


def spent(host: Host, before: dict[str, int]) -> dict[str, int]:
    """The counters of /proc/net/xfrm_stat that moved."""
    return {name: n - before[name] for name, n in ipsec.errors(host).items() if n != before[name]}


def reset(rig: Rig, pair: Pair, seen: Sequence[Packet], more: int = 0) -> bytes:
    """A reset in the peer's name that TCP must take (RFC 5961 section 3.2): exactly the next number.

    `more`: bytes that came from the peer since, which an attacker cannot count in ESP: the test passes them.
    """
    bench = rig.bench
    came = [p for p in between(bench, TCP, seen) if p.source == bench.peer.v4]
    came = [p for p in came if int.from_bytes(p.body[2:4], "big") == pair.port]
    last = came[-1]
    port, _, seq = struct.unpack("!HHI", last.body[:8])
    seq += len(last.body) - (last.body[12] >> 4) * 4 + more
    mac = last.frame[:12]  # the peer's to the DUT's
    return mac + b"\x08\0" + _ip(bench, _tcp(bench, port, pair.port, seq & 0xFFFFFFFF))


def _addresses(bench: Bench) -> bytes:
    return b"".join(bytes(map(int, side.v4.split("."))) for side in (bench.peer, bench.dut))


def _tcp(bench: Bench, source: int, target: int, seq: int) -> bytes:
    """A segment that is nothing but a reset (RFC 9293 section 3.1)."""
    bare = struct.pack("!HHIIBBHHH", source, target, seq, 0, 5 << 4, RST, 0, 0, 0)
    check = 0xFFFF - folded(bare, folded(_addresses(bench)) + TCP + len(bare))
    return bare[:16] + check.to_bytes(2, "big") + bare[18:]


def _ip(bench: Bench, body: bytes) -> bytes:
    """The IPv4 header and the segment (RFC 791 section 3.1)."""
    bare = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(body), 1, 0x4000, 64, TCP, 0) + _addresses(bench)
    return bare[:10] + (0xFFFF - folded(bare)).to_bytes(2, "big") + bare[12:] + body


def inject(bench: Bench, frame: bytes) -> None:
    """Put a frame on the wire, on its way to the DUT."""
    assert bench.wire is not None
    argv = ["python3", "-I", "-S", "-c", INJECT, bench.wire_ports[0]]
    bench.wire.run(argv, input=frame.hex().encode() + b"\n", timeout=60)


@dataclass(frozen=True)
class Taken:
    """What somebody else's program on the peer's host took: its user, and the SHA-256."""

    uid: str
    sha256: str


@contextmanager
def somebody(side: Side, port: int) -> Iterator[list[Taken]]:
    """Run a program of nobody's on a host that takes what comes to a port; what it took is there after."""
    got: list[Taken] = []
    argv = ["setpriv", f"--reuid={NOBODY}", "--clear-groups", *PYTHON, "-c", TAKER, side.v4, str(port)]
    process = side.host.start(argv)
    try:
        assert settles(lambda: bool(process.output()[0]), 60), process.output()[1].decode()[-300:]
        yield got
        uid, digest = process.wait(240).text.split()
        got.append(Taken(uid, digest))
    finally:
        process.kill(9)


def canary(name: str, size: int) -> bytes:
    """The payload that `Pair.sends` sends by this name."""
    return hashlib.shake_128(name.encode()).digest(size)
