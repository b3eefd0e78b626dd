"""IP and TCP headers: what is a segment, where its payload ends, and which frames are none."""

from __future__ import annotations

import struct

import pytest

from offload.suite.wire.packets import Segment, parse
from tests.unit.suite.wire.oracle.wire_make import ACK, CLIENT, SERVER, ethernet, tcp

DATA = b"payload of nineteen"
IP = tcp(CLIENT, SERVER, 7, ACK, DATA)
IP6 = tcp(("2001:db8::1", 1), ("2001:db8::2", 2), 7, ACK, DATA)


def put(packet: bytes, at: int, data: bytes) -> bytes:
    return packet[:at] + data + packet[at + len(data) :]


def options6(*kinds: int) -> bytes:
    """IP6 with extension headers of 8 bytes each."""
    chain = [*kinds, 6]
    headers = b"".join(bytes([after, 0]) + bytes(6) for after in chain[1:])
    size = struct.pack(">H", len(IP6) - 40 + len(headers))
    return IP6[:4] + size + bytes([chain[0]]) + IP6[7:40] + headers + IP6[40:]


def fragment6(word: int) -> bytes:
    """IP6 behind a fragment header."""
    packet = options6(44)
    return put(packet, 42, struct.pack(">H", word))


def raw(
    packet: bytes, captured: int | None = None, original: int | None = None, checksums: bool = False
) -> Segment | str:
    """What a packet without a link header is."""
    data = packet if captured is None else packet[:captured]
    return parse(data, 101, 0, len(data), original or len(packet), checksums)


@pytest.mark.parametrize("packet", [IP, IP6, options6(0), options6(0, 43, 60, 0, 0, 0, 0, 0), fragment6(0)])
def test_the_payload_is_found(packet: bytes) -> None:
    """The payload of a segment begins behind TCP's header, whatever stands before it."""
    found = raw(packet)
    assert isinstance(found, Segment)
    assert packet[found.start : found.start + found.captured] == DATA
    assert (found.size, found.sequence, found.flags) == (len(DATA), 7, ACK)


def test_the_payload_ends_where_ip_says() -> None:
    """An Ethernet trailer is no payload."""
    frame = ethernet(IP) + b"\0" * 6
    found = parse(frame, 1, 0, len(frame), len(frame))
    assert isinstance(found, Segment) and found.size == len(DATA)


@pytest.mark.parametrize("packet", [put(IP, 2, b"\0\0"), put(IP6, 4, b"\0\0")])
def test_a_length_of_zero_means_all(packet: bytes) -> None:
    """A BIG TCP packet ends with the original frame."""
    found = raw(packet + bytes(90000))
    assert isinstance(found, Segment) and found.size == len(DATA) + 90000


def test_a_cut_frame_has_less_than_it_says() -> None:
    """A snapped frame gives the size that IP says and the bytes that are there."""
    found = raw(IP, 45)
    assert isinstance(found, Segment) and (found.size, found.captured) == (len(DATA), 5)
    assert raw(IP, 40) == found._replace(captured=0)


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        IP[:19],
        IP[:39],
        put(IP, 0, b"\x44"),
        put(IP, 0, b"\x4f"),
        put(IP, 2, b"\1\0"),
        put(IP, 2, b"\0\x27"),
        put(IP, 9, b"\x11"),
        put(IP, 32, b"\x40"),
        put(IP, 32, b"\xf0"),
        put(IP, 0, b"\x55"),
        IP6[:39],
        IP6[:59],
        put(IP6, 4, b"\1\0"),
        put(IP6, 6, b"\x11"),
        options6(0, 0, 0, 0, 0, 0, 0, 0, 0),
        options6(51),
        put(options6(0), 41, b"\xff"),
        options6(44)[:46],
    ],
)
def test_what_is_malformed_is_other(packet: bytes) -> None:
    """A header that is cut off or makes no sense is `other`, never a guess."""
    assert parse(packet, 101, 0, len(packet), max(len(packet), 20)) == "other"


@pytest.mark.parametrize(
    "packet", [put(IP, 6, b"\x20\0"), put(IP, 6, b"\0\1"), fragment6(1), fragment6(8), fragment6(0xFFF8)]
)
def test_fragments(packet: bytes) -> None:
    """A fragment is counted, not put together."""
    assert raw(packet) == "fragments"


@pytest.mark.parametrize("packet", [IP, IP6, fragment6(0)])
def test_right_checksums_pass(packet: bytes) -> None:
    """A frame with right checksums is a segment; a cut one is not judged."""
    assert isinstance(raw(packet, checksums=True), Segment)
    assert isinstance(raw(put(packet, len(packet) - 1, b"?"), len(packet) - 1, checksums=True), Segment)


@pytest.mark.parametrize("packet", [put(IP, 8, b"\1"), put(IP, 58, b"?"), put(IP6, 70, b"?")])
def test_wrong_checksums_are_left_out_if_asked(packet: bytes) -> None:
    """A wrong IPv4 header or TCP checksum counts only with `checksums`."""
    assert raw(packet, checksums=True) == "bad_checksum"
    assert isinstance(raw(packet), Segment)


@pytest.mark.parametrize(("link", "version"), [(228, 4), (229, 6)])
def test_a_link_type_of_one_version(link: int, version: int) -> None:
    """Link types 228 and 229 hold only their version."""
    for packet, number in ((IP, 4), (IP6, 6)):
        found = parse(packet, link, 0, len(packet), len(packet))
        assert isinstance(found, Segment) == (number == version)


def test_five_vlan_tags_are_too_many() -> None:
    """More than four VLAN tags are `other`, and so is one that is cut off."""
    frame = ethernet(IP, (0x8100,) * 5)
    assert parse(frame, 1, 0, len(frame), len(frame)) == "other"
    assert parse(frame, 1, 0, 17, len(frame)) == "other"
