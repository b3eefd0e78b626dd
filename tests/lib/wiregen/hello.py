"""Handshake messages in the clear: valid hellos, and stand-ins of the right shape for the rest."""

from __future__ import annotations

import hashlib
from random import Random

RETRY = hashlib.sha256(b"HelloRetryRequest").digest()  # RFC 8446 section 4.1.3
GREASE = (0x0A0A, 0x3A3A, 0xFAFA)  # RFC 8701


def vector(data: bytes, size: int) -> bytes:
    """A TLS vector: its length in `size` bytes, then itself."""
    return len(data).to_bytes(size, "big") + data


def message(kind: int, body: bytes) -> bytes:
    """A handshake message."""
    return bytes([kind]) + vector(body, 3)


def extension(kind: int, body: bytes) -> bytes:
    """A hello extension."""
    return kind.to_bytes(2, "big") + vector(body, 2)


def client_hello(rng: Random, random: bytes, session_id: bytes, suite: int, tls13: bool) -> bytes:
    """A ClientHello that offers this suite among others."""
    offered = [0x00FF, suite, *rng.sample(GREASE, 1), *rng.sample(range(0xC000, 0xC0FF), 3)]
    rng.shuffle(offered)
    name = b"canary-" + rng.randbytes(4).hex().encode() + b".example"
    extensions = [
        extension(0, vector(b"\0" + vector(name, 2), 2)),
        extension(10, vector(b"\0\x1d\0\x17", 2)),
        extension(rng.choice(GREASE), b""),
        extension(0x23, rng.randbytes(rng.choice((0, 0, 192)))),
    ]
    if tls13:
        extensions.append(extension(43, vector(b"\x1a\x1a\3\4\3\3", 1)))
        extensions.append(extension(51, vector(b"\0\x1d" + vector(rng.randbytes(32), 2), 2)))
    rng.shuffle(extensions)
    codes = b"".join(code.to_bytes(2, "big") for code in offered)
    body = b"\3\3" + random + vector(session_id, 1) + vector(codes, 2) + b"\1\0"
    return message(1, body + vector(b"".join(extensions), 2))


def server_hello(rng: Random, random: bytes, session_id: bytes, suite: int, tls13: bool) -> bytes:
    """A ServerHello (or, with the random RETRY, a HelloRetryRequest)."""
    body = b"\3\3" + random + vector(session_id, 1) + suite.to_bytes(2, "big") + b"\0"
    extensions = [extension(0xFF01, b"\0"), extension(23, b"")]
    if tls13:
        share = b"\0\x1d" if random == RETRY else b"\0\x1d" + vector(rng.randbytes(32), 2)
        extensions = [extension(43, b"\3\4"), extension(51, share)]
    elif rng.random() < 0.2:
        return message(2, body)  # no extensions at all, as TLS 1.2 allows
    rng.shuffle(extensions)
    return message(2, body + vector(b"".join(extensions), 2))


def stand_in(rng: Random, kind: int, low: int, high: int) -> bytes:
    """A message of this type with a body that no end must understand."""
    return message(kind, rng.randbytes(rng.randint(low, high)))


def key_exchange(rng: Random, suite: int) -> bytes:
    """A ClientKeyExchange: a public value of the suite's (EC)DH."""
    finite = suite in (0x009E, 0x009F, 0xCCAA)
    return message(16, vector(rng.randbytes(256 if finite else 32), 2 if finite else 1))
