"""Is what somebody hands over a connected TCP socket on which the kernel encrypts? The socket is asked."""

from __future__ import annotations

import os
import socket

TCP_ULP, SOL_TLS, TLS_TX = 31, 282, 1  # include/uapi/linux/tcp.h, linux/socket.h, linux/tls.h
INFO = 4  # bytes of struct tls_crypto_info: version and cipher, no key


class Unfit(Exception):
    """Why a descriptor is not what was promised, in words."""


def taken(fd: int) -> socket.socket:
    """Return the socket of a descriptor, in blocking mode. Unfit, and it is closed, for anything else."""
    try:
        sock = socket.socket(fileno=fd)
    except OSError:
        os.close(fd)
        raise Unfit("a descriptor that is not a socket") from None
    try:
        _connected(sock)
        _encrypts(sock)
        sock.setblocking(True)
    except Unfit:
        sock.close()
        raise
    return sock


def _connected(sock: socket.socket) -> None:
    """Unfit if it is no TCP socket, or if its connection has ended."""
    if sock.family not in (socket.AF_INET, socket.AF_INET6):
        raise Unfit("a descriptor that is not a connected TCP socket")
    try:
        sock.getpeername()
    except OSError:
        error = sock.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        why = f"the connection ended right after the handshake: {os.strerror(error)}"
        raise Unfit(why if error else "a descriptor that is not a connected TCP socket") from None


def _encrypts(sock: socket.socket) -> None:
    """Unfit if plaintext that is written to it would go to the wire as it is."""
    try:
        ulp = sock.getsockopt(socket.IPPROTO_TCP, TCP_ULP, 16).rstrip(b"\0")
        sends = ulp == b"tls" and any(sock.getsockopt(SOL_TLS, TLS_TX, INFO))
    except OSError:
        sends = False
    if not sends:
        raise Unfit("the kernel does not encrypt on the socket")
