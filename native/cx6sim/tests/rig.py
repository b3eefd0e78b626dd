"""What the checks stand on: cx6sim under sanitizers, and a small guest that speaks vfio-user to its cards."""

from __future__ import annotations

import array
import json
import mmap
import os
import re
import select
import socket
import struct
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LAYOUT = Path(__file__).resolve().parents[1] / "layout.h"
VERSION, DMA_MAP, DMA_UNMAP, DEVICE_INFO, REGION_INFO, IRQ_INFO, SET_IRQS, READ, WRITE, RESET = (
    1,
    2,
    3,
    4,
    5,
    7,
    8,
    9,
    10,
    13,
)
BAR, CONFIG = 0, 7
SIZE, BASE = 4 << 20, 0x100000  # of the guest's memory
PAGE = 4096
DEADLINE = 120  # seconds for what takes milliseconds: the machine may be busy


def fields() -> dict[str, tuple[int, int]]:
    """First bit and width of every field of layout.h."""
    found = re.findall(r"^#define (\w+__\w+) (\d+), (\d+)$", LAYOUT.read_text(), re.M)
    return {name: (int(bit), int(bits)) for name, bit, bits in found}


FIELDS = fields()


def at(name: str) -> int:
    """The byte at which a field begins."""
    return FIELDS[name][0] // 8


