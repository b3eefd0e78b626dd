"""How the pump loads a connection for a measurement: as fast as it goes, until it is told to stop.

Runs on a host under test, inside the pump (pump.py): only the standard library.
"""

from __future__ import annotations

import os
import threading
from typing import Any, Protocol

from offload.suite.traffic.pump_channel import (
    SOL_TCP,
    SOL_TLS,
    TLS_TX_ZEROCOPY_RO,
    Channel,
    Peerless,
    payload,
)

BLOCK = 1 << 20  # bytes of payload that are sent over and over
ROOM = 1 << 18  # bytes that are received at once
# Bytes compared with what was sent at the start of a connection, and again when it is told to stop. Between
# these they are only counted: comparing would cost as much of the CPU as what is measured.
CHECKED = BLOCK
TCP_NOTSENT_LOWAT = 25  # include/uapi/linux/tcp.h


class Count(Protocol):
    """What counts bytes (Part of pump.py)."""

    count: int


def flood(channel: Channel, plan: dict[str, Any], stop: threading.Event, part: Count) -> None:
    """Send until `stop`: "size" bytes (at most BLOCK) in a call, "how" as in pump.py."""
    data = memoryview(payload(plan["seed"], BLOCK) * 2)  # twice: a piece from any place is in one piece
    if plan["how"] == "zerocopy":
        channel.sock.setsockopt(SOL_TLS, TLS_TX_ZEROCOPY_RO, 1)
    if plan.get("unsent"):
        channel.sock.setsockopt(SOL_TCP, TCP_NOTSENT_LOWAT, plan["unsent"])
    file, out = _file(data) if plan["how"] != "write" else -1, channel.sock.fileno()
    size = min(plan["size"], BLOCK)
    try:
        while not stop.is_set():
            at = part.count % BLOCK
            if file < 0:
                part.count += channel.sock.send(data[at : at + size])
            else:
                part.count += os.sendfile(out, file, at, size)
    finally:
        if file >= 0:
            os.close(file)


def _file(data: memoryview) -> int:
    """A file in memory with this in it."""
    file = os.memfd_create("payload")
    while data:
        data = data[os.write(file, data) :]
    return file


def drain(channel: Channel, seed: str, stop: threading.Event, part: Count) -> None:
    """Receive until the peer ends the stream. Peerless if what is compared is not what was sent."""
    sent, room = payload(seed, BLOCK) * 2, memoryview(bytearray(ROOM))
    while size := channel.receive_into(room):
        at = part.count % BLOCK
        if (part.count < CHECKED or stop.is_set()) and bytes(room[:size]) != sent[at : at + size]:
            raise Peerless(f"payload differs from what was sent, after {part.count} bytes")
        part.count += size
