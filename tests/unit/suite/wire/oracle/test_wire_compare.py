"""Proof C: two captures with the same streams, with others, and with parts of them missing."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from offload.errors import ConfigError
from offload.suite.wire.compare import common, compare, record, text

SYN, FIN, RST, ACK = 2, 1, 4, 16
HELLO = b"\x16\x03\x01\x00\x20" + bytes(range(32))
DATA = b"\x17\x03\x03\x40\x00" + bytes(i * 7 & 255 for i in range(16384))
REPLY = b"\x16\x03\x03\x00\x10" + b"r" * 16


@dataclass
class Talk:
    """A TCP connection: what both sides say, in segments of `mss`; flags of its end, none: it has none."""

    client: bytes = HELLO + DATA
    server: bytes = REPLY
    port: int = 4433
    local: int = 40000
    end: int = FIN
    mss: int = 1000
    isn: int = 0xFFFFFF00  # wraps
    begins: bool = True

    def frames(self) -> list[bytes]:
        there, back = (self.local, self.port), (self.port, self.local)
        out = []
        if self.begins:
            out = [frame(*there, self.isn, SYN), frame(*back, 7, SYN | ACK)]
        for side, seq, data in ((there, self.isn + 1, self.client), (back, 8, self.server)):
            pieces = [(at, data[at : at + self.mss]) for at in range(0, len(data), self.mss)]
            out += [frame(*side, seq + at, ACK, piece) for at, piece in pieces]
            out += [frame(*side, seq + len(data), ACK | self.end)] if self.end else []
        return out


def frame(source: int, target: int, seq: int, flags: int, payload: bytes = b"") -> bytes:
    """One Ethernet frame with TCP over IPv4; checksums are not looked at."""
    tcp = struct.pack("!HHIIBBHHH", source, target, seq & 0xFFFFFFFF, 0, 0x50, flags, 65535, 0, 0) + payload
    addresses = bytes([192, 0, 2, 1 + (source < target), 192, 0, 2, 1 + (source > target)])
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + addresses
    return bytes(12) + b"\x08\x00" + ip + tcp


def write(path: Path, frames: list[bytes]) -> Path:
    """A pcap file."""
    head = struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 0, 1)
    path.write_bytes(head + b"".join(struct.pack("<IIII", 0, 0, len(f), len(f)) + f for f in frames))
    return path


def answer(folder: Path, a: list[Talk], b: list[Talk], **ports: int) -> dict[str, Any]:
    """Compare two captures of these connections, one after the other."""
    paths = [
        write(folder / name, [f for talk in talks for f in talk.frames()])
        for name, talks in (("a", a), ("b", b))
    ]
    return compare(*paths, **ports)


def codes(document: dict[str, Any]) -> list[tuple[str, str, str]]:
    """Its problems: capture, direction, code."""
    return [(p["capture"], p["direction"], p["code"]) for p in document["problems"]]


def test_equal_streams_in_other_packets(tmp_path: Path) -> None:
    """Streams are equal though ports, sequence numbers and segments are not."""
    other = Talk(mss=77, isn=5, local=50000, port=4434)
    found = answer(tmp_path, [Talk()], [other])
    assert (found["outcome"], found["problems"], found["first_difference"]) == ("equal", [], None)
    assert found["connections"][0]["from_client"] == dict.fromkeys("ab", 16426) | {"equal": 16426}
    assert text(found).endswith("verdict: EQUAL: 1 connection, 16,447 bytes, both directions\n")


def test_retransmissions_and_reordering_are_no_difference(tmp_path: Path) -> None:
    """What TCP sent twice or late is the same stream."""
    frames = Talk().frames()
    mixed = [*frames[:3], frames[5], frames[4], frames[3], frames[4], *frames[6:]]
    found = compare(write(tmp_path / "a", frames), write(tmp_path / "b", mixed))
    assert found["outcome"] == "equal"
    changed = bytearray(frames[4])
    changed[-1] ^= 1
    found = compare(
        write(tmp_path / "a", frames), write(tmp_path / "b", [*mixed[:9], bytes(changed), *mixed[9:]])
    )
    assert found["outcome"] == "inconclusive" and codes(found) == [("b", "client", "retransmission")]


@pytest.mark.parametrize("side", ["client", "server"])
@pytest.mark.parametrize("at", [0, 20])
def test_one_bit_is_a_difference(tmp_path: Path, side: str, at: int) -> None:
    """One bit anywhere, the handshake too, is found with its place in both directions."""
    said = bytearray(getattr(Talk(), side))
    said[at] ^= 0x10
    found = answer(tmp_path, [Talk()], [Talk(**{side: bytes(said)})])
    first = found["first_difference"]
    assert found["outcome"] == "different" and (first["direction"], first["offset"]) == (side, at)
    assert first["a"] == getattr(Talk(), side)[at : at + 16].hex() and first["b"] == said[at : at + 16].hex()
    assert first["record"] == {"number": 0, "type": 22, "at": at}
    assert f"verdict: DIFFERENT: connection 1, {side} -> " in text(found)


def test_the_record_of_a_difference_is_named(tmp_path: Path) -> None:
    """A difference in TLS is told with record number, its type and the byte in it."""
    said = bytearray(HELLO + DATA)
    said[37 + 12000] ^= 1
    found = answer(tmp_path, [Talk()], [Talk(client=bytes(said))])
    assert found["first_difference"]["record"] == {"number": 1, "type": 23, "at": 12000}
    assert "stream offset 12,037 (record 1, type 23, byte 12,000): " in text(found)


def test_a_stream_that_ends_earlier_differs(tmp_path: Path) -> None:
    """A stream that was closed earlier is another one; one that was only cut may not be."""
    short = (HELLO + DATA)[:-100]
    found = answer(tmp_path, [Talk()], [Talk(client=short)])
    assert found["outcome"] == "different" and found["first_difference"]["offset"] == len(short)
    assert (found["first_difference"]["b"], len(found["first_difference"]["a"])) == ("", 32)
    assert text(found).endswith(" against the end\n")
    found = answer(tmp_path, [Talk()], [Talk(client=short, end=0)])
    assert found["outcome"] == "inconclusive" and found["first_difference"] is None
    assert codes(found) == [("b", "client", "no-close"), ("b", "server", "no-close")]


def test_a_difference_before_the_cut_is_a_difference(tmp_path: Path) -> None:
    """What is in both captures and differs is different, whatever is missing after it."""
    found = answer(tmp_path, [Talk()], [Talk(client=b"\x17" + HELLO, end=0)])
    assert found["outcome"] == "different" and found["problems"]


@pytest.mark.parametrize(
    ("talk", "code"), [(Talk(end=RST), "reset"), (Talk(end=0), "no-close"), (Talk(begins=False), "no-syn")]
)
def test_equal_as_far_as_seen_is_inconclusive(tmp_path: Path, talk: Talk, code: str) -> None:
    """Streams without beginning or end are never called equal."""
    found = answer(tmp_path, [talk], [talk])
    assert found["outcome"] == "inconclusive" and {c for _, _, c in codes(found)} == {code}
    assert (
        "verdict: INCONCLUSIVE, which is not a pass: capture A, connection 1, client -> server: it"
        in text(found)
    )


def test_a_hole_is_inconclusive(tmp_path: Path) -> None:
    """A segment that is missing is told with its offset, and nothing is called equal."""
    frames = Talk().frames()
    found = compare(write(tmp_path / "a", frames), write(tmp_path / "b", [*frames[:4], *frames[5:]]))
    assert found["outcome"] == "inconclusive" and codes(found) == [("b", "client", "gap")]
    assert "the first 2,000 equal" in text(found) and "after stream offset 2,000 [gap]" in text(found)


def test_a_damaged_capture_is_inconclusive(tmp_path: Path) -> None:
    """Streams that are equal prove nothing if a capture ends in the middle of a frame."""
    whole = write(tmp_path / "a", Talk().frames())
    (tmp_path / "b").write_bytes(whole.read_bytes() + b"half a header")
    found = compare(whole, tmp_path / "b")
    assert found["outcome"] == "inconclusive" and codes(found) == [("b", "", "capture-damaged")]
    assert "! capture B: it ends inside a frame" in text(found)


def test_connections_are_compared_in_order(tmp_path: Path) -> None:
    """Several connections are compared one by one, and the differing one is named."""
    one, two = Talk(client=HELLO), Talk(client=HELLO + b"x" * 50, local=40001)
    assert answer(tmp_path, [one, two], [one, two])["outcome"] == "equal"
    found = answer(tmp_path, [one, two], [one, Talk(client=HELLO + b"y" * 50, local=40001)])
    assert found["first_difference"]["connection"] == 2 and found["first_difference"]["record"] is None


def test_other_numbers_of_connections_are_inconclusive(tmp_path: Path) -> None:
    """Other numbers of connections are told; a port chooses, silent ones do not count."""
    one, two = Talk(), Talk(port=5555, local=40001)
    found = answer(tmp_path, [one, two], [one])
    assert found["outcome"] == "inconclusive" and codes(found) == [
        ("a", "", "other-number"),
        ("b", "", "other-number"),
    ]
    assert "2 connections" in text(found) and "--port-a" in text(found)
    assert answer(tmp_path, [two, one], [one], port_a=4433)["outcome"] == "equal"
    assert answer(tmp_path, [one], [two, one], port_b=4433)["outcome"] == "equal"
    assert answer(tmp_path, [one, Talk(b"", b"", local=40001)], [one])["outcome"] == "equal"


def test_nothing_is_never_equal(tmp_path: Path) -> None:
    """Captures without payload are inconclusive; a file that is none is refused."""
    found = answer(tmp_path, [Talk(b"", b"")], [])
    assert found["outcome"] == "inconclusive" and codes(found) == [("a", "", "empty"), ("b", "", "empty")]
    (tmp_path / "c").write_bytes(b"not a capture at all")
    with pytest.raises(ConfigError):
        compare(tmp_path / "c", tmp_path / "a")
    with pytest.raises(ConfigError):
        compare(tmp_path / "a", tmp_path / "nothing")


def test_the_first_difference_is_the_first() -> None:
    """The common part ends at the differing byte, also at the borders of pieces."""
    for at in (0, 1, 65535, 65536, 65537, 199999):
        a, b = bytes(200000), bytearray(200000)
        b[at] = 1
        assert common(a, bytes(b)) == at
    assert common(bytes(70000), bytes(65536)) == 65536 and common(b"", b"x") == 0


def test_the_header_walk_stops_where_tls_stops() -> None:
    """The record of an offset is found by the headers; where there is none, none is named."""
    data = HELLO + DATA + b"plain text"
    assert record(data, 36) == {"number": 0, "type": 22, "at": 36}
    assert record(data, 37) == {"number": 1, "type": 23, "at": 0}
    assert record(data, len(HELLO + DATA) + 3) is None and record(b"GET / HTTP/1.1", 3) is None
