"""Damage without any understanding: bits, cuts, copies and noise anywhere in a file."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.lib.wiregen.scene import Case

HUGE = (
    b"\xff\xff\xff\xff",
    b"\x7f\xff\xff\xff",
    b"\0\0\0\0",
    b"\0\x01\0\0",
    b"\xff\xff",
    b"\0\0",
    b"\x40\x01",
)


def wreck(rng: Random, data: bytes) -> bytes:
    """The data with one thing wrong."""
    if not data:
        return rng.randbytes(3)
    at = rng.choice((rng.randrange(len(data)), rng.randrange(min(len(data), 200))))
    size = rng.choice((1, 4, 16, rng.randint(1, 2000)))
    part = data[at : at + size]
    how = rng.randrange(8)
    if how <= 1:
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    if how == 2:
        return data[:at] + rng.choice(HUGE) + data[at + 4 :]
    if how == 3:
        return data[:at] if rng.random() < 0.5 else data[:at] + data[at + size :]
    if how == 4:
        to = rng.randrange(len(data))
        return data[:to] + part + data[to:]
    if how == 5:
        to = rng.randrange(len(data))
        return data[:to] + part + data[to + len(part) :]
    if how == 6:
        return data[:at] + bytes(len(part)) + data[at + len(part) :]
    return data[:at] + rng.randbytes(len(part)) + data[at + len(part) :]


def wrecked(rng: Random, case: Case) -> Case:
    """The case with its capture, and at times its keylog or payload, damaged anywhere."""
    if rng.random() < 0.8:
        for _ in range(rng.choice((1, 1, 2, 5))):
            case = replace(case, capture=wreck(rng, case.capture))
    if rng.random() < 0.25:
        case = replace(case, keylog=wreck_log(rng, case.keylog))
    if rng.random() < 0.1 and case.payload:
        case = replace(case, payload=wreck(rng, case.payload))
    return case


def wreck_log(rng: Random, log: bytes) -> bytes:
    """The keylog with a line or a byte wrong."""
    lines = log.split(b"\n")
    i = rng.randrange(len(lines))
    how = rng.randrange(7)
    if how == 0:
        lines[i] = (
            lines[i].upper()
            if rng.random() < 0.5
            else lines[i].replace(b" ", rng.choice((b"  ", b"\t", b"")))
        )
    elif how == 1:
        lines[i] = (
            rng.choice((b" ", b"\t", b"#", b"\xff")) + lines[i] + rng.choice((b"", b" ", b" 00", b"\r"))
        )
    elif how == 2:
        lines.insert(i, lines[rng.randrange(len(lines))][:-2] + b"00")
    elif how == 3:
        lines[i] = lines[i][: rng.randint(0, len(lines[i]))]
    elif how == 4:
        lines[i] = rng.choice(
            (b"FOO 00 00", b"RSA 0011 2233", b"foo", b"A B C D", b"x" * 5000, b"CLIENT_RANDOM")
        )
    else:
        return wreck(rng, log)
    return b"\n".join(lines)
