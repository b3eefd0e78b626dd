"""Did each byte that TCP sent leave the card once, in frames with right checksums? TCP is the witness."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from offload.cmd import settles
from offload.host.base import Host

WRAP = 1 << 32  # of TCP sequence numbers
TCP_COUNTERS = ("bytes_sent", "bytes_retrans", "bytes_received")  # of struct tcp_info, in the words of ss(8)


@dataclass(frozen=True)
class Frame:
    """A captured TCP frame: source port, sequence number, payload bytes, and whether its checksum is right.

    `checksum`: right, wrong, or left: only the pseudo header's sum, as a packet has it that the capturing
    kernel has put together from several (GRO).
    """

    source: int
    seq: int
    size: int
    checksum: str


def frames(capture: bytes) -> Iterator[Frame]:
    """Yield the TCP frames of a pcapng file as wiretap writes it (little-endian), Ethernet without a VLAN."""
    at = 0
    while at + 12 <= len(capture):
        kind, size = struct.unpack_from("<II", capture, at)
        if kind == 6:  # enhanced packet block
            packet = capture[at + 28 : at + 28 + struct.unpack_from("<I", capture, at + 20)[0]]
            if (found := _frame(packet)) is not None:
                yield found
        at += size


def _frame(packet: bytes) -> Frame | None:
    kind, ip = int.from_bytes(packet[12:14], "big"), packet[14:]
    if kind == 0x0800 and len(ip) >= 20 and ip[9] == 6:
        tcp, between = ip[(ip[0] & 15) * 4 : int.from_bytes(ip[2:4], "big")], ip[12:20]
    elif kind == 0x86DD and len(ip) >= 40 and ip[6] == 6:
        tcp, between = ip[40 : 40 + int.from_bytes(ip[4:6], "big")], ip[8:40]
    else:
        return None
    source, _, seq = struct.unpack("!HHI", tcp[:8])
    return Frame(source, seq, len(tcp) - (tcp[12] >> 4) * 4, _checksum(tcp, between))


def _checksum(tcp: bytes, addresses: bytes) -> str:
    """How the checksum of a TCP segment is (RFC 9293 section 3.1, RFC 8200 section 8.1)."""
    pseudo = folded(addresses) + 6 + len(tcp)
    if folded(tcp, pseudo) == 0xFFFF:
        return "right"
    return "left" if int.from_bytes(tcp[16:18], "big") == folded(b"", pseudo) else "wrong"


def folded(data: bytes, start: int = 0) -> int:
    """Return the sum of 16-bit words in ones' complement (RFC 1071)."""
    padded = data + bytes(len(data) % 2)
    total: int = start + sum(struct.unpack(f"!{len(padded) // 2}H", padded))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def tcp_counters(host: Host, port: int) -> dict[str, int]:
    """Return what TCP counts of the socket with this port, once all that it sent has been acknowledged."""
    text = ""

    def quiet() -> bool:
        nonlocal text
        text = host.run(["ss", "-Htin", f"sport = :{port}"]).text
        return bool(text) and "unacked:" not in text and "notsent:" not in text

    assert settles(quiet, 15), f"what was sent was not acknowledged in time: {text}"
    return {
        name: int(found[1]) if (found := re.search(rf"{name}:(\d+)", text)) else 0 for name in TCP_COUNTERS
    }


def left_once(seen: list[Frame], sent: int) -> None:
    """Assert that this many bytes left the card in these frames, no more and no fewer, in TCP's order and
    with right checksums."""
    wrong = [frame for frame in seen if frame.checksum == "wrong"]
    first = f"the first at sequence number {wrong[0].seq}" if wrong else ""
    assert not wrong, f"{len(wrong)} of {len(seen)} frames have a wrong TCP checksum, {first}"
    carried = sum(frame.size for frame in seen)
    assert carried <= sent, f"TCP sent {sent} bytes, {carried} came out of the card: {_twice(seen)}"
    assert carried >= sent, (
        f"TCP sent {sent} bytes, {carried} came out of the card: it dropped {sent - carried}"
    )
    assert not (late := _late(seen)), (
        f"{len(late)} of {len(seen)} frames left behind later ones, "
        f"the first with sequence number {late[0].seq}"
    )


def _late(seen: list[Frame]) -> list[Frame]:
    """Frames that fill a gap which an earlier one has left: the card changed the order."""
    gaps, late = list[tuple[int, int]](), list[Frame]()
    begin = end = WRAP // 2  # of the first frame; the others relative to it
    for frame in seen:
        at = (frame.seq - seen[0].seq + begin) % WRAP
        if frame.size and (at < begin or any(start <= at < stop for start, stop in gaps)):
            late.append(frame)
        if at > end:
            gaps.append((end, at))
        end = max(end, at + frame.size)
    return late


def _twice(seen: list[Frame]) -> str:
    """Name the first frame that is there again."""
    known: set[tuple[int, int]] = set()
    for frame in seen:
        if frame.size and (frame.seq, frame.size) in known:
            return f"the frame at sequence number {frame.seq} is there twice"
        known.add((frame.seq, frame.size))
    return "and no frame is there twice"
