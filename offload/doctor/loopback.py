"""Runs on the host that is asked about, alone: what do its kernel and its OpenSSL do with TLS on loopback?

Prints one line of JSON. Needs Python's standard library and no root. Nothing leaves the loopback device,
which no card serves, so all that is installed here is installed in software.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import ssl
import struct
import sys
import threading

SOL_TCP, TCP_ULP, SOL_TLS, TLS_TX, TLS_RX = 6, 31, 282, 1, 2  # include/uapi/linux/tcp.h, tls.h
OP_ENABLE_KTLS = 1 << 3  # openssl/ssl.h; Python names it from 3.12 on
TIMEOUT = 5.0
VERSIONS = {"1.2": 0x0303, "1.3": 0x0304}
# name: number, bytes of nonce + key + salt + record number (include/uapi/linux/tls.h)
CIPHERS = {"aes-gcm-128": (51, 36), "aes-gcm-256": (52, 52), "chacha20-poly1305": (54, 52)}
# Without certificate and key: anonymous, with itself alone. An old small group (RFC 2409 6.2, the least that
# OpenSSL takes) makes it quick; it guards nothing.
ANONYMOUS = "ADH-AES128-GCM-SHA256:@SECLEVEL=0"
GROUP = """-----BEGIN DH PARAMETERS-----
MIGHAoGBAP//////////yQ/aoiFowjTExmKLgNwc0SkCTgiKZ8x0Agu+pjsTmyJR
Sgh5jjQE3e+VGbPNOkMbMCsKbfJfFDdP4TVtbVHCReSFtXZiXn7G9ExC6aY37WsL
/1y29Aa37e44a/taiZ+lrp8kEXxLH+ZJKGZR7OZTgf//////////AgEC
-----END DH PARAMETERS-----
"""


def loopback_up() -> None:
    """Bring `lo` up: in a network namespace of our own it is down."""
    with socket.socket() as any_socket, contextlib.suppress(OSError):
        ask = struct.pack("16sH14x", b"lo", 0)
        flags = struct.unpack("16sH14x", fcntl.ioctl(any_socket, 0x8913, ask))[1]  # SIOCGIFFLAGS
        if not flags & 1:
            fcntl.ioctl(any_socket, 0x8914, struct.pack("16sH14x", b"lo", flags | 1))  # SIOCSIFFLAGS


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a TCP connection on loopback."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        near = socket.socket()  # create_connection() would load the tables of international names
        near.settimeout(TIMEOUT)
        near.connect(listener.getsockname())
        far = listener.accept()[0]
    far.settimeout(TIMEOUT)
    return near, far


def refusal(call: object, *words: object) -> int:
    """The error number of a socket option, or 0."""
    try:
        call(*words)  # type: ignore[operator]
    except OSError as exc:
        return exc.errno or -1
    return 0


def cell(version: int, number: int, size: int) -> dict[str, int]:
    """Whether the kernel takes keys of this kind, per direction: 0, or its error number."""
    near, far = pair()
    with near, far:
        if failed := refusal(near.setsockopt, SOL_TCP, TCP_ULP, b"tls"):
            return {"ulp": failed}
        keys = struct.pack("=HH", version, number) + os.urandom(size)
        return {
            "ulp": 0,
            "tx": refusal(near.setsockopt, SOL_TLS, TLS_TX, keys),
            "rx": refusal(near.setsockopt, SOL_TLS, TLS_RX, keys),
        }


def installed(sock: socket.socket) -> dict[str, bool]:
    """In which directions this socket's records are the kernel's business."""
    found = {}
    for word, option in (("tx", TLS_TX), ("rx", TLS_RX)):
        try:
            found[word] = any(sock.getsockopt(SOL_TLS, option, 4))
        except OSError:
            found[word] = False
    return found


def context(kind: int, options: int, group: str) -> ssl.SSLContext:
    """One end's settings."""
    made = ssl.SSLContext(kind)
    made.set_ciphers(ANONYMOUS)
    made.maximum_version = ssl.TLSVersion.TLSv1_2
    if kind == ssl.PROTOCOL_TLS_CLIENT:
        made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    else:
        made.load_dh_params(group)
    made.options |= options
    return made


def handshake(options: int, group: str) -> dict[str, bool]:
    """Let OpenSSL connect to itself; what it gave to the kernel. OSError (or ssl's) if it does not."""
    server = context(ssl.PROTOCOL_TLS_SERVER, 0, group)
    client = context(ssl.PROTOCOL_TLS_CLIENT, options, group)
    near, far = pair()

    def serve() -> None:
        with contextlib.suppress(OSError), server.wrap_socket(far, server_side=True) as end:
            end.recv(1)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    with client.wrap_socket(near) as end:
        found = installed(end)
        end.send(b"x")
    thread.join(TIMEOUT)
    return found


def openssl() -> dict[str, object]:
    """Return what OpenSSL gives to the kernel by itself, and when it is asked to."""
    with os.fdopen(os.memfd_create("group"), "wb", 0) as file:  # ssl reads parameters from a path only
        file.write(GROUP.encode())
        group = f"/proc/self/fd/{file.fileno()}"
        try:
            return {"plain": handshake(0, group), "asked": handshake(OP_ENABLE_KTLS, group)}
        except (OSError, ValueError) as exc:
            return {"error": f"{type(exc).__name__}: {exc}"}


def main() -> None:
    """Look, and print."""
    loopback_up()
    cells = {
        f"{version} {cipher}": cell(number, *kind)
        for version, number in VERSIONS.items()
        for cipher, kind in CIPHERS.items()
    }
    found = {"bits": struct.calcsize("P") * 8, "library": ssl.OPENSSL_VERSION, "cells": cells}
    sys.stdout.write(json.dumps({**found, "openssl": openssl()}) + "\n")


if __name__ == "__main__":
    main()