def put(data: bytearray, start: int, name: str, value: int) -> None:
    """Set a field of a structure that begins at byte `start`."""
    bit, bits = FIELDS[name]
    if bits > 32:
        data[start + bit // 8 : start + (bit + bits) // 8] = value.to_bytes(bits // 8, "big")
        return
    word, shift = start + bit // 32 * 4, 32 - bit % 32 - bits
    old = int.from_bytes(data[word : word + 4], "big") & ~(((1 << bits) - 1) << shift)
    data[word : word + 4] = (old | value << shift).to_bytes(4, "big")


def got(data: bytes, start: int, name: str) -> int:
    """A field of a structure that begins at byte `start`."""
    bit, bits = FIELDS[name]
    word = start + bit // 32 * 4
    value = int.from_bytes(data[word : word + 4], "big")
    return value >> (32 - bit % 32 - bits) & ((1 << bits) - 1)


class Refused(Exception):
    """The card did not take a message."""


class Guest:
    """A guest with one card: memory that both see, messages, and commands of the firmware."""

    def __init__(self, path: str) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(path)
        self.sock.settimeout(DEADLINE)
        self.fd = os.memfd_create("guest")
        os.ftruncate(self.fd, SIZE)
        self.memory = mmap.mmap(self.fd, SIZE)
        self.used = PAGE * 16  # the command queue and the mailboxes come first
        self.irqs = [os.eventfd(0, os.EFD_NONBLOCK) for _ in range(16)]
        self.number = 0

    def close(self) -> None:
        """Go away, as a guest does that is killed."""
        self.sock.close()
        for fd in (self.fd, *self.irqs):
            os.close(fd)

    def send(self, command: int, body: bytes = b"", fds: list[int] | None = None, flags: int = 0) -> None:
        """Send a message."""
        self.number += 1
        raw = struct.pack("<HHIII", self.number & 0xFFFF, command, 16 + len(body), flags, 0) + body
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
        self.sock.sendmsg([raw], ancillary)

    def _exactly(self, count: int) -> bytes:
        data = b""
        while len(data) < count:
            more = self.sock.recv(count - len(data))
            if not more:
                raise ConnectionError("the card hung up")
            data += more
        return data

    def ask(self, command: int, body: bytes = b"", fds: list[int] | None = None) -> bytes:
        """Send a message and return the body of its answer; Refused with the error number."""
        self.send(command, body, fds)
        number, back, size, flags, error = struct.unpack("<HHIII", self._exactly(16))
        body = self._exactly(size - 16)
        assert (number, back) == (self.number & 0xFFFF, command) and flags & 1
        if flags & 0x20:
            raise Refused(error)
        return body

    def begin(self) -> None:
        """What QEMU does first: version, memory, interrupts."""
        said = self.ask(VERSION, struct.pack("<HH", 0, 1) + b"{}\0")
        assert struct.unpack_from("<HH", said) == (0, 1) and b"max_msg_fds" in said
        self.ask(DMA_MAP, struct.pack("<IIQQQ", 32, 3, 0, BASE, SIZE), [self.fd])
        for first in (0, 8):
            head = struct.pack("<IIIII", 20, 0x24, 2, first, 8)
            self.ask(SET_IRQS, head, self.irqs[first : first + 8])

    def read(self, offset: int, count: int, region: int = BAR) -> bytes:
        """Read a register."""
        return self.ask(READ, struct.pack("<QII", offset, region, count))[16:]

    def write(self, offset: int, data: bytes, region: int = BAR) -> None:
        """Write a register."""
        self.ask(WRITE, struct.pack("<QII", offset, region, len(data)) + data)

    def word(self, offset: int) -> int:
        """Read a register of 32 bits."""
        return int.from_bytes(self.read(offset, 4), "big")

    def room(self, size: int) -> int:
        """Take memory: an offset at the start of a page."""
        start = self.used
        self.used += (size + PAGE - 1) // PAGE * PAGE
        assert self.used <= SIZE
        return start

    def wait_irq(self, vector: int) -> None:
        """Wait for an interrupt."""
        assert select.select([self.irqs[vector]], [], [], DEADLINE)[0], f"no interrupt {vector}"
        os.eventfd_read(self.irqs[vector])

    def start(self) -> None:
        """Tell the card where the command queue is."""
        self.write(0x10, (0).to_bytes(4, "big"))
        self.write(0x14, BASE.to_bytes(4, "big"))

    def _chain(self, first: int, data: bytes) -> int:
        """Put data into mailboxes from an offset on; the offset behind them."""
        count = (len(data) + 511) // 512
        for i in range(count):
            box = first + 1024 * i
            self.memory[box : box + 576] = bytes(576)
            self.memory[box : box + 512] = data[512 * i : 512 * i + 512].ljust(512, b"\0")
            after = BASE + box + 1024 if i + 1 < count else 0
            self.memory[box + 560 : box + 576] = struct.pack(">QIBBBB", after, i, 0, 9, 0, 0)
        return first + 1024 * count

    def raw_command(self, data: bytes, out: int, token: int = 9) -> tuple[int, bytes]:
        """Run a command: how it was delivered, and its answer."""
        boxes, data = PAGE, data.ljust(16, b"\0")
        last = self._chain(boxes, data[16:])
        self._chain(last, bytes(max(out - 16, 0)))
        entry = struct.pack(">B3xIQ", 7, len(data), BASE + boxes) + data[:16] + bytes(16)
        entry += struct.pack(">QIBBBB", BASE + last, out, token, 0, 0, 1)
        self.memory[0:64] = entry
        self.write(0x18, (1).to_bytes(4, "big"))
        assert not self.memory[63] & 1, "the card has not given the entry back"
        said = self.memory[32:48]
        for i in range((max(out - 16, 0) + 511) // 512):
            said += self.memory[last + 1024 * i : last + 1024 * i + 512]
        return self.memory[63] >> 1, bytes(said[:out])

    def command(self, op: int, mod: int = 0, body: bytes = b"", out: int = 16, status: int = 0) -> bytes:
        """Run a command that ends with this status; its answer. `body` follows the first eight bytes."""
        delivered, said = self.raw_command(struct.pack(">HHHH", op, 0, 0, mod) + body, out)
        assert delivered == 0 and said[0] == status, f"command {op:#x}: {delivered} {said[:8].hex()}"
        return said


class Model:
    """cx6sim, running."""

    def __init__(self, child: subprocess.Popen[str], folder: Path, count: int) -> None:
        self.child, self.folder, self.count = child, folder, count

    def guest(self, card: int) -> Guest:
        """A guest at a card, before it has said anything."""
        return Guest(str(self.folder / str(card)))

    def control(self, line: object) -> dict[str, int]:
        """Send a line to the control socket; the answer."""
        with socket.socket(socket.AF_UNIX) as sock:
            sock.connect(str(self.folder / "control"))
            sock.settimeout(DEADLINE)
            text = line if isinstance(line, str) else json.dumps(line, separators=(",", ":"))
            sock.sendall(text.encode() + b"\n")
            with sock.makefile() as said:
                return json.loads(said.readline())


class Rig:
    """Starts the program for a check, and wants it to end well."""

    def __init__(self, program: str) -> None:
        self.program = program

    @contextmanager
    def model(self, count: int = 2) -> Iterator[Model]:
        """cx6sim with so many cards; a report of a sanitizer fails the check."""
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            sockets = [str(folder / str(i)) for i in range(count)]
            argv = [self.program, "--control", str(folder / "control"), *sockets]
            with (folder / "log").open("w+") as log:
                child = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=log, text=True)
                try:
                    assert child.stdout and child.stdout.readline() == "ready\n"
                    yield Model(child, folder, count)
                finally:
                    child.terminate()
                    rc = child.wait(DEADLINE)
                    log.seek(0)
                    said = log.read()
                    if rc != 0:
                        print(said)
            assert rc == 0, f"cx6sim ended with {rc}"

    @contextmanager
    def pair(self) -> Iterator[tuple[Model, Guest, Guest]]:
        """Two cards with their guests, memory and command queues set up."""
        with self.model() as model:
            guests = [model.guest(0), model.guest(1)]
            try:
                for guest in guests:
                    guest.begin()
                    guest.start()
                yield model, guests[0], guests[1]
            finally:
                for guest in guests:
                    guest.close()
