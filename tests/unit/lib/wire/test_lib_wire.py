"""What the wire tests stand on is right: frames, plaintext found, frames decrypted."""

from __future__ import annotations

import base64
import hashlib
import struct
from pathlib import Path

import pytest

from tests.lib.wire import secrets
from tests.lib.wire.wire import Segment, Watch, most_decrypted, segments, share

PLAIN = hashlib.shake_128(b"plain").digest(4000)
SECRET = hashlib.shake_128(b"cipher").digest(4000)


def frame(payload: bytes, seq: int, *, family: int = 4, big: bool = False) -> bytes:
    """An Ethernet frame with a TCP segment from port 1 to port 2, and a trailer where there is a length."""
    tcp = struct.pack("!HHIIBBHHH", 1, 2, seq, 0, 8 << 4, 16, 0, 0, 0) + bytes(12) + payload
    if family == 4:
        ip = struct.pack("!BBHHHBBH8x", 0x45, 0, 0 if big else 20 + len(tcp), 0, 0, 64, 6, 0)
        return bytes(12) + b"\x08\x00" + ip + tcp + (b"" if big else b"trailer")
    ip = struct.pack("!IHBB32x", 6 << 28, 0 if big else len(tcp), 6, 64)
    return bytes(12) + b"\x86\xdd" + ip + tcp


def pcapng(*frames: bytes) -> bytes:
    """A capture as wiretap writes it: section, interface, enhanced packet blocks."""
    out = struct.pack("<IIIHHqI", 0x0A0D0D0A, 28, 0x1A2B3C4D, 1, 0, -1, 28)
    out += struct.pack("<IIHHII", 1, 20, 1, 0, 0, 20)
    for data in frames:
        size = 32 + len(data) + -len(data) % 4
        out += struct.pack("<IIIIIII", 6, size, 0, 0, 0, len(data), len(data))
        out += data + bytes(-len(data) % 4) + struct.pack("<I", size)
    return out


@pytest.mark.parametrize("family", [4, 6])
@pytest.mark.parametrize("big", [False, True])
def test_frames_are_read(family: int, big: bool) -> None:
    """The payload ends where IP says; ARP and empty segments are nothing."""
    arp = bytes(12) + b"\x08\x06" + bytes(28)
    capture = pcapng(arp, frame(b"hello", 7, family=family, big=big), frame(b"", 12, family=family))
    assert list(segments(capture)) == [Segment(1, 2, 7, b"hello")]


def test_plaintext_is_found_at_any_place() -> None:
    """The share of plaintext does not depend on where packets begin."""
    cut = [Segment(1, 2, at, PLAIN[at : at + 500]) for at in range(3, 4000, 500)]
    assert share(PLAIN, cut) > 0.95
    assert 0.45 < share(PLAIN, [Segment(1, 2, 0, SECRET[:77] + PLAIN[:2000])]) < 0.51
    assert share(PLAIN, [Segment(1, 2, 0, SECRET)]) == 0


def record(content: bytes) -> bytes:
    """A TLS 1.2 record with AES-GCM, whatever is in it."""
    return b"\x17\x03\x03" + struct.pack("!H", len(content) + 24) + bytes(8) + content + bytes(16)


def cut(stream: bytes, base: int, *ends: int) -> list[Segment]:
    pairs = zip((0, *ends[:-1]), ends, strict=True)
    return [Segment(1, 2, (base + a) & 0xFFFFFFFF, stream[a:b]) for a, b in pairs]


def test_decrypted_frames_are_counted() -> None:
    """A frame counts if the card changed it, or had nothing in it to change."""
    hello, ends = b"\x16\x03\x03\0\x05hello", (10, 600, 1023, 1039, 1052, 1500)
    wire = hello + record(SECRET[:1000]) + record(SECRET[1000:2000])
    host = hello + record(PLAIN[:1000]) + record(SECRET[1000:2000])
    base = 0xFFFFFF00  # the sequence numbers wrap
    outside, inside = cut(wire, base, *ends), cut(host, base, *ends)
    # not the hello; two of content that was changed, a tag, a header with nonce; not the content that was not
    assert most_decrypted(outside, inside) == 4
    assert most_decrypted(outside, outside) == 2
    # sent again: it comes up as it is on the wire, after the first copy
    assert most_decrypted(outside, [*inside, outside[1]]) == 4
    assert most_decrypted([*outside, outside[1]], [*inside, outside[1]]) == 4


def test_a_copy_that_came_in_time_is_counted() -> None:
    """A handshake's last record counts if the card was there for its second copy only."""
    hello, last = b"\x16\x03\x03\0\x05hello", b"\x16\x03\x03\0\x28" + bytes(8)
    ends = (10, 55, 600)
    outside = cut(hello + last + SECRET[:32] + record(SECRET[:521]), 0, *ends)
    inside = cut(hello + last + SECRET[:32] + record(PLAIN[:521]), 0, *ends)
    second = Segment(1, 2, 10, last + PLAIN[:16] + SECRET[16:32])
    assert most_decrypted(outside, inside) == 1
    wire = [*outside[:2], outside[1], outside[2]]
    assert most_decrypted(wire, [*inside[:2], second, inside[2]]) == 2
    assert most_decrypted(wire, [*inside[:2], outside[1], inside[2]]) == 1


def test_every_form_of_a_secret_is_looked_for() -> None:
    """A secret is looked for in hexadecimal, raw, as Python prints it, and in base64."""
    raw = bytes(range(100, 148))
    line = b"CLIENT_RANDOM " + b"00" * 32 + b" " + raw.hex().encode()
    found = secrets.forms(line + b"\n# a comment\n\n")
    wanted = {raw, raw.hex().encode(), raw.hex().upper().encode(), base64.b64encode(raw)}
    assert wanted <= set(found) and b"[100, 101, 102" in b" ".join(found)


def test_half_a_line_of_a_key_log_is_none() -> None:
    """Lines that are being written or wiped do not count, and neither do those without a secret."""
    line = b"SERVER_TRAFFIC_SECRET_0 " + b"0a" * 32 + b" " + b"b1" * 48 + b"\n"
    wiped = [bytes([0xB1]) + line[1:], line[:90] + b"\xb1" * 30 + line[120:], b"\xb1 \xb1 \xb1\n"]
    assert secrets.whole(b"# a comment\n" + b"".join(wiped) + line + line[:-3]) == {line}
    assert secrets.whole(line[:-3]) == secrets.whole(b"") == set()


def test_files_with_a_secret_are_named(tmp_path: Path) -> None:
    """Every file below a folder is looked into."""
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "bad").write_bytes(b"xx secret yy")
    (tmp_path / "good").write_bytes(b"nothing")
    assert secrets.in_files([b"none", b"secret"], tmp_path) == [tmp_path / "a" / "b" / "bad"]
    assert secrets.in_files([b"secret"], tmp_path / "good") == []


class Broke:
    """Captures and a key log of a connection that broke in its handshake."""

    def files(self) -> dict[str, Path]:
        """What was captured."""
        return {"wire": Path("wire.pcapng")}

    def read(self) -> bytes:
        """What the peer wrote of its keys."""
        return b"\n"


def test_a_broken_handshake_is_the_headline_and_not_its_empty_key_log() -> None:
    """Without keys nothing can be proved: the connection is blamed, and the run is not void."""
    watch = Watch(Broke(), Broke())  # type: ignore[arg-type]
    with pytest.raises(AssertionError, match="the connection broke before its ends had agreed on keys"):
        watch.proves({}, "client", 4096)
