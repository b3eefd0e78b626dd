"""What the pump sends and receives on: a socket whose calls end in time, and what kernel TLS says on it.

Runs on a host under test, inside the pump (pump.py): only the standard library.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import socket
import struct
import subprocess

SOL_TLS = 282
TLS_TX, TLS_RX, TLS_TX_ZEROCOPY_RO = 1, 2, 3  # include/uapi/linux/tls.h
TLS_SET_RECORD_TYPE, TLS_GET_RECORD_TYPE = 1, 2
ALERT, DATA = 21, 23  # RFC 8446 section 5.1
SOL_TCP, TCP_ULP = 6, 31


def payload(seed: str, size: int) -> bytes:
    """Return `size` bytes that depend on nothing but the seed; no shift maps them to themselves."""
    return hashlib.shake_128(seed.encode()).digest(size)


class Peerless(Exception):
    """The other end, or the program that should bring it, was not there; the message is for a person."""


class Channel:
    """A socket to send or receive on, with blocking calls that end after `timeout` seconds."""

    def __init__(
        self, sock: socket.socket, timeout: float, child: subprocess.Popen[bytes] | None = None
    ) -> None:
        self.sock, self.child, self.closed = sock, child, ""
        sock.setblocking(True)
        limit = struct.pack("ll", int(timeout), int(timeout % 1 * 1_000_000))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, limit)
        self.ktls = _has_ktls(sock)

    def send(self, data: bytes | memoryview, flags: int = 0) -> None:
        """Send all of it; one write where the kernel takes it in one."""
        view = memoryview(data)
        while view:
            view = view[self.sock.send(view, flags) :]

    def sendfile(self, fd: int, offset: int, size: int) -> None:
        """Send a part of a file without reading it."""
        while size:
            count = os.sendfile(self.sock.fileno(), fd, offset, size)
            offset, size = offset + count, size - count

    def receive(self, most: int) -> bytes:
        """Return the next bytes; none at the end of the stream (`closed` then says how it ended)."""
        while True:
            data, control, _, _ = self.sock.recvmsg(most, socket.CMSG_SPACE(1))
            kind = _record_type(control)
            if not data:
                self.closed = self.closed or "eof"
                return b""
            if kind == DATA:
                return data
            if kind == ALERT:
                self.closed = "close_notify" if data[1:] == b"\0" else f"alert {data[-1]}"
                return b""

    def receive_into(self, room: memoryview) -> int:
        """As `receive`, into room that is there: how many bytes; 0 at the end of the stream."""
        while True:
            size, control, _, _ = self.sock.recvmsg_into([room], socket.CMSG_SPACE(1))
            kind = _record_type(control)
            if not size:
                self.closed = self.closed or "eof"
                return 0
            if kind == DATA:
                return size
            if kind == ALERT:
                self.closed = "close_notify" if room[1] == 0 else f"alert {room[size - 1]}"
                return 0

    def finish(self) -> None:
        """End the stream and lose nothing: close_notify, no more writing, read on to the end.

        OSError unless the other end has ended the stream before: then it may be gone, and nothing is lost.
        """
        try:
            if self.ktls:  # a plain write would send the alert as data
                self.sock.sendmsg([b"\1\0"], [(SOL_TLS, TLS_SET_RECORD_TYPE, bytes([ALERT]))])
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_WR)
            while self.sock.recvmsg(65536, socket.CMSG_SPACE(1))[0]:
                pass
        except (BrokenPipeError, ConnectionResetError):
            if not self.closed:
                raise
        self.closed = self.closed or "eof"

    def close(self) -> None:
        """Close the socket and reap the program behind it."""
        self.sock.close()
        if self.child is not None:
            try:
                self.child.wait(5)
            except subprocess.TimeoutExpired:
                self.child.kill()
                self.child.wait()


def install_keys(sock: socket.socket, path: str) -> None:
    """Give the socket to kernel TLS with the keys of a file: half for sending, half for receiving.

    Each half is a tls12_crypto_info_* (include/uapi/linux/tls.h). Only a test does this: no handshake, and so
    nobody who vouches for the other end.
    """
    with open(path, "rb") as file:  # noqa: PTH123 - pathlib costs start-up time
        keys = file.read()
    half = len(keys) // 2
    sock.setsockopt(SOL_TCP, TCP_ULP, b"tls")
    sock.setsockopt(SOL_TLS, TLS_TX, keys[:half])
    sock.setsockopt(SOL_TLS, TLS_RX, keys[half:])


def _has_ktls(sock: socket.socket) -> bool:
    """Say whether the kernel makes the records sent here: getsockopt(TLS_TX) knows version and cipher."""
    with contextlib.suppress(OSError):
        if sock.family != socket.AF_UNIX and sock.getsockopt(SOL_TCP, TCP_ULP, 16).startswith(b"tls"):
            return len(sock.getsockopt(SOL_TLS, TLS_TX, 4)) == 4
    return False


def _record_type(control: list[tuple[int, int, bytes]]) -> int:
    for level, kind, value in control:
        if (level, kind) == (SOL_TLS, TLS_GET_RECORD_TYPE):
            return value[0]
    return DATA
