"""A capture in part: its first and its last packets, whole blocks of pcapng, and never its secrets."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass

# draft-ietf-opsawg-pcapng: block types
SECTION, INTERFACE, OLD_PACKET, SIMPLE, STATISTICS, PACKET, SECRETS = 0x0A0D0D0A, 1, 2, 3, 5, 6, 10
PACKETS = (OLD_PACKET, SIMPLE, PACKET)
MAGIC = 0x1A2B3C4D  # in a section's header, in its byte order


class Damaged(ValueError):
    """Not a capture that can be taken apart."""


class Secrets(ValueError):
    """The capture carries session keys in a block of its own."""


@dataclass(frozen=True)
class Window:
    """What is left of a capture: its bytes, and how many of its packets."""

    data: bytes
    packets: int
    of: int


def window(data: bytes, most: int) -> Window:
    """Return at most about `most` bytes of packets, half from each end, with what they need to be read.

    Blocks that are no packets are left out, but for sections, interfaces and statistics. Damaged, Secrets.
    """
    parts = list(blocks(data))
    if any(kind == SECRETS for kind, _ in parts):
        raise Secrets
    chosen = _ends([len(block) if kind in PACKETS else 0 for kind, block in parts], most)
    kept = [
        block
        for number, (kind, block) in enumerate(parts)
        if number in chosen or kind in (SECTION, INTERFACE, STATISTICS)
    ]
    return Window(b"".join(kept), len(chosen), sum(kind in PACKETS for kind, _ in parts))


def _ends(sizes: list[int], most: int) -> set[int]:
    """Return the numbers of the packets to keep: from the front, then from the back."""
    places = [number for number, size in enumerate(sizes) if size]
    if sum(sizes) <= most:
        return set(places)
    chosen: set[int] = set()
    for order in (places, places[::-1]):
        room = most // 2
        for number in order:
            room -= sizes[number]
            if room < 0:
                break
            chosen.add(number)
    return chosen


def blocks(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield type and bytes of each block. Damaged for bytes that are none."""
    at, order = 0, ""
    while at < len(data):
        if data[at : at + 4] == b"\x0a\x0d\x0d\x0a":
            order = _order(data[at + 8 : at + 12])
        if not order or len(data) - at < 12:
            raise Damaged(f"no block of pcapng at byte {at}")
        kind, length = struct.unpack_from(f"{order}II", data, at)
        end = at + length
        whole = length >= 12 and length % 4 == 0 and end <= len(data)
        if not whole or struct.unpack_from(f"{order}I", data, end - 4)[0] != length:
            raise Damaged(f"the block at byte {at} says it has {length} bytes")
        yield kind, data[at:end]
        at = end


def _order(magic: bytes) -> str:
    """Return the byte order of a section, as `struct` names it; empty if it is none."""
    return next((order for order in "<>" if magic == struct.pack(f"{order}I", MAGIC)), "")
