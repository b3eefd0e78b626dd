"""Runs on the card's host, alone, as root: which connections does the card take when it is offered them?

usage: probe_offer.py DEV. Prints one line of JSON. Needs Python's standard library and ss. Each connection
exists in this kernel only: TCP_REPAIR makes an established socket without a handshake and drops it without
a reset, so that no frame leaves. The far address is one of RFC 5737, which belongs to nobody.
"""

from __future__ import annotations

import json
import os
import re
import socket
import struct
import subprocess
import sys

SOL_TCP, TCP_REPAIR, TCP_ULP = 6, 19, 31  # include/uapi/linux/tcp.h
SOL_TLS, OPTIONS = 282, {"tx": 1, "rx": 2}
SO_BINDTODEVICE = 25
FAR = ("192.0.2.254", "198.51.100.254", "203.0.113.254")  # nobody has them, but a test bench may have one
VERSIONS = {"1.2": 0x0303, "1.3": 0x0304}
# name: number, bytes of nonce + key + salt + record number (include/uapi/linux/tls.h)
CIPHERS = {"aes-gcm-128": (51, 36), "aes-gcm-256": (52, 52), "chacha20-poly1305": (54, 52)}


def offer(dev: str, far: str, version: int, number: int, size: int) -> dict[str, str]:
    """Offer one kind in both directions: hw, sw or none, as the kernel says; {} if `far` is one of ours."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
        one.setsockopt(socket.SOL_SOCKET, SO_BINDTODEVICE, dev.encode() + b"\0")
        one.setsockopt(SOL_TCP, TCP_REPAIR, 1)
        one.connect((far, 443))
        if one.getsockname()[0] == far:
            return {}  # then the way to it is not through the card
        one.setsockopt(SOL_TCP, TCP_ULP, b"tls")
        for option in OPTIONS.values():
            try:
                one.setsockopt(SOL_TLS, option, struct.pack("=HH", version, number) + os.urandom(size))
            except OSError:
                continue  # the kernel has no such cipher: shown as none
        argv = ["ss", "-Htnei", f"( sport = :{one.getsockname()[1]} and dst {far} )"]
        shown = subprocess.run(argv, capture_output=True, text=True, check=True).stdout
    if "tcp-ulp-tls" not in shown:
        raise OSError(0, "ss does not show kernel TLS")
    return {d: (re.findall(rf"{d}conf: ([a-z-]+)", shown) or ["none"])[0] for d in OPTIONS}


def main() -> None:
    """Offer each kind; an error instead if there is one, in the system's words."""
    try:
        far = next(
            (a for a in FAR if offer(sys.argv[1], a, VERSIONS["1.2"], *CIPHERS["aes-gcm-128"])), FAR[0]
        )
        found = {
            f"{version} {cipher}": offer(sys.argv[1], far, wire, *kind)
            for version, wire in VERSIONS.items()
            for cipher, kind in CIPHERS.items()
        }
        sys.stdout.write(json.dumps(found) + "\n")
    except (OSError, subprocess.CalledProcessError) as exc:
        sys.stdout.write(json.dumps({"error": getattr(exc, "strerror", None) or str(exc)}) + "\n")


if __name__ == "__main__":
    main()
