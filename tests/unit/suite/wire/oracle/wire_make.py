"""Small captures by hand: TCP frames, pcap files, real TLS sessions. For the tests of the oracle."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import struct
from functools import cache
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

FIN, SYN, RST, ACK = 1, 2, 4, 16
CLIENT, SERVER = ("192.0.2.1", 40000), ("192.0.2.2", 443)


def total(data: bytes) -> int:
    """The Internet checksum, word by word (RFC 1071)."""
    data += b"\0" * (len(data) % 2)
    value = sum(struct.unpack(f">{len(data) // 2}H", data))
    while value >> 16:
        value = (value & 0xFFFF) + (value >> 16)
    return value ^ 0xFFFF


def tcp(source: tuple[str, int], target: tuple[str, int], seq: int, flags: int, data: bytes = b"") -> bytes:
    """An IP packet with a TCP segment, checksums right."""
    a, b = ipaddress.ip_address(source[0]), ipaddress.ip_address(target[0])
    head = struct.pack(">HHIIBBHHH", source[1], target[1], seq % 2**32, 0, 0x50, flags, 65535, 0, 0)
    pseudo = a.packed + b.packed + struct.pack(">II", len(head + data), 6)
    head = head[:16] + struct.pack(">H", total(pseudo + head + data)) + head[18:]
    if a.version == 6:
        return struct.pack(">IHBB", 0x60000000, len(head + data), 6, 64) + a.packed + b.packed + head + data
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(head + data), 0, 0x4000, 64, 6, 0) + a.packed + b.packed
    return ip[:10] + struct.pack(">H", total(ip)) + ip[12:] + head + data


def ethernet(packet: bytes, tags: tuple[int, ...] = ()) -> bytes:
    kind = b"\x08\x00" if packet[0] >> 4 == 4 else b"\x86\xdd"
    return bytes(range(12)) + b"".join(struct.pack(">HH", tag, 7) for tag in tags) + kind + packet


def pcap(
    frames: list[bytes], link: int = 1, order: str = "<", magic: int = 0xA1B2C3D4, snap: int = 0
) -> bytes:
    """A pcap file; `snap` cuts the frames."""
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 262144, link)
    for frame in frames:
        kept = frame[: snap or None]
        out += struct.pack(order + "IIII", 1, 2, len(kept), len(frame)) + kept
    return out


class Flow:
    """One TCP connection as frames: `both` directions have their own sequence numbers."""

    def __init__(
        self, client: tuple[str, int] = CLIENT, server: tuple[str, int] = SERVER, syn: bool = True
    ) -> None:
        self.ends = {"client": (client, server), "server": (server, client)}
        self.base = {"client": 1000, "server": 4294967000}
        self.sent = {"client": 0, "server": 0}
        self.frames: list[bytes] = []
        if syn:
            self.frame("client", -1, SYN)
            self.frame("server", -1, SYN | ACK)

    def frame(self, side: str, offset: int, flags: int = ACK, data: bytes = b"") -> None:
        """A segment at a stream offset."""
        self.frames.append(ethernet(tcp(*self.ends[side], self.base[side] + offset, flags, data)))

    def send(self, side: str, data: bytes, mss: int = 1400) -> None:
        """The next bytes of a stream, in segments."""
        for at in range(0, len(data), mss):
            self.frame(side, self.sent[side] + at, ACK, data[at : at + mss])
        self.sent[side] += len(data)

    def fin(self, *sides: str) -> None:
        """The end of streams."""
        for side in sides or ("client", "server"):
            self.frame(side, self.sent[side], FIN | ACK)

    def write(self, path: Path) -> Path:
        """A pcap file with the frames so far."""
        path.write_bytes(pcap(self.frames))
        return path


@cache
def certificate() -> str:
    """A key and a self-signed certificate, in PEM."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test")])
    start = datetime.datetime(2020, 1, 1)
    builder = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(key.public_key())
    builder = builder.serial_number(1).not_valid_before(start).not_valid_after(start.replace(year=2090))
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    cert = builder.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    return (private + cert).decode()


class Talk:
    """A real TLS session of OpenSSL with itself; what passes between the ends goes into a Flow."""

    def __init__(self, folder: Path, version: ssl.TLSVersion, ciphers: str, flow: Flow | None = None) -> None:
        pem = folder / "pem"
        pem.write_text(certificate())
        self.keylog = folder / "keys.txt"
        self.flow = flow or Flow()
        contexts = [ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)]
        contexts[0].check_hostname, contexts[0].verify_mode = False, ssl.CERT_NONE
        contexts[0].keylog_filename = str(self.keylog)
        contexts[1].load_cert_chain(pem)
        for context in contexts:
            context.minimum_version = context.maximum_version = version
            if ciphers:
                context.set_ciphers(ciphers)
        self.bios = [(ssl.MemoryBIO(), ssl.MemoryBIO()) for _ in contexts]
        self.ends = [c.wrap_bio(*self.bios[i], server_side=i == 1) for i, c in enumerate(contexts)]
        for _ in range(3):
            for end in self.ends:
                self._try(end.do_handshake)

    def _try(self, call) -> None:  # type: ignore[no-untyped-def]
        try:
            call()
        except ssl.SSLError as error:
            assert error.errno in (ssl.SSL_ERROR_WANT_READ, ssl.SSL_ERROR_SYSCALL), error
        self.pump()

    def pump(self) -> None:
        """Carry what each end wrote to the other."""
        for i, side in enumerate(("client", "server")):
            data = self.bios[i][1].read()
            if data:
                self.flow.send(side, data)
                self.bios[1 - i][0].write(data)

    def say(self, side: str, data: bytes) -> None:
        """Application data, which the other end reads."""
        self._try(lambda: self.ends[side == "server"].write(data))
        other = self.ends[side == "client"]
        got = 0
        while got < len(data):
            got += len(other.read(65536))

    def close(self, fin: bool = True) -> Path:
        """close_notify from both ends, FIN; the key log."""
        for end in (*self.ends, self.ends[0]):
            self._try(end.unwrap)
        if fin:
            self.flow.fin()
        return self.keylog
