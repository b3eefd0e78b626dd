"""Makes small captures with known keys and payload: seeds for the fuzzer and cases for the smoke test."""

from __future__ import annotations

import hashlib
import hmac
import struct
from dataclasses import dataclass, field

from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305

SUITES = {
    0x009E: ("sha256", 16, "gcm"),
    0x009F: ("sha384", 32, "gcm"),
    0xC02B: ("sha256", 16, "gcm"),
    0xC02C: ("sha384", 32, "gcm"),
    0xC02F: ("sha256", 16, "gcm"),
    0xC030: ("sha384", 32, "gcm"),
    0xCCA8: ("sha256", 32, "chacha"),
    0xCCA9: ("sha256", 32, "chacha"),
    0xCCAA: ("sha256", 32, "chacha"),
    0x1301: ("sha256", 16, "gcm"),
    0x1302: ("sha384", 32, "gcm"),
    0x1303: ("sha256", 32, "chacha"),
}
CLIENT_RANDOM, SERVER_RANDOM = bytes(range(32)), bytes(range(100, 132))
MASTER = bytes((7 * i + 1) & 255 for i in range(48))
LABELS = [
    "CLIENT_HANDSHAKE_TRAFFIC_SECRET",
    "SERVER_HANDSHAKE_TRAFFIC_SECRET",
    "CLIENT_TRAFFIC_SECRET_0",
    "SERVER_TRAFFIC_SECRET_0",
]


