"""A guest gone mad: random words into random registers, over memory full of random words."""

from __future__ import annotations

import os
import random
import struct
import time

from rig import BASE, RESET, SIZE, Guest, Rig

WRITES = 4000  # at least
SECONDS = int(os.environ.get("STORM", "0"))  # STORM=600 by hand: ten minutes of it
NAMED = (0x10, 0x14, 0x18, 0x1FC, 0x200, 0x1000, 0x1010)  # command queue, doorbell, health, timer
DOORBELLS = (0x20, 0x40, 0x48, 0x800, 0x808)  # of a UAR page: CQ, EQ, SQ
SEED = 4711


def somewhere(dice: random.Random) -> int:
    """A register, a doorbell, or any place in the BAR."""
    kind = dice.randrange(4)
    if kind == 0:
        return dice.choice(NAMED)
    if kind == 1:
        return dice.randrange(0x8000) * 4
    page = 0x20000 + dice.randrange(64) * 4096
    return page + (dice.choice(DOORBELLS) if kind == 2 else dice.randrange(1024) * 4)


def something(dice: random.Random) -> bytes:
    """Words that look like nothing, like an address in memory, or like a small number; 4 or 8 bytes."""
    values = (dice.randrange(1 << 32), BASE + dice.randrange(SIZE) & ~0xFFF, dice.randrange(256) << 8)
    return b"".join(struct.pack(">I", dice.choice(values)) for _ in range(dice.choice((1, 2))))


def rage(guest: Guest, dice: random.Random) -> int:
    """Write, and now and then read, ring the command queue, change memory; return how often."""
    turn, end = 0, time.monotonic() + SECONDS
    while turn < WRITES or time.monotonic() < end:
        if turn % 64 == 0:
            place = dice.randrange(SIZE // 4096) * 4096
            guest.memory[place : place + 4096] = dice.randbytes(4096)
            guest.memory[0:64] = dice.randbytes(63) + b"\1"
        if turn % 16 == 0:
            guest.read(somewhere(dice) & ~7, dice.choice((1, 4, 8)))
        guest.write(somewhere(dice), something(dice))
        turn += 1
    return turn


def check_random_registers_harm_nobody(rig: Rig) -> None:
    """The card goes on to answer, its neighbor has seen nothing, and a reset brings it back."""
    with rig.pair() as (model, a, b):
        writes = rage(a, random.Random(SEED))
        assert model.control({"card": 0})["doorbells"] > writes // 8
        a.ask(RESET)
        a.memory[0 : 16 * 4096] = bytes(16 * 4096)
        a.start()
        a.command(0x104)
        b.command(0x104)
