"""pcap and pcapng: every form of the contract is read, damage ends the reading, the rest is refused."""

from __future__ import annotations

import os
import struct
from pathlib import Path

import pytest

from offload.errors import ConfigError
from offload.suite.wire import streams
from offload.suite.wire.capture import Reader
from offload.suite.wire.streams import Problem
from tests.unit.suite.wire.oracle.wire_make import ACK, CLIENT, SERVER, SYN, Flow, ethernet, pcap, tcp

FRAME = ethernet(tcp(CLIENT, SERVER, 5, SYN))
IP = tcp(CLIENT, SERVER, 5, SYN)
IP6 = tcp(("2001:db8::1", 40000), ("2001:db8::2", 443), 5, SYN)


def block(kind: int, body: bytes, order: str = "<") -> bytes:
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def section(order: str = "<") -> bytes:
    """A section header block."""
    return block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1), order)


def interface(link: int = 1, snap: int = 0, order: str = "<") -> bytes:
    """An interface description block."""
    return block(1, struct.pack(order + "HHI", link, 0, snap), order)


def enhanced(frame: bytes, number: int = 0, order: str = "<", original: int = 0) -> bytes:
    """An enhanced packet block."""
    head = struct.pack(order + "IIIII", number, 0, 0, len(frame), original or len(frame))
    return block(6, head + frame, order)


def obsolete(frame: bytes) -> bytes:
    """A packet block."""
    return block(2, struct.pack("<HHIIII", 0, 0, 0, 0, len(frame), len(frame)) + frame)


def simple(frame: bytes, original: int) -> bytes:
    """A simple packet block."""
    return block(3, struct.pack("<I", original) + frame)


def frames(data: bytes) -> list[tuple[int, bytes, int]]:
    """(link type, captured bytes, original length) of every frame; no damage."""
    reader = Reader(data, "test")
    found = [(link, data[at : at + size], original) for _, link, at, size, original in reader]
    assert not reader.damaged
    return found


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("magic", [0xA1B2C3D4, 0xA1B23C4D])
def test_pcap_in_either_order_and_resolution(order: str, magic: int) -> None:
    """The four kinds of pcap give the same frames."""
    assert frames(pcap([FRAME, b"x"], 1, order, magic)) == [(1, FRAME, len(FRAME)), (1, b"x", 1)]


@pytest.mark.parametrize("order", ["<", ">"])
def test_pcapng_blocks(order: str) -> None:
    """Interfaces, packets and blocks that are unknown are read in either order."""
    parts = [
        section(order),
        interface(1, 0, order),
        block(0xBAD, b"abc", order),
        interface(101, 0, order),
        enhanced(FRAME, 0, order),
        enhanced(IP, 1, order),
    ]
    assert frames(b"".join(parts)) == [(1, FRAME, len(FRAME)), (101, IP, len(IP))]


def test_pcapng_of_many_sections_and_old_blocks() -> None:
    """A section has its own byte order and interfaces; old and simple packet blocks count."""
    data = section() + interface(101, 30) + simple(IP[:30], len(IP)) + obsolete(IP)
    data += section(">") + interface(1, 0, ">") + enhanced(FRAME, 0, ">", 2000)
    assert frames(data) == [(101, IP[:30], len(IP)), (101, IP, len(IP)), (1, FRAME, 2000)]


