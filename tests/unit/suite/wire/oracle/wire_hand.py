"""TLS sessions by hand, every record of which a test can bend. Shares no code with offload/suite/wire."""

from __future__ import annotations

import hashlib
import hmac
import struct
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

from offload.suite.wire.ask import Ask
from offload.suite.wire.oracle import verify
from tests.unit.suite.wire.oracle.wire_make import Flow

SUITES = {
    ("1.2", "gcm"): (0xC02F, 16, 4, "sha256"),
    ("1.2", "gcm256"): (0xC030, 32, 4, "sha384"),
    ("1.2", "chacha"): (0xCCA8, 32, 12, "sha256"),
    ("1.3", "gcm"): (0x1301, 16, 12, "sha256"),
    ("1.3", "gcm256"): (0x1302, 32, 12, "sha384"),
    ("1.3", "chacha"): (0x1303, 32, 12, "sha256"),
}
RANDOMS = {"client": b"C" * 32, "server": b"S" * 32}
PAYLOAD = b"".join(hashlib.sha256(b"%d" % i).digest() for i in range(120))


def secret(name: str, size: int) -> bytes:
    """A secret that the test knows."""
    return hashlib.sha512(name.encode()).digest()[:size]


def prf(key: bytes, seed: bytes, size: int, name: str) -> bytes:
    """P_hash of RFC 5246 §5."""
    out, block = b"", seed
    while len(out) < size:
        block = hmac.new(key, block, name).digest()
        out += hmac.new(key, block + seed, name).digest()
    return out[:size]


def label(key: bytes, name: bytes, size: int, hash_name: str) -> bytes:
    """HKDF-Expand-Label of RFC 8446 §7.1."""
    info = struct.pack(">HB", size, 6 + len(name)) + b"tls13 " + name + b"\0"
    algorithm = hashes.SHA256() if hash_name == "sha256" else hashes.SHA384()
    return HKDFExpand(algorithm, size, info).derive(key)


def record(kind: int, body: bytes, version: int = 0x0303) -> bytes:
    return struct.pack(">BHH", kind, version, len(body)) + body


def message(kind: int, body: bytes) -> bytes:
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


class Side:
    """Keys, counters and bytes of one direction."""

    def __init__(self) -> None:
        self.out = bytearray()
        self.sequence, self.nonce, self.epoch = 0, 0x1122334455667788, 0
        self.keys: list[tuple[bytes, bytes]] = []
        self.starts: list[int] = []