def payload_bytes(size: int, seed: bytes = b"payload") -> bytes:
    """Bytes that look random and are the same every time."""
    out = b"".join(hashlib.sha256(seed + struct.pack(">I", i)).digest() for i in range(size // 32 + 1))
    return out[:size]


def secret(label: str, length: int) -> bytes:
    """The secret of a TLS 1.3 label: anything, as long as both sides know it."""
    return payload_bytes(length, label.encode())


def prf(name: str, key: bytes, seed: bytes, length: int) -> bytes:
    """RFC 5246 section 5."""
    out, a = b"", seed
    while len(out) < length:
        a = hmac.digest(key, a, name)
        out += hmac.digest(key, a + seed, name)
    return out[:length]


def expand(name: str, key: bytes, label: str, length: int) -> bytes:
    """RFC 8446 section 7.1, HKDF-Expand-Label with empty context."""
    full = b"tls13 " + label.encode()
    return hmac.digest(key, struct.pack(">HB", length, len(full)) + full + b"\0\1", name)[:length]


@dataclass
class Keys:
    """Sealing state of one direction."""

    suite: int
    key: bytes
    iv: bytes
    secret: bytes = b""
    seq: int = 0
    nonce: int = 0x1122334455667788

    def aead(self) -> AESGCM | ChaCha20Poly1305:
        """The cipher with its key."""
        return AESGCM(self.key) if SUITES[self.suite][2] == "gcm" else ChaCha20Poly1305(self.key)

    def xored(self) -> bytes:
        """The nonce from iv and sequence."""
        return (int.from_bytes(self.iv, "big") ^ self.seq).to_bytes(12, "big")

    def seal12(self, kind: int, data: bytes) -> bytes:
        """One TLS 1.2 record."""
        aad = struct.pack(">QBHH", self.seq, kind, 0x0303, len(data))
        if len(self.iv) == 4:
            explicit = self.nonce.to_bytes(8, "big")
            body = explicit + self.aead().encrypt(self.iv + explicit, data, aad)
        else:
            body = self.aead().encrypt(self.xored(), data, aad)
        self.seq, self.nonce = self.seq + 1, (self.nonce + 1) % 2**64
        return struct.pack(">BHH", kind, 0x0303, len(body)) + body

    def seal13(self, kind: int, data: bytes, padding: int = 0) -> bytes:
        """One TLS 1.3 record."""
        inner = data + bytes([kind]) + bytes(padding)
        head = struct.pack(">BHH", 23, 0x0303, len(inner) + 16)
        body = self.aead().encrypt(self.xored(), inner, head)
        self.seq += 1
        return head + body

    def update(self) -> None:
        """The next epoch of TLS 1.3."""
        name, size, _ = SUITES[self.suite]
        self.secret = expand(name, self.secret, "traffic upd", len(self.secret))
        self.key, self.iv, self.seq = expand(name, self.secret, "key", size), expand(name, self.secret, "iv", 12), 0


def keys13(suite: int, label: str) -> Keys:
    """Keys under the secret of a label."""
    name, size, _ = SUITES[suite]
    s = secret(label, hashlib.new(name).digest_size)
    return Keys(suite, expand(name, s, "key", size), expand(name, s, "iv", 12), s)


def keys12(suite: int) -> tuple[Keys, Keys]:
    """Keys of client and server."""
    name, size, mode = SUITES[suite]
    iv = 4 if mode == "gcm" else 12
    block = prf(name, MASTER, b"key expansion" + SERVER_RANDOM + CLIENT_RANDOM, 2 * (size + iv))
    cut = [block[:size], block[size : 2 * size], block[2 * size : 2 * size + iv], block[2 * size + iv :]]
    return Keys(suite, cut[0], cut[2]), Keys(suite, cut[1], cut[3])


def clear(kind: int, data: bytes) -> bytes:
    """A record without protection."""
    return struct.pack(">BHH", kind, 0x0303, len(data)) + data


def message(kind: int, body: bytes) -> bytes:
    """A handshake message."""
    return bytes([kind]) + len(body).to_bytes(3, "big") + body


def client_hello() -> bytes:
    """As much of a ClientHello as a verifier looks at."""
    return message(1, b"\x03\x03" + CLIENT_RANDOM + b"\0" + b"\0\2\xc0\x30" + b"\1\0")


def server_hello(suite: int) -> bytes:
    """A ServerHello that chooses the suite."""
    body = b"\x03\x03" + SERVER_RANDOM + b"\0" + struct.pack(">HB", suite, 0)
    if suite & 0xFF00 == 0x1300:
        body += b"\0\6" + b"\0\x2b\0\2\3\4"
    return message(2, body)


def keylog() -> bytes:
    """Every secret that the captures of this file need."""
    lines = [f"CLIENT_RANDOM {CLIENT_RANDOM.hex()} {MASTER.hex()}"]
    return ("\n".join(lines) + "\n").encode()


def keylog13(suite: int) -> bytes:
    """The four secrets of a TLS 1.3 suite."""
    size = hashlib.new(SUITES[suite][0]).digest_size
    return "".join(f"{x} {CLIENT_RANDOM.hex()} {secret(x, size).hex()}\n" for x in LABELS).encode()


@dataclass
class Streams:
    """What client and server send, in order."""

    client: list[bytes] = field(default_factory=list)
    server: list[bytes] = field(default_factory=list)


def streams12(suite: int, payload: bytes, size: int) -> Streams:
    """A TLS 1.2 connection whose client sends the payload in records of `size`."""
    ck, sk = keys12(suite)
    s = Streams([clear(22, client_hello())], [clear(22, server_hello(suite) + message(14, b""))])
    s.client += [clear(22, message(16, b"k" * 32)), clear(20, b"\1"), ck.seal12(22, message(20, b"f" * 12))]
    s.server += [clear(20, b"\1"), sk.seal12(22, message(20, b"F" * 12)), sk.seal12(23, b"reply")]
    s.client += [ck.seal12(23, payload[i : i + size]) for i in range(0, len(payload), size)]
    s.client += [ck.seal12(21, b"\1\0")]
    s.server += [sk.seal12(21, b"\1\0")]
    return s


def streams13(suite: int, payload: bytes, size: int, padding: int = 0) -> Streams:
    """A TLS 1.3 connection, with a KeyUpdate of the client in the middle."""
    ch, sh, ca, sa = (keys13(suite, x) for x in LABELS)
    finished = message(20, b"f" * 32)
    s = Streams([clear(22, client_hello()), clear(20, b"\1"), ch.seal13(22, finished)])
    s.server = [clear(22, server_hello(suite)), clear(20, b"\1"), sh.seal13(22, message(8, b"\0\0") + finished)]
    s.server += [sa.seal13(22, message(4, b"ticket")), sa.seal13(23, b"reply"), sa.seal13(21, b"\1\0")]
    half = len(payload) // size // 2 * size
    s.client += [ca.seal13(23, payload[i : i + size], padding) for i in range(0, half, size)]
    s.client += [ca.seal13(22, message(24, b"\0"))]
    ca.update()
    s.client += [ca.seal13(23, payload[i : i + size]) for i in range(half, len(payload), size)]
    s.client += [ca.seal13(21, b"\1\0")]
    return s


@dataclass
class Segment:
    """One TCP segment; `up` is from the client."""

    up: bool
    seq: int
    data: bytes
    flags: int = 0x18


def segments(s: Streams, mss: int, isn: int = 0xFFFFFF00) -> list[Segment]:
    """Both streams with SYN and FIN: client's hello, all of the server, all else of the client."""
    up, down = b"".join(s.client), b"".join(s.server)
    out = [Segment(True, isn, b"", 2), Segment(False, isn, b"", 18)]
    hello = len(s.client[0])
    parts = [(True, up, 0, hello), (False, down, 0, len(down)), (True, up, hello, len(up))]
    for is_up, data, begin, end in parts:
        for at in range(begin, end, mss):
            out.append(Segment(is_up, (isn + 1 + at) % 2**32, data[at : min(at + mss, end)]))
    out += [Segment(True, (isn + 1 + len(up)) % 2**32, b"", 17), Segment(False, (isn + 1 + len(down)) % 2**32, b"", 17)]
    return out


def frame(s: Segment, v6: bool = False) -> bytes:
    """Ethernet, IP and TCP around a segment; checksums are left out."""
    ports = (40000, 443) if s.up else (443, 40000)
    tcp = struct.pack(">HHIIBBHHH", *ports, s.seq, 1, 0x50, s.flags, 1000, 0, 0) + s.data
    a, b = (1, 2) if s.up else (2, 1)
    if v6:
        net = bytes.fromhex("20010db8") + bytes(11)
        ip = struct.pack(">IHBB", 6 << 28, len(tcp), 6, 64) + net + bytes([a]) + net + bytes([b])
        return bytes(12) + b"\x86\xdd" + ip + tcp
    size = 20 + len(tcp) if len(tcp) < 65516 else 0
    ip = struct.pack(">BBHHHBBH", 0x45, 0, size, 0, 0, 64, 6, 0) + bytes([192, 0, 2, a, 192, 0, 2, b])
    return bytes(12) + b"\x08\x00" + ip + tcp


def pcap(frames: list[bytes]) -> bytes:
    """A little-endian pcap of Ethernet frames."""
    head = struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, 1)
    return head + b"".join(struct.pack("<IIII", 0, 0, len(f), len(f)) + f for f in frames)


def block(kind: int, body: bytes) -> bytes:
    """A pcapng block."""
    body += bytes(-len(body) % 4)
    return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)


def pcapng(frames: list[bytes]) -> bytes:
    """A pcapng of Ethernet frames: enhanced packet blocks, and a simple one at the end."""
    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)) + block(1, struct.pack("<HHI", 1, 0, 0))
    for f in frames[:-1]:
        out += block(6, struct.pack("<IIIII", 0, 0, 0, len(f), len(f)) + f)
    return out + block(3, struct.pack("<I", len(frames[-1])) + frames[-1])