@pytest.mark.parametrize(
    "data",
    [
        pcap([FRAME, FRAME])[:-1],
        pcap([FRAME, FRAME])[: 24 + 16 + len(FRAME) + 9],
        pcap([FRAME]) + struct.pack("<IIII", 0, 0, (16 << 20) + 1, 1) + bytes((16 << 20) + 1),
        section() + interface() + enhanced(FRAME) + enhanced(FRAME)[:-4],
        section() + interface() + enhanced(FRAME) + enhanced(FRAME, 1),
        section() + interface() + enhanced(FRAME) + b"\6\0\0\0\0\0\0\0\0\0\0\0",
        section() + interface() + enhanced(FRAME) + b"\0\0\0\0\x0d\0\0\0" + bytes(40),
        section() + interface() + enhanced(FRAME) + block(6, struct.pack("<IIIII", 0, 0, 0, 99, 99)),
        section() + interface() + enhanced(FRAME) + section().replace(b"\x1a", b"\x1b"),
        section() + interface() + enhanced(FRAME) + b"\1\0\0",
    ],
)
def test_damage_ends_the_reading(tmp_path: Path, data: bytes) -> None:
    """A frame or block that claims too much ends the reading; what came before is used."""
    path = tmp_path / "c"
    path.write_bytes(data)
    found = streams.load(path)
    assert found.stats["frames"] == found.stats["tcp"] == 1
    assert found.problems == [Problem("capture-damaged", at=2)]


@pytest.mark.parametrize(
    "data", [b"", b"\xd4\xc3\xb2\xa1", b"\x0a\x0d\x0d\x0a" + bytes(40), b"GIF89a" + bytes(99)]
)
def test_what_is_no_capture_is_refused(tmp_path: Path, data: bytes) -> None:
    """Another file is refused with a sentence."""
    (tmp_path / "c").write_bytes(data)
    with pytest.raises(ConfigError, match="not a capture"):
        streams.load(tmp_path / "c")


def test_an_unknown_link_type_is_refused_on_a_frame(tmp_path: Path) -> None:
    """A link type that is not read is named, if a frame has it."""
    (tmp_path / "c").write_bytes(pcap([b"x"], 105))
    with pytest.raises(ConfigError, match="frame 1 has link type 105"):
        streams.load(tmp_path / "c")
    (tmp_path / "c").write_bytes(pcap([], 105))
    assert streams.load(tmp_path / "c").stats["frames"] == 0


def test_a_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    """A missing file, a folder and a pipe are refused, and none is waited for."""
    os.mkfifo(tmp_path / "pipe")
    for name, word in (("gone", "No such file"), (".", "not a regular"), ("pipe", "not a regular")):
        with pytest.raises(ConfigError, match=word):
            streams.load(tmp_path / name)


LINKS = {
    "null": (0, b"\2\0\0\0" + IP),
    "loop": (108, b"\0\0\0\2" + IP),
    "ethernet": (1, FRAME),
    "vlan": (1, ethernet(IP, (0x8100,))),
    "four vlans": (1, ethernet(IP6, (0x88A8, 0x9100, 0x8100, 0x8100))),
    "raw": (101, IP),
    "raw 6": (101, IP6),
    "ipv4": (228, IP),
    "ipv6": (229, IP6),
    "cooked": (113, bytes(14) + b"\x08\x00" + IP),
    "cooked 2": (276, b"\x86\xdd" + bytes(18) + IP6),
    "fcs": (1 | 0x14000000, FRAME + b"\1\2\3\4"),
}


@pytest.mark.parametrize("name", LINKS)
def test_every_link_type(tmp_path: Path, name: str) -> None:
    """A segment is found behind each header of the contract."""
    link, frame = LINKS[name]
    (tmp_path / "c").write_bytes(pcap([frame], link))
    found = streams.load(tmp_path / "c")
    assert found.stats["tcp"] == 1
    (connection,) = found.connections
    assert connection.client in ("192.0.2.1:40000", "[2001:db8::1]:40000")


def test_statistics(tmp_path: Path) -> None:
    """Every frame counts in one column, a cut one also in `truncated`."""
    flow = Flow()
    flow.frame("client", 0, ACK, bytes(100))
    (tmp_path / "c").write_bytes(pcap([*flow.frames, b"arp" * 20, FRAME[:30]], snap=100))
    found = streams.load(tmp_path / "c")
    assert found.stats == {
        "format": "pcap",
        "frames": 5,
        "tcp": 3,
        "other": 2,
        "fragments": 0,
        "bad_checksum": 0,
        "truncated": 1,
        "not_tls": 1,
    }
    assert found.connections[0].from_client.cut_bytes == 54
