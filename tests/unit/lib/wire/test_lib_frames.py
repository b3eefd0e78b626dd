"""Frames on a wire are added up, and TCP checksums judged: right, wrong, or left to be made."""

from __future__ import annotations

import struct

import pytest

from tests.lib.wire.frames import Frame, folded, frames, left_once


def packet(seq: int, payload: bytes, checksum: str, family: int = 4) -> bytes:
    """An Ethernet frame of ours with a TCP checksum of that kind."""
    tcp = struct.pack("!HHIIBBHHH", 4433, 9, seq, 0, 5 << 4, 16, 100, 0, 0) + payload
    between = bytes(range(8 if family == 4 else 32))
    pseudo = folded(between) + 6 + len(tcp)
    value = folded(b"", pseudo) if checksum == "left" else 0xFFFF - folded(tcp, pseudo)
    value ^= 1 if checksum == "wrong" else 0
    tcp = tcp[:16] + value.to_bytes(2, "big") + tcp[18:]
    v4 = b"\x45\0" + (20 + len(tcp)).to_bytes(2, "big") + bytes(5) + b"\x06\0\0" + between
    v6 = b"\x60\0\0\0" + len(tcp).to_bytes(2, "big") + b"\x06\x40" + between
    return bytes(12) + (b"\x08\0" + v4 if family == 4 else b"\x86\xdd" + v6) + tcp


def capture(*packets: bytes) -> bytes:
    """A pcapng file with these frames, padded as on a wire, and something else between them."""
    out = struct.pack("<II", 0x0A0D0D0A, 12) + struct.pack("<I", 12)
    for one in (*packets, bytes(60)):
        data = one + bytes(-len(one) % 4)
        out += struct.pack("<IIIIIII", 6, 32 + len(data), 0, 0, 0, len(one), len(one)) + data
        out += struct.pack("<I", 32 + len(data))
    return out


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("checksum", ["right", "wrong", "left"])
def test_checksum_is_judged(family: int, checksum: str) -> None:
    """Each kind of checksum is told from the others, payload of odd length too."""
    seen = list(frames(capture(packet(7, b"abc", checksum, family))))
    assert seen == [Frame(4433, 7, 3, checksum)]


def test_bytes_are_added_up() -> None:
    """A frame too many, one too few, and a wrong checksum have their own words."""
    one, two = Frame(4433, 1, 100, "right"), Frame(4433, 101, 50, "left")
    left_once([one, two], 150)
    with pytest.raises(AssertionError, match="250 came out of the card: the frame at sequence number 1 is"):
        left_once([one, two, one], 150)
    with pytest.raises(AssertionError, match="it dropped 50"):
        left_once([one], 150)
    with pytest.raises(AssertionError, match="1 of 2 frames have a wrong .* sequence number 101"):
        left_once([one, Frame(4433, 101, 50, "wrong")], 150)


def test_order_is_judged() -> None:
    """A frame behind the next one is named; one that is sent again, in other pieces too, is no such frame."""
    near = (1 << 32) - 50  # the numbers wrap
    one, two, three = (Frame(4433, (near + at) % (1 << 32), 100, "right") for at in (0, 100, 200))
    left_once([one, two, three], 300)
    left_once([one, two, three, two, Frame(4433, 60, 20, "right")], 420)
    with pytest.raises(AssertionError, match="1 of 3 frames left behind later ones, .* number 50"):
        left_once([one, three, two], 300)
    with pytest.raises(AssertionError, match=f"1 of 3 frames left behind .* number {near}"):
        left_once([two, one, three], 300)
