"""How the pump writes payload: each way in which a program can hand bytes to a socket.

Runs on a host under test, inside the pump (pump.py): only the standard library.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

from offload.suite.traffic.pump_channel import SOL_TLS, TLS_TX_ZEROCOPY_RO, Channel, payload

PIPE = 65536  # bytes that an empty pipe takes without waiting


class Source:
    """Payload, and a file in memory that holds it behind `offset` other bytes; made when first asked for."""

    def __init__(self, data: bytes, offset: int) -> None:
        self.data, self.offset, self._file = data, offset, -1

    def file(self) -> int:
        """The descriptor of the file."""
        if self._file < 0:
            self._file = os.memfd_create("payload")
            view = memoryview(payload("before", self.offset) + self.data)
            while view:
                view = view[os.write(self._file, view) :]
        return self._file

    def invert(self, at: int, size: int) -> None:
        """Change every bit of this part of the payload in the file."""
        changed = bytes(byte ^ 255 for byte in self.data[at : at + size])
        os.pwrite(self.file(), changed, self.offset + at)

    def close(self) -> None:
        """Give the file back."""
        if self._file >= 0:
            os.close(self._file)


def write(channel: Channel, source: Source, at: int, size: int, last: bool) -> None:
    channel.send(source.data[at : at + size])


def more(channel: Channel, source: Source, at: int, size: int, last: bool) -> None:
    """One write that says that more follows, unless it is the last one: the kernel joins them to records."""
    channel.send(source.data[at : at + size], 0 if last else socket.MSG_MORE)


def cork(channel: Channel, source: Source, at: int, size: int, last: bool) -> None:
    """One write; TCP sends full segments only until the last one."""
    channel.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 1)
    channel.send(source.data[at : at + size])
    if last:
        channel.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_CORK, 0)


def gather(channel: Channel, source: Source, at: int, size: int, last: bool) -> None:
    """One sendmsg of buffers of 1, 2, 4, ... bytes."""
    buffers: list[memoryview] = []
    view = memoryview(source.data)[at : at + size]
    while view:
        buffers.append(view[: 1 << len(buffers)])
        view = view[len(buffers[-1]) :]
    sent = channel.sock.sendmsg(buffers)
    channel.send(source.data[at + sent : at + size])


def sendfile(channel: Channel, source: Source, at: int, size: int, last: bool) -> None:
    """One sendfile, where the kernel takes it in one."""
    channel.sendfile(source.file(), source.offset + at, size)


def zerocopy(channel: Channel, source: Source, at: int, size: int, last: bool) -> None:
    """One sendfile of which the card may take the file's own pages (Linux 5.19 and later)."""
    channel.sock.setsockopt(SOL_TLS, TLS_TX_ZEROCOPY_RO, 1)
    sendfile(channel, source, at, size, last)


def splice(channel: Channel, source: Source, at: int, size: int, last: bool) -> None:
    """Through a pipe, by splice."""
    ours, theirs = os.pipe()
    try:
        for begin in range(at, at + size, PIPE):
            left = os.write(theirs, source.data[begin : min(begin + PIPE, at + size)])
            while left:
                left -= os.splice(ours, channel.sock.fileno(), left)
    finally:
        os.close(ours)
        os.close(theirs)


METHODS: dict[str, Callable[[Channel, Source, int, int, bool], None]] = {
    method.__name__: method for method in (write, more, cork, gather, sendfile, zerocopy, splice)
}
