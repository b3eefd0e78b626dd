"""What is said of a connection with known keys is right: plaintext, sizes, half of a key."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from offload.card.profile import Cell
from offload.suite.traffic import rawkeys
from tests.lib.wire import raw
from tests.lib.wire.raw import Key, Sent, keys_of

PLAN = raw.payload("unit")
Sealer = Callable[[Key, int, bytes], tuple[bytes, bytes]]


def sealed(key: Key, number: int, plain: bytes) -> tuple[bytes, bytes]:
    """Nonce and sealed content of a record, made by hand (RFC 5288 section 3)."""
    nonce, head = struct.pack("!Q", number + 7), struct.pack("!QBHH", number, 23, 0x0303, len(plain))
    return nonce, AESGCM(key.key).encrypt(key.salt + nonce, plain, head)


def wrong(key: Key, number: int, plain: bytes) -> tuple[bytes, bytes]:
    """The same of other plaintext, so that its tag fits."""
    return sealed(key, number, bytes(byte ^ 255 for byte in plain))


def frame(seq: int, flags: int, data: bytes = b"") -> bytes:
    """An Ethernet frame with a TCP segment from port 1 to port 2."""
    tcp = struct.pack("!HHIIBBHHH", 1, 2, seq, 0, 5 << 4, flags, 0, 0, 0) + data
    ip = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + bytes(
        (192, 0, 2, 1, 192, 0, 2, 2)
    )
    return bytes(12) + b"\x08\x00" + ip + tcp


def capture(path: Path, key: Key, seal: Sealer) -> Path:
    """A capture of the plan as a client sends it; `seal` makes what is in each record."""
    content, out, at = PLAN.content(), b"", 0
    sizes = [size for part in PLAN.parts for size in part.sizes]
    for number, size in enumerate(sizes):
        nonce, body = seal(key, number, content[at : at + size])
        out += struct.pack("!BHH", 23, 0x0303, len(nonce) + len(body)) + nonce + body
        at += size
    pieces = [frame(1 + n, 16, out[n : n + 1400]) for n in range(0, len(out), 1400)]
    frames = [frame(0, 2), *pieces, frame(1 + len(out), 17)]
    heads = (struct.pack("<IIII", 0, 0, len(one), len(one)) + one for one in frames)
    path.write_bytes(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1) + b"".join(heads))
    return path


def said(tmp_path: Path, cipher: str, seal: Sealer, version: str = "1.2") -> tuple[str, dict[str, Any]]:
    """What is said of such a capture, and the evidence."""
    keys = keys_of(rawkeys.info(cipher, 0, version) + rawkeys.info(cipher, 0, version))
    flow: Any = None
    sent, evidence = Sent(flow, "tx", 2, keys, PLAN, 4), {}
    try:
        raw.proves(capture(tmp_path / "c.pcap", keys[0], seal), evidence, sent)
    except AssertionError as exc:
        return str(exc).partition("\nassert")[0], evidence["wire"]
    return "", evidence["wire"]


@pytest.mark.parametrize("cipher", ["aes-gcm-128", "aes-gcm-256"])
def test_right_records_are_proven(tmp_path: Path, cipher: str) -> None:
    """The keys of both ciphers are found, and what is right is proven, each byte."""
    words, wire = said(tmp_path, cipher, sealed)
    assert words == "" and (wire["proof"], wire["outcome"]) == ("B", "equal")
    assert (wire["records"], wire["bytes"]) == (sum(raw.WRITES.values()), PLAN.total)


def sealed13(key: Key, number: int, plain: bytes) -> tuple[bytes, bytes]:
    """A record of TLS 1.3 (RFC 8446 section 5.2): no nonce in it, and the type behind the payload."""
    nonce = (int.from_bytes(key.salt + key.iv, "big") ^ number).to_bytes(12, "big")
    aad = struct.pack("!BHH", 23, 0x0303, len(plain) + 17)
    return b"", AESGCM(key.key).encrypt(nonce, plain + b"\x17", aad)


def test_records_of_tls13_are_proven(tmp_path: Path) -> None:
    """They are read by the version of the keys; one under the number of another is wrong."""
    words, wire = said(tmp_path, "aes-gcm-256", sealed13, "1.3")
    assert words == "" and (wire["outcome"], wire["bytes"]) == ("equal", PLAN.total)
    words, wire = said(tmp_path, "aes-gcm-128", lambda k, n, p: sealed13(k, n + (n > 3), p), "1.3")
    assert "of TLS 1.3: different: " in words and wire["outcome"] == "different"


def test_plaintext_is_named(tmp_path: Path) -> None:
    """A first record in the clear is named with its place, whatever its tag."""
    words, _ = said(
        tmp_path, "aes-gcm-128", lambda k, n, p: sealed(k, n, p) if n else (bytes(8), p + bytes(16))
    )
    assert (
        words.startswith("plaintext on the wire at stream offset 13: ")
        and "is byte 0 of the payload" in words
    )


def test_wrong_sizes_are_named(tmp_path: Path) -> None:
    """A fault of short records is told from one of all records."""
    words, wire = said(tmp_path, "aes-gcm-128", lambda k, n, p: (sealed if len(p) > 200 else wrong)(k, n, p))
    assert words.startswith(
        "wrong are 20 records of 1, 17, 100 bytes, right 22 records of 255, 256, 5000, 16384"
    )
    assert (
        "the tags of the wrong ones fit what was sent: different: " in words
        and wire["outcome"] == "different"
    )


def test_half_of_a_key_is_named(tmp_path: Path) -> None:
    """Records under the first half of a long key are told from any others."""
    words, _ = said(tmp_path, "aes-gcm-256", lambda k, n, p: sealed(k.half, n, p))
    assert "right no record; they are what AES-128 makes with the first half of the key: different: " in words


def test_no_key_is_shown() -> None:
    """Nothing that shows a connection shows its keys."""
    infos = rawkeys.info("aes-gcm-256", 0) + rawkeys.info("aes-gcm-256", 0)
    flow: Any = None
    assert repr(Sent(flow, "tx", 2, keys_of(infos), PLAN, 4)).count("Key()") == 2
    assert Cell("tx", "1.2", "aes-gcm-256").cipher.endswith(str(8 * len(keys_of(infos)[1].key)))
