"""What became of a record header, a nonce or a retransmission? wire.md, below the table of classes."""

from __future__ import annotations

from offload.suite.wire.classify import Verdict, differing, nearest, one_bit
from offload.suite.wire.handshake import MAX_LENGTH, plausible
from offload.suite.wire.records import Difference, Record, Walk
from offload.suite.wire.streams import Retransmission

FAR_PAYLOAD = 65536
FAR_STREAM = 131072
START = b"\x17\x03\x03"


def implausible(walk: Walk, record: Record) -> Verdict:
    """The class of bytes that no record can begin with."""
    data, at = walk.stream.data, record.offset
    head = record.header
    window = data[at : at + 16]
    if len(window) == 16 and walk.payload is not None:
        found = nearest(walk.payload, window, record.position, FAR_PAYLOAD)
        if found is not None:
            return Verdict("plaintext", f"payload offset {found}", "header", 0, b"", head)
    if not any(head):
        return Verdict("zero run", "5", "header", 0, b"", head)
    flipped = first_bytes(head) or length_bit(data, at, head)
    return flipped or moved(data, at, head, window)


def first_bytes(head: bytes) -> Verdict | None:
    """A header whose type or version is one bit from that of a protected record."""
    span = differing(head[:3], START)
    if span is None or span[0] != span[1]:
        return None
    at = span[0]
    bit = one_bit(head[at], START[at])
    return (
        None
        if bit is None
        else Verdict("bit flip", f"bit {bit}", "header", at, (START + head[3:])[at:], head[at:])
    )


def length_bit(data: bytes, at: int, head: bytes) -> Verdict | None:
    """A header whose length is one bit from one that leads to the next record."""
    if head[:3] != START:
        return None
    length = int.from_bytes(head[3:5], "big")
    for bit in range(16):
        other = length ^ 1 << bit
        if other <= MAX_LENGTH and leads(data, at + 5 + other):
            where = 4 - bit // 8
            expected = (START + other.to_bytes(2, "big"))[where:]
            return Verdict("bit flip", f"bit {bit % 8}", "header", where, expected, head[where:])
    return None


def moved(data: bytes, at: int, head: bytes, window: bytes) -> Verdict:
    """Bytes from before, a header further on, or neither."""
    found = data.rfind(window, max(0, at - FAR_STREAM), at) if len(window) == 16 else -1
    if found >= 0:
        return Verdict("replay", f"stream offset {found}", "header", 0, b"", head)
    for n in range(1, 65):
        begin = at + n
        if data[begin : begin + 3] == START and begin + 5 <= len(data):
            length = plausible(data, begin)
            if length is not None and leads(data, begin + 5 + length):
                return Verdict("shift", f"+{n}", "header", 0, b"", head)
    return Verdict("lost framing", "", "header", 0, b"", head)


def leads(data: bytes, at: int) -> bool:
    """Whether another plausible header, or the end of the stream, is here."""
    return at == len(data) or (at + 5 <= len(data) and plausible(data, at) is not None)


def start(record: Record, tls13: bool) -> Verdict:
    """A protected record whose version is not 0303, or in TLS 1.3 whose type is not 23."""
    right = (START[:1] if tls13 else record.header[:1]) + START[1:] + record.header[3:]
    at, last = differing(record.header, right) or (0, 0)
    bit = one_bit(record.header[at], right[at]) if at in (0, last) else None
    name, detail = ("lost framing", "") if bit is None else ("bit flip", f"bit {bit}")
    return Verdict(name, detail, "header", at, right[at:], record.header[at:])


def nonce(difference: Difference) -> Verdict:
    """An explicit nonce that is not the one before plus 1."""
    got, expected = difference.record.body[:8], difference.nonce.to_bytes(8, "big")
    at = (differing(got, expected) or (0, 0))[0]
    return Verdict(
        "nonce reuse" if difference.reuse else "nonce step", "", "nonce", at, expected[at:], got[at:]
    )


def retransmission(found: Retransmission, payload: bytes | None) -> str:
    """The class of bytes that were sent again differently."""
    if found.one_bit:
        return "bit flip"
    if found.zeros:
        return "zero run"
    known = payload is not None and len(found.got) >= 8 and found.got in payload
    return "plaintext" if known else "differs"
