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
    Guest,
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


class Window:
    """The vendor-specific capability, as the driver's lib/pci_vsc.c and mstflint use it."""

    def __init__(self, guest: Guest) -> None:
        at = guest.read(0x34, 1, CONFIG)[0]
        while at and guest.read(at, 1, CONFIG)[0] != 9:
            at = guest.read(at + 1, 1, CONFIG)[0]
        assert at, "the card has no such capability"
        self.guest, self.start = guest, at

    def get(self, at: int) -> int:
        """Read a word of the capability."""
        return int.from_bytes(self.guest.read(self.start + at, 4, CONFIG), "little")

    def put(self, at: int, value: int) -> None:
        """Write a word of it."""
        self.guest.write(self.start + at, value.to_bytes(4, "little"), CONFIG)

    def lock(self) -> bool:
        """Write the counter into the semaphore; it is ours if it reads back."""
        number = self.get(8)
        self.put(12, number)
        return self.get(12) == number

    def space(self, number: int) -> bool:
        """Choose a space; whether the card has it."""
        self.put(4, number)
        return self.get(4) >> 29 != 0

    def read(self, at: int) -> tuple[int, int]:
        """A word of the space, and the address afterwards."""
        self.put(16, at)
        assert self.get(16) >> 31, "the card has not read"
        return self.get(20), self.get(16) & 0x7FFFFFFF

    def write(self, at: int, value: int) -> int:
        """Write a word into the space; the address afterwards."""
        self.put(20, value), self.put(16, at | 1 << 31)
        assert not self.get(16) >> 31, "the card has not written"
        return self.get(16)


def check_the_vendor_window_opens(rig: Rig) -> None:
    """One owner at a time; the dump is the registers word by word; semaphores; the rest is refused."""
    scan, semaphores, refused = 7, 10, 1 << 30
    with rig.pair() as (_, guest, other):
        window = Window(guest)
        assert window.lock() and not window.lock(), "two owners"
        window.put(12, 0)
        assert window.lock() and Window(other).lock(), "another card is not locked"
        assert window.space(scan) and window.get(16) == 4096 and window.get(4) >> 28 & 1, "its size"
        dump, at = b"", 0
        while at < 4096:
            word, at = window.read(at)
            dump += word.to_bytes(4, "big")
        assert dump[:8] == guest.read(0, 8) and len(dump) == 4096
        assert window.read(4096)[1] & refused and window.read(2)[1] & refused and window.write(0, 1) & refused
        assert window.space(semaphores) and not window.write(0x20, 5) & refused
        window.write(0x20, 6)
        assert window.read(0x20)[0] == 5, "taken is taken"
        window.write(0x20, 0), window.write(0x20, 6)
        assert window.read(0x20)[0] == 6 and window.write(64, 1) & refused
        assert not window.space(0x1234) and window.read(0)[1] & refused
        guest.write(window.start + 18, bytes(4), CONFIG), guest.write(window.start, bytes(64), CONFIG)


def tell(window: Window, register: int, size: int, method: int = 1) -> tuple[int, bytes]:
    """Ask for a register as mstflint does: its status, and the register."""
    message = struct.pack(">HHHBBQHH", 0x0804, 0, register, method, 1, 0, 3 << 11 | size // 4 + 1, 0)
    for at, (word,) in enumerate(struct.iter_unpack(">I", message + bytes(size))):
        window.write(0x100000 + 4 * at, word)
    window.write(0, 0x9001 << 16 | 1)
    assert window.read(0)[0] == 0x9001 << 16, "busy, or an error"
    said = b"".join(struct.pack(">I", window.read(0x100000 + at)[0]) for at in range(0, 20 + size, 4))
    return said[1] & 0x7F, said[20:]


def check_a_program_asks_past_the_driver(rig: Rig) -> None:
    """As mstflint: the chip's number, and registers by the mailbox; lengths that lie stay inside it."""
    refused = 1 << 30
    with rig.pair() as (_, guest, _):
        window = Window(guest)
        assert guest.word(0xF0014) == 0xBADACCE5, "a program takes the doorbells for the card's space"
        assert window.space(2) and window.read(0xF0014)[0] == 0x212 and window.write(0xF0014, 1) & refused
        for space in (1, 3):
            assert window.space(space) and window.read(0x1000)[0] == 1024
            status, identity = tell(window, 0x9020, 160)
            assert status == 0 and identity[48:62] == b"SIM0000000015\0"
            assert identity[2:4] == b"\x10\x1d" and identity[10:12] == b"\x02\x12"
            assert struct.unpack(">III", identity[68:80]) == (22, 41, 1000)
        assert tell(window, 0x9020, 40)[0] == 7, "too short for it"
        assert tell(window, 0x9062, 32)[0] == 0 and tell(window, 0x9062, 32, method=2)[0] == 7
        assert tell(window, 0x9999, 16)[0] == 4, "no such register"
        for length in (0, 1, 0x7FF):
            window.write(0x100010, (3 << 11 | length) << 16), window.write(0, 0x9001 << 16 | 1)
        window.write(0, 0x1234 << 16 | 1)
        assert window.read(0)[0] == 0x1234 << 16 | 1 << 8, "no such operation"
        assert window.read(0x100400)[1] & refused and window.read(0x100002)[1] & refused
        assert window.write(0x1000, 1) & refused and window.read(0x1008)[0] == 0
