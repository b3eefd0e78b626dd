"""How ktls-handoff is called, and what its one line of JSON says."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from offload.errors import ConfigError, RigError
from offload.paths import BUILD
from offload.suite.traffic.certs import NAME, Placed

PROGRAM = str(BUILD / "ktls-handoff")
ISN = BUILD / "isn.so"  # native/isn
# (TLS version, kernel's cipher name) -> OpenSSL's name; TLS 1.2 with the RSA certificate of certs.py
CIPHERS = {
    ("1.2", "aes-gcm-128"): "ECDHE-RSA-AES128-GCM-SHA256",
    ("1.2", "aes-gcm-256"): "ECDHE-RSA-AES256-GCM-SHA384",
    ("1.2", "chacha20-poly1305"): "ECDHE-RSA-CHACHA20-POLY1305",
    ("1.3", "aes-gcm-128"): "TLS_AES_128_GCM_SHA256",
    ("1.3", "aes-gcm-256"): "TLS_AES_256_GCM_SHA384",
    ("1.3", "chacha20-poly1305"): "TLS_CHACHA20_POLY1305_SHA256",
}


@dataclass(frozen=True)
class Line:
    """The helper's line: `tx` and `rx` are hw, sw or none; not `ok`: see cause, message, exit.

    `tx_by`, `rx_by`: the device that does it, or the kernel's crypto driver.
    """

    ok: bool
    via: str = ""
    version: str = ""
    cipher: str = ""
    kernel_cipher: str = ""
    tx: str = "none"
    rx: str = "none"
    tx_by: str = ""
    rx_by: str = ""
    peer: str = ""
    pending: int = 0
    cause: str = ""
    message: str = ""
    exit: int = 0
    said: str = ""  # standard error: warnings for people


def parse(line: Mapping[str, Any] | None) -> Line | None:
    """Return the line as a value; what the helper may add later is ignored. None for None."""
    if line is None:
        return None
    known = {k: v for k, v in line.items() if k in Line.__dataclass_fields__ and v is not None}
    return Line(**known)


def _common(version: str, cipher: str, want: str, timeout: float, fallback: str) -> list[str]:
    argv = [
        "--tls",
        version,
        "--ciphers",
        CIPHERS[version, cipher],
        "--want",
        want,
        "--timeout",
        f"{timeout:g}",
    ]
    return argv + (["--fallback", fallback] if fallback else [])


def connect(
    host: str,
    port: int,
    ca: str,
    *,
    version: str = "1.2",
    cipher: str = "aes-gcm-256",
    want: str = "tx",
    timeout: float = 40,
    fallback: str = "",
    staple: bool = False,
) -> list[str]:
    """Return the command that connects, verifies the peer by the CA file, and hands the socket over.

    `staple`: ask for a stapled OCSP answer, as stunnel does from 5.71 on.
    """
    verify = ["--ca", ca, "--name", NAME, *(["--staple"] if staple else [])]
    return [PROGRAM, "connect", host, str(port), *verify, *_common(version, cipher, want, timeout, fallback)]


# asks a resident, and passes its answer on to --fd as ktls-handoff itself would
RELAY = """
import hashlib, socket, sys
path, ca, policy = sys.argv[1:4]
with open(ca, "rb") as trust:
    policy += "CAfile=" + hashlib.sha256(trust.read()).hexdigest() + chr(10)
words = [*sys.argv[4:-2], "--digest", hashlib.sha256(policy.encode()).hexdigest()]
asked = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
asked.connect(path)
asked.send("".join(word + chr(10) for word in words).encode())
line, fds, _, _ = socket.recv_fds(asked, 8192, 1)
socket.send_fds(socket.socket(fileno=int(sys.argv[-1])), [line], fds)
"""


def serve(path: str, at: Placed, *, version: str = "1.2", cipher: str = "aes-gcm-256") -> list[str]:
    """Return the command of a resident that verifies by the CA and serves on this unix socket."""
    return [PROGRAM, "serve", path, "--ca", at.ca, *_common(version, cipher, "tx", 40, "")]


def ask(
    path: str, at: Placed, host: str, port: int, *, version: str = "1.2", cipher: str = "aes-gcm-256"
) -> list[str]:
    """Return the command that lets a resident of `serve` connect, and hands over what it answers."""
    policy = f"sslVersion=TLSv{version}\nciphers={CIPHERS[version, cipher]}\nverify=chain\n"
    words = [path, at.ca, policy, "connect", host, str(port), "--name", NAME]
    return ["/usr/bin/python3", "-I", "-c", RELAY, *words]


def begin_at(number: int) -> dict[str, str]:
    """Return the environment in which a connecting helper's SYN has this sequence number, 1 to 2^32 - 1.

    ConfigError for another number; RigError if the preload is not built.
    """
    if not 0 < number < 1 << 32:
        raise ConfigError(f"sequence number {number}", "1 to 4294967295")
    if not ISN.exists():
        raise RigError(f"{ISN.name} is not built", "make build")
    return {"LD_PRELOAD": str(ISN), "KTLS_ISN": str(number)}


def accept(
    address: str,
    port: int,
    at: Placed,
    *,
    version: str = "1.2",
    cipher: str = "aes-gcm-256",
    want: str = "both",
    timeout: float = 40,
    fallback: str = "",
) -> list[str]:
    """Return the command that waits for one client and hands its socket over."""
    pair = ["--cert", at.cert, "--key", at.key, "--announce"]
    return [PROGRAM, "accept", address, str(port), *pair, *_common(version, cipher, want, timeout, fallback)]