class Hand:
    """A session: hellos and Finished are there, `say` and `close` add; `out` of a side can be bent."""

    def __init__(self, version: str = "1.2", cipher: str = "gcm", finished: bool = True) -> None:
        self.version, self.cipher = version, cipher
        self.suite, self.key_size, self.iv_size, self.hash = SUITES[version, cipher]
        self.client, self.server = Side(), Side()
        self.lines: list[str] = []
        self._derive()
        self.add("client", record(22, message(1, b"\3\3" + RANDOMS["client"] + b"\0\0\2\x13\1\1\0"), 0x0301))
        self.add("server", record(22, message(2, self.server_hello())))
        if version == "1.2":
            self.add("server", record(22, message(11, b"certificate") + message(14, b"")))
        for name in ("server", "client") if finished else ():
            self.add(name, record(20, b"\1"))
            self.seal(name, 22, message(20, b"f" * 12))
            if version == "1.3":
                self.side(name).epoch, self.side(name).sequence = 1, 0

    def server_hello(self, version: bytes = b"\3\3") -> bytes:
        """The body of a ServerHello."""
        body = version + RANDOMS["server"] + b"\0" + struct.pack(">HB", self.suite, 0)
        return body + (b"\0\6\0\x2b\0\2\3\4" if self.version == "1.3" else b"\0\0")

    def side(self, name: str) -> Side:
        """client or server."""
        return self.client if name == "client" else self.server

    def _derive(self) -> None:
        size = hashlib.new(self.hash).digest_size
        if self.version == "1.2":
            master = secret("master", 48)
            self._line("CLIENT_RANDOM", master)
            seed = b"key expansion" + RANDOMS["server"] + RANDOMS["client"]
            block = prf(master, seed, 2 * (self.key_size + self.iv_size), self.hash)
            ivs = block[2 * self.key_size :]
            self.client.keys.append((block[: self.key_size], ivs[: self.iv_size]))
            self.server.keys.append((block[self.key_size : 2 * self.key_size], ivs[self.iv_size :]))
            return
        for name in ("CLIENT", "SERVER"):
            for kind in ("HANDSHAKE_TRAFFIC_SECRET", "TRAFFIC_SECRET_0"):
                value = secret(name + kind, size)
                self._line(f"{name}_{kind}", value)
                self._traffic(name.lower(), value)
            self._traffic(name.lower(), label(value, b"traffic upd", size, self.hash))

    def _traffic(self, name: str, value: bytes) -> None:
        key = label(value, b"key", self.key_size, self.hash)
        self.side(name).keys.append((key, label(value, b"iv", 12, self.hash)))

    def _line(self, name: str, value: bytes) -> None:
        self.lines.append(f"{name} {RANDOMS['client'].hex()} {value.hex()}")

    @property
    def keylog(self) -> bytes:
        """What a key log would have."""
        return "\n".join(["# by hand", *self.lines, ""]).encode()

    def add(self, name: str, data: bytes) -> None:
        """Bytes as they are: a record begins here."""
        side = self.side(name)
        side.starts.append(len(side.out))
        side.out += data

    def sealed(self, name: str, kind: int, plain: bytes, **bent: Any) -> bytes:
        """A protected record; `bent`: sequence, nonce, epoch, keys_of, pad other than right."""
        side = self.side(name)
        key, iv = self.side(bent.get("keys_of", name)).keys[bent.get("epoch", side.epoch)]
        sequence = bent.get("sequence", side.sequence)
        aead = ChaCha20Poly1305(key) if self.cipher == "chacha" else AESGCM(key)
        nonce = (int.from_bytes(iv, "big") ^ sequence).to_bytes(len(iv), "big")
        if self.version == "1.3":
            inner = plain + bytes([kind]) + bytes(bent.get("pad", 0))
            head = struct.pack(">BHH", 23, 0x0303, len(inner) + 16)
            return head + aead.encrypt(nonce, inner, head)
        aad = struct.pack(">QBHH", sequence, kind, 0x0303, len(plain))
        explicit = b""
        if self.cipher != "chacha":
            explicit = struct.pack(">Q", bent.get("nonce", side.nonce))
            nonce = iv + explicit
        return record(kind, explicit + aead.encrypt(nonce, plain, aad))

    def seal(self, name: str, kind: int, plain: bytes, **bent: Any) -> None:
        """A protected record joins the stream."""
        side = self.side(name)
        self.add(name, self.sealed(name, kind, plain, **bent))
        side.sequence += 1
        side.nonce += 1

    def say(self, name: str, data: bytes, size: int = 300, **bent: Any) -> None:
        """Application data in records of `size`."""
        for at in range(0, len(data), size):
            self.seal(name, 23, data[at : at + size], **bent)

    def close(self, *names: str) -> Hand:
        for name in names or ("client", "server"):
            self.seal(name, 21, b"\1\0")
        return self

    def flow(self, fin: bool = True) -> Flow:
        """The session as TCP."""
        flow = Flow()
        hello = (*self.client.starts, len(self.client.out))[1]
        flow.send("client", bytes(self.client.out[:hello]))
        flow.send("server", bytes(self.server.out))
        flow.send("client", bytes(self.client.out[hello:]))
        if fin:
            flow.fin()
        return flow

    def verify(self, folder: Path, payload: bytes | None = PAYLOAD, fin: bool = True, **more: Any) -> Any:
        """The oracle's document."""
        capture = self.flow(fin).write(folder / "c.pcap")
        return verify(Ask(capture, more.pop("keylog", self.keylog), payload, **more))


def one(document: Any) -> Any:
    (found,) = document["connections"]
    return found


def codes(document: Any) -> list[tuple[str, str]]:
    """(code, direction) of the problems of the only connection."""
    return [(p["code"], p["direction"]) for p in one(document)["problems"]]
