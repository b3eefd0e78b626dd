"""vfio-user: what QEMU asks is answered, and what a hostile client sends is refused without harm."""

from __future__ import annotations

import os
import struct

from rig import (
    BAR,
    BASE,
    CONFIG,
    DMA_MAP,
    DMA_UNMAP,
    IRQ_INFO,
    READ,
    REGION_INFO,
    SET_IRQS,
    SIZE,
    WRITE,
    Refused,
    Rig,
)


def refuses(guest, command: int, body: bytes, fds: list[int] | None = None) -> bool:
    """Whether the card answers with an error."""
    try:
        guest.ask(command, body, fds)
    except Refused:
        return True
    return False


def check_it_is_a_connectx_6_dx(rig: Rig) -> None:
    """Configuration space, regions and interrupts are those of the card."""
    with rig.pair() as (_, guest, _):
        assert struct.unpack("<HH", guest.read(0, 4, CONFIG)) == (0x15B3, 0x101D)
        info = guest.ask(REGION_INFO, struct.pack("<IIIIQQ", 32, 0, BAR, 0, 0, 0))
        assert struct.unpack("<IIIIQQ", info)[4] == 32 << 20
        info = guest.ask(IRQ_INFO, struct.pack("<IIII", 16, 0, 2, 0))
        assert struct.unpack("<IIII", info)[3] == 16
        assert not guest.word(0x1FC) >> 31 and guest.word(4) >> 16 == 5, (
            "it is not initializing; command interface 5"
        )
        first = guest.word(0x1010)
        assert any(guest.word(0x1010) != first for _ in range(100000)), "the health counter stands still"


def check_what_lies_outside_is_refused(rig: Rig) -> None:
    """Regions, ranges and vectors that are not there, and messages that are too short."""
    with rig.pair() as (_, guest, _):
        assert refuses(guest, READ, struct.pack("<QII", 32 << 20, BAR, 4))
        assert refuses(guest, READ, struct.pack("<QII", (32 << 20) - 4, BAR, 8))
        assert refuses(guest, READ, struct.pack("<QII", 2**64 - 4, BAR, 8))
        assert refuses(guest, READ, struct.pack("<QII", 0, BAR, 4097))
        assert refuses(guest, WRITE, struct.pack("<QII", 4094, CONFIG, 4) + bytes(4))
        assert refuses(guest, WRITE, struct.pack("<QII", 0, BAR, 64) + bytes(8)), "fewer bytes than it says"
        assert refuses(guest, SET_IRQS, struct.pack("<IIIII", 20, 0x24, 2, 15, 2))
        assert refuses(guest, REGION_INFO, bytes(31)) and refuses(guest, DMA_MAP, bytes(8))
        assert refuses(guest, 99, b""), "an unknown message"
        assert guest.read(0, 2, CONFIG) == b"\xb3\x15", "it goes on"


def check_memory_that_a_file_lacks_is_refused(rig: Rig) -> None:
    """A range behind the end of its file would kill whoever touches it; one over another is a mistake."""
    with rig.pair() as (_, guest, _):
        fd = os.memfd_create("short")
        os.ftruncate(fd, 4096)
        far = BASE + SIZE
        assert refuses(guest, DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, far, 8192), [fd])
        assert refuses(guest, DMA_MAP, struct.pack("<IIQQQ", 32, 3, 2**64 - 4096, far, 8192), [fd])
        assert refuses(guest, DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, 2**64 - 4096, 8192), [fd])
        assert refuses(guest, DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, BASE + 4096, 4096), [fd])
        guest.ask(DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, far, 4096), [fd])
        guest.ask(DMA_UNMAP, struct.pack("<IIQQ", 24, 0, far, 4096))
        os.close(fd)


def check_a_guest_may_go_and_come_back(rig: Rig) -> None:
    """The card is as new for the next guest; a message with an impossible length ends the talk."""
    with rig.model() as model:
        keep = model.guest(1)
        for size in (3, 1 << 20):
            guest = model.guest(0)
            guest.begin()
            guest.sock.sendall(struct.pack("<HHIII", 1, 1, size, 0, 0))
            assert guest.sock.recv(1) == b"", "it should hang up"
            guest.close()
        guest = model.guest(0)
        guest.begin()
        guest.start()
        guest.command(0x104)
        guest.close()
        keep.close()


def check_messages_may_come_in_pieces(rig: Rig) -> None:
    """Two messages at once, and one byte by byte."""
    with rig.pair() as (_, guest, _):
        raw = struct.pack("<HHIII", 7, READ, 32, 0, 0) + struct.pack("<QII", 0, CONFIG, 2)
        guest.sock.sendall(raw + raw)
        for byte in raw:
            guest.sock.sendall(bytes([byte]))
        for _ in range(3):
            assert guest._exactly(34)[32:] == b"\xb3\x15"
