"""The cipher suites of the generator: key schedule and AEAD, straight from RFC 5246, 5288, 7905 and 8446."""

from __future__ import annotations

import hmac
from dataclasses import dataclass

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305


@dataclass(frozen=True)
class Suite:
    """A suite: its number on the wire, the name that a verdict gives it, key length, hash of the schedule."""

    code: int
    name: str
    tls13: bool
    key: int
    digest: str

    @property
    def counted(self) -> bool:
        """Whether the nonce is iv xor sequence (all but TLS 1.2 GCM)."""
        return self.tls13 or self.name.startswith("chacha")

    @property
    def overhead(self) -> int:
        """Bytes of a record body beyond its plaintext, without TLS 1.3 padding."""
        return 17 if self.tls13 else 16 if self.counted else 24


NAMES = {16: "aes-gcm-128", 32: "aes-gcm-256"}
SUITES = [
    *(Suite(code, NAMES[16], False, 16, "sha256") for code in (0xC02B, 0xC02F, 0x009E)),
    *(Suite(code, NAMES[32], False, 32, "sha384") for code in (0xC02C, 0xC030, 0x009F)),
    *(Suite(code, "chacha20-poly1305", False, 32, "sha256") for code in (0xCCA8, 0xCCA9, 0xCCAA)),
    Suite(0x1301, NAMES[16], True, 16, "sha256"),
    Suite(0x1302, NAMES[32], True, 32, "sha384"),
    Suite(0x1303, "chacha20-poly1305", True, 32, "sha256"),
]
TLS12 = [s for s in SUITES if not s.tls13]
TLS13 = [s for s in SUITES if s.tls13]


def prf12(secret: bytes, label: bytes, seed: bytes, size: int, digest: str) -> bytes:
    """P_hash of RFC 5246 section 5."""
    seed, out = label + seed, b""
    a = seed
    while len(out) < size:
        a = hmac.digest(secret, a, digest)
        out += hmac.digest(secret, a + seed, digest)
    return out[:size]


def expand(secret: bytes, label: str, size: int, digest: str) -> bytes:
    """HKDF-Expand-Label with an empty context, RFC 8446 section 7.1; at most one block of the hash."""
    name = b"tls13 " + label.encode()
    info = size.to_bytes(2, "big") + bytes([len(name)]) + name + b"\0"
    return hmac.digest(secret, info + b"\1", digest)[:size]


@dataclass(frozen=True)
class Keys:
    """One direction's key and iv (the 4-byte salt for TLS 1.2 GCM) in one epoch."""

    suite: Suite
    key: bytes
    iv: bytes

    def nonce(self, seq: int, explicit: bytes) -> bytes:
        """The AEAD's nonce."""
        if not self.suite.counted:
            return self.iv + explicit
        return bytes(a ^ b for a, b in zip(self.iv, seq.to_bytes(12, "big"), strict=True))

    def aead(self) -> AESGCM | ChaCha20Poly1305:
        """The cipher with its key."""
        return ChaCha20Poly1305(self.key) if self.suite.name.startswith("chacha") else AESGCM(self.key)

    def seal(self, seq: int, kind: int, plain: bytes, explicit: bytes = b"", pad: int = 0) -> bytes:
        """The body of a record: explicit nonce, ciphertext, tag. `pad`: zeros after a TLS 1.3 inner type."""
        nonce = self.nonce(seq, explicit)
        if self.suite.tls13:
            plain = plain + bytes([kind]) + bytes(pad)
            aad = b"\x17\x03\x03" + (len(plain) + 16).to_bytes(2, "big")
            return self.aead().encrypt(nonce, plain, aad)
        aad = seq.to_bytes(8, "big") + bytes([kind]) + b"\3\3" + len(plain).to_bytes(2, "big")
        return explicit + self.aead().encrypt(nonce, plain, aad)

    def seal_raw(self, seq: int, inner: bytes) -> bytes:
        """A TLS 1.3 body around any inner plaintext, also one that is only zeros."""
        aad = b"\x17\x03\x03" + (len(inner) + 16).to_bytes(2, "big")
        return self.aead().encrypt(self.nonce(seq, b""), inner, aad)

    def keystream(self, seq: int, explicit: bytes, size: int) -> bytes:
        """The first bytes that the cipher xors to a plaintext."""
        return self.aead().encrypt(self.nonce(seq, explicit), bytes(size), None)[:size]


def keys12(suite: Suite, master: bytes, client_random: bytes, server_random: bytes) -> list[Keys]:
    """The client's and the server's keys of a TLS 1.2 connection."""
    iv = 12 if suite.counted else 4
    block = prf12(master, b"key expansion", server_random + client_random, 2 * (suite.key + iv), suite.digest)
    keys, ivs = block[: 2 * suite.key], block[2 * suite.key :]
    return [
        Keys(
            suite,
            keys[direction * suite.key : (direction + 1) * suite.key],
            ivs[direction * iv : (direction + 1) * iv],
        )
        for direction in (0, 1)
    ]


def keys13(suite: Suite, secret: bytes) -> Keys:
    """The keys of a TLS 1.3 traffic secret."""
    return Keys(
        suite,
        expand(secret, "key", suite.key, suite.digest),
        expand(secret, "iv", 12, suite.digest),
    )


def next_secret(suite: Suite, secret: bytes) -> bytes:
    """The traffic secret after a KeyUpdate."""
    return expand(secret, "traffic upd", len(secret), suite.digest)
