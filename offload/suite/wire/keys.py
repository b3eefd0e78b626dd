"""Which keys protect a direction, and how is a record sealed? RFC 5246, 5288 and 7905; RFC 8446 §5, §7."""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

from offload.suite.wire.keylog import Keylog

TAG = 16
MAX_SEQUENCE = (1 << 64) - 1


@dataclass(frozen=True)
class Suite:
    """A cipher suite: its AEAD's name in the document, key length in bytes, hash."""

    cipher: str
    key_size: int
    hash: str

    @property
    def chacha(self) -> bool:
        """Whether the AEAD is ChaCha20-Poly1305."""
        return self.cipher.startswith("chacha20")


AES128 = Suite("aes-gcm-128", 16, "sha256")
AES256 = Suite("aes-gcm-256", 32, "sha384")
CHACHA = Suite("chacha20-poly1305", 32, "sha256")
SUITES = {
    "1.2": {
        0xC02B: AES128,
        0xC02F: AES128,
        0x009E: AES128,
        0xC02C: AES256,
        0xC030: AES256,
        0x009F: AES256,
        0xCCA8: CHACHA,
        0xCCA9: CHACHA,
        0xCCAA: CHACHA,
    },
    "1.3": {0x1301: AES128, 0x1302: AES256, 0x1303: CHACHA},
}


def prf(secret: bytes, label: bytes, seed: bytes, size: int, hash_name: str) -> bytes:
    """The TLS 1.2 PRF (RFC 5246 §5)."""
    seed = label + seed
    block, out = seed, b""
    while len(out) < size:
        block = hmac.digest(secret, block, hash_name)
        out += hmac.digest(secret, block + seed, hash_name)
    return out[:size]


def expand_label(secret: bytes, label: bytes, size: int, hash_name: str) -> bytes:
    """HKDF-Expand-Label with an empty context (RFC 8446 §7.1; RFC 5869 §2.3)."""
    info = struct.pack(">HB", size, len(label) + 6) + b"tls13 " + label + b"\0"
    block, out = b"", b""
    while len(out) < size:
        block = hmac.digest(
            secret, block + info + bytes([len(out) // hashlib.new(hash_name).digest_size + 1]), hash_name
        )
        out += block
    return out[:size]


class Epoch:
    """One key of one direction: seals and opens records of TLS `version` 1.2 or 1.3.

    `explicit`: bytes of the nonce that each record carries. `overhead`: bytes that a record has beyond its
    plaintext at least. The inner plaintext is the plaintext itself in 1.2, and that, type and padding in 1.3.
    """

    def __init__(self, version: str, suite: Suite, key: bytes, iv: bytes) -> None:
        self.version, self.suite, self.iv = version, suite, iv
        self.aead = ChaCha20Poly1305(key) if suite.chacha else AESGCM(key)
        self.explicit = 12 - len(iv)
        self.overhead = self.explicit + TAG + (version == "1.3")

    def _nonce(self, sequence: int, wire: bytes) -> bytes:
        if self.explicit:
            return self.iv + wire
        return (int.from_bytes(self.iv, "big") ^ sequence).to_bytes(12, "big")

    def _aad(self, kind: int, sequence: int, size: int) -> bytes:
        if self.version == "1.3":
            return struct.pack(">BHH", 23, 0x0303, size + TAG)
        return struct.pack(">QBHH", sequence, kind, 0x0303, size)

    def seal(self, kind: int, sequence: int, wire: bytes, inner: bytes) -> bytes:
        """Ciphertext and tag; `wire`: the explicit nonce."""
        return self.aead.encrypt(self._nonce(sequence, wire), inner, self._aad(kind, sequence, len(inner)))

    def open(self, kind: int, sequence: int, body: bytes) -> bytes | None:
        """The inner plaintext of a record's body; None if it is not authentic."""
        if len(body) < self.explicit + TAG or not 0 <= sequence <= MAX_SEQUENCE:
            return None
        wire, sealed = body[: self.explicit], body[self.explicit :]
        aad = self._aad(kind, sequence, len(sealed) - TAG)
        try:
            return self.aead.decrypt(self._nonce(sequence, wire), sealed, aad)
        except InvalidTag:
            return None

    def keystream(self, sequence: int, wire: bytes, size: int) -> bytes:
        """The first bytes that the plaintext of a record is combined with."""
        return self.aead.encrypt(self._nonce(sequence, wire), bytes(size), None)[:size]


@dataclass
class Schedule:
    """The epochs of a direction in order; TLS 1.3: handshake, then traffic secrets 0, 1, ..."""

    epochs: list[Epoch]
    secret: bytes = field(default=b"", repr=False)

    def get(self, index: int) -> Epoch:
        """An epoch; the next one is derived (RFC 8446 §7.2)."""
        if index == len(self.epochs):
            suite = self.epochs[0].suite
            size = len(self.secret)
            self.secret = expand_label(self.secret, b"traffic upd", size, suite.hash)
            self.epochs.append(traffic_epoch(suite, self.secret))
        return self.epochs[index]


def traffic_epoch(suite: Suite, secret: bytes) -> Epoch:
    """The key and IV of a TLS 1.3 traffic secret (RFC 8446 §7.3)."""
    key = expand_label(secret, b"key", suite.key_size, suite.hash)
    return Epoch("1.3", suite, key, expand_label(secret, b"iv", 12, suite.hash))


def schedules12(suite: Suite, master: bytes, client: bytes, server: bytes) -> tuple[Schedule, Schedule]:
    """Client's and server's keys from the master secret and both randoms (RFC 5246 §6.3)."""
    iv_size = 12 if suite.chacha else 4
    key = suite.key_size
    block = prf(master, b"key expansion", server + client, 2 * (key + iv_size), suite.hash)
    ivs = block[2 * key :]
    return (
        Schedule([Epoch("1.2", suite, block[:key], ivs[:iv_size])]),
        Schedule([Epoch("1.2", suite, block[key : 2 * key], ivs[iv_size:])]),
    )


def schedules13(suite: Suite, log: Keylog, random: bytes) -> tuple[Schedule, Schedule] | None:
    """Client's and server's keys from the key log; None if one of the four secrets is missing."""
    size = hashlib.new(suite.hash).digest_size
    found = []
    for side in ("CLIENT", "SERVER"):
        handshake = log.get(f"{side}_HANDSHAKE_TRAFFIC_SECRET", random)
        traffic = log.get(f"{side}_TRAFFIC_SECRET_0", random)
        if handshake is None or traffic is None or len(handshake) != size or len(traffic) != size:
            return None
        epochs = [traffic_epoch(suite, handshake), traffic_epoch(suite, traffic)]
        found.append(Schedule(epochs, traffic))
    return found[0], found[1]
