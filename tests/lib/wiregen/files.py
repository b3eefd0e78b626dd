"""Frames as a capture file: pcap in four variants, pcapng in both byte orders, every kind of packet block."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from random import Random

from tests.lib.wiregen.frames import Frame, Link

MAGIC = {False: 0xA1B2C3D4, True: 0xA1B23C4D}  # nanoseconds?
SHB, IDB, OLD_PACKET, SPB, EPB = 0x0A0D0D0A, 1, 2, 3, 6
OTHERS = (4, 5, 10, 0x0BAD, 0x40000BAD, 0x7FFFFFFF)  # name resolution, statistics, secrets, custom, unknown


def pcap(rng: Random, frames: list[Frame], order: str, nano: bool) -> bytes:
    """A pcap file; all frames are of the first one's link type."""
    link = frames[0].link if frames else Link()
    out = [struct.pack(order + "IHHiIII", MAGIC[nano], 2, 4, 0, 0, link.snap or 262144, link.kind)]
    for i, frame in enumerate(frames):
        out.append(
            struct.pack(order + "IIII", 1700000000 + i, rng.randint(0, 999999), len(frame.data), frame.orig)
        )
        out.append(frame.data)
    return b"".join(out)


def block(order: str, kind: int, body: bytes) -> bytes:
    """A pcapng block: padded to four bytes, its length before and after."""
    body += bytes(-len(body) % 4)
    size = struct.pack(order + "I", len(body) + 12)
    return struct.pack(order + "I", kind) + size + body + size


def option(order: str, code: int, value: bytes) -> bytes:
    """A pcapng option."""
    return struct.pack(order + "HH", code, len(value)) + value + bytes(-len(value) % 4)


def section(rng: Random, order: str) -> bytes:
    """A section header; its length is mostly unknown (-1)."""
    extra = option(order, 4, b"wiregen") + option(order, 0, b"") if rng.random() < 0.5 else b""
    return block(order, SHB, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1) + extra)


def interface(rng: Random, order: str, link: Link) -> bytes:
    """An interface description."""
    extra = option(order, 9, b"\x09") + option(order, 0, b"") if rng.random() < 0.5 else b""
    return block(order, IDB, struct.pack(order + "HHI", link.kind, 0, link.snap) + extra)


def packet(rng: Random, order: str, frame: Frame, index: int, simple: bool) -> bytes:
    """A packet block of one of three kinds; `simple`: whether a Simple Packet Block could say it."""
    kind = rng.choice((EPB, EPB, EPB, OLD_PACKET, SPB if simple else EPB))
    if kind == SPB:
        return block(order, SPB, struct.pack(order + "I", frame.orig) + frame.data)
    stamp, sizes = (rng.getrandbits(20), rng.getrandbits(32)), (len(frame.data), frame.orig)
    padded = frame.data + bytes(-len(frame.data) % 4)
    if kind == OLD_PACKET:
        return block(
            order,
            kind,
            struct.pack(order + "HHIIII", index, rng.choice((0, 0xFFFF)), *stamp, *sizes) + padded,
        )
    extra = option(order, 2, b"\0\0\0\1") + option(order, 0, b"") if rng.random() < 0.2 else b""
    return block(order, EPB, struct.pack(order + "IIIII", index, *stamp, *sizes) + padded + extra)


def pcapng(rng: Random, frames: list[Frame], sections: int = 1) -> bytes:
    """A pcapng file of this many sections, each in its own byte order with its own interfaces."""
    cuts = sorted(rng.randint(0, len(frames)) for _ in range(sections - 1))
    parts = zip([0, *cuts], [*cuts, len(frames)], strict=True)
    return b"".join(part for low, high in parts for part in one_section(rng, frames[low:high]))


def one_section(rng: Random, frames: list[Frame]) -> Iterator[bytes]:
    """A section: interfaces in any order, each before its first packet, and blocks that nobody needs."""
    order = rng.choice("<>")
    yield section(rng, order)
    links = list({id(frame.link): frame.link for frame in frames}.values())
    rng.shuffle(links)
    known: list[Link] = []
    for frame in frames:
        while frame.link not in known:
            known.append(links.pop())
            yield interface(rng, order, known[-1])
        whole = min(known[0].snap or frame.orig, frame.orig)
        simple = frame.link == known[0] and len(frame.data) == whole
        yield packet(rng, order, frame, known.index(frame.link), simple)
        if rng.random() < 0.05:
            yield block(order, rng.choice(OTHERS), rng.randbytes(rng.randint(0, 70)))
