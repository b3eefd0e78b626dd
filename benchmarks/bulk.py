"""Makes big good captures for the wire benchmark: one TLS 1.2 connection, its client sending all the time."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import BinaryIO

from tests.lib.wiregen.session import ALERT, CLIENT, SERVER, Session
from tests.lib.wiregen.suites import SUITES, Keys
from tests.lib.wiregen.talk import NOTIFY, Plan, talk

RECORD = 16384
BLOCK = 64 << 20  # bytes of random payload; a larger payload repeats it
ADDRESSES = (bytes([192, 0, 2, 1]), bytes([192, 0, 2, 2]))
PORTS = (40000, 4433)
SYN, ACK, FIN = 2, 16, 1


@dataclass(frozen=True)
class Bulk:
    """A capture, its key log and its payload, as files."""

    capture: Path
    keylog: Path
    payload: Path


class Lane:
    """A pcap file to which both directions of one connection are written, segment by segment."""

    def __init__(self, out: BinaryIO, segment: int) -> None:
        self.out, self.segment, self.sent = out, segment, [0, 0]
        out.write(struct.pack("<IHHiIII", 0xA1B23C4D, 2, 4, 0, 0, 1 << 20, 1))

    def frame(self, direction: int, flags: int, data: bytes | memoryview = b"") -> None:
        """Write one segment; a SYN stands before offset 0. Checksums are left out."""
        at = 0 if flags & SYN else 1 + self.sent[direction]
        tcp = struct.pack(
            ">HHIIBBHHH",
            PORTS[direction],
            PORTS[1 - direction],
            at % 2**32,
            self.sent[1 - direction] % 2**32,
            128,
            flags,
            502,
            0,
            0,
        ) + bytes(12)
        size = 20 + len(tcp) + len(data)
        ip = struct.pack(">BBHIBBH", 0x45, 0, size if size < 65536 else 0, 0, 64, 6, 0)
        head = bytes(12) + b"\x08\x00" + ip + ADDRESSES[direction] + ADDRESSES[1 - direction] + tcp
        self.out.write(struct.pack("<IIII", 0, 0, len(head) + len(data), len(head) + len(data)) + head)
        self.out.write(data)
        self.sent[direction] += len(data)

    def say(self, direction: int, data: bytes) -> None:
        """Write bytes of a direction in segments."""
        view = memoryview(data)
        for at in range(0, len(data), self.segment):
            self.frame(direction, ACK, view[at : at + self.segment])


def make(folder: Path, name: str, size: int, segment: int) -> Bulk:
    """Write a capture of `size` bytes of application data in segments of so many bytes."""
    bulk = Bulk(folder / f"{name}.pcap", folder / f"{name}.keys", folder / f"{name}.bin")
    rng = Random(name)
    suite = next(s for s in SUITES if s.code == 0xC030)
    session = talk(rng, Plan(suite, [], notify=(False, False)))
    bulk.keylog.touch(0o600)
    bulk.keylog.write_text("\n".join(session.log) + "\n")
    block = rng.randbytes(min(size, BLOCK))
    with bulk.capture.open("wb", 1 << 20) as out, bulk.payload.open("wb", 1 << 20) as sent:
        lane = Lane(out, segment)
        lane.frame(CLIENT, SYN)
        lane.frame(SERVER, SYN | ACK)
        for record in session.flow:
            lane.say(record.direction, record.wire)
        _bulk(lane, session, block, size, sent)
        for direction in (CLIENT, SERVER):
            lane.say(direction, session.say(direction, ALERT, NOTIFY).wire)
            lane.frame(direction, FIN | ACK)
    return bulk


def _bulk(lane: Lane, session: Session, block: bytes, size: int, sent: BinaryIO) -> None:
    """Seal and write the payload: several records at a time, so that segments do not end with records."""
    side, waiting = session.sides[CLIENT], bytearray()
    keys = side.keys
    assert isinstance(keys, Keys)
    aead = keys.aead()
    for at in range(0, size, RECORD):
        begin = at % len(block)
        plain = block[begin : begin + min(RECORD, size - at)]
        sent.write(plain)
        explicit = side.explicit.to_bytes(8, "big")
        aad = side.seq.to_bytes(8, "big") + b"\x17\3\3" + len(plain).to_bytes(2, "big")
        waiting += b"\x17\3\3" + (len(plain) + 24).to_bytes(2, "big") + explicit
        waiting += aead.encrypt(keys.nonce(side.seq, explicit), plain, aad)
        side.seq, side.explicit = side.seq + 1, (side.explicit + 1) % 2**64
        if len(waiting) >= 8 * lane.segment:
            whole = len(waiting) // lane.segment * lane.segment
            lane.say(CLIENT, bytes(waiting[:whole]))
            del waiting[:whole]
    lane.say(CLIENT, bytes(waiting))
