"""AES-GCM (FIPS 197, SP 800-38D), slow and by the book: it has nothing from the card's library."""

from __future__ import annotations

import struct


def _times(a: int, b: int) -> int:
    """Multiply in GF(2^8)."""
    product = 0
    while b:
        product ^= a if b & 1 else 0
        a = a << 1 ^ (0x11B if a & 0x80 else 0)
        b >>= 1
    return product


def _sbox() -> list[int]:
    table = []
    for value in range(256):
        inverse = next((x for x in range(256) if _times(value, x) == 1), 0)
        bits = inverse
        for turn in range(1, 5):
            bits ^= (inverse << turn | inverse >> (8 - turn)) & 0xFF
        table.append(bits ^ 0x63)
    return table


SBOX = _sbox()
DOUBLE = [_times(value, 2) for value in range(256)]
SHIFT = [0, 5, 10, 15, 4, 9, 14, 3, 8, 13, 2, 7, 12, 1, 6, 11]


def _schedule(key: bytes) -> list[bytes]:
    """The round keys."""
    words, count = [key[i : i + 4] for i in range(0, len(key), 4)], len(key) // 4
    constant = 1
    for i in range(count, 4 * (count + 7)):
        word = words[-1]
        if i % count == 0:
            word = bytes(SBOX[b] for b in word[1:] + word[:1])
            word = bytes([word[0] ^ constant]) + word[1:]
            constant = DOUBLE[constant]
        elif count > 6 and i % count == 4:
            word = bytes(SBOX[b] for b in word)
        words.append(bytes(a ^ b for a, b in zip(word, words[-count], strict=True)))
    return [b"".join(words[i : i + 4]) for i in range(0, len(words), 4)]


def _mixed(state: list[int]) -> list[int]:
    out = []
    for c in range(0, 16, 4):
        a = state[c : c + 4]
        every = a[0] ^ a[1] ^ a[2] ^ a[3]
        out += [a[i] ^ every ^ DOUBLE[a[i] ^ a[(i + 1) % 4]] for i in range(4)]
    return out


def _block(keys: list[bytes], data: bytes) -> bytes:
    """Encrypt a block."""
    state = [a ^ b for a, b in zip(data, keys[0], strict=True)]
    for turn, key in enumerate(keys[1:], 1):
        state = [SBOX[state[i]] for i in SHIFT]
        if turn < len(keys) - 1:
            state = _mixed(state)
        state = [a ^ b for a, b in zip(state, key, strict=True)]
    return bytes(state)


def _ghash(h: int, data: bytes) -> int:
    total = 0
    for i in range(0, len(data), 16):
        factor, value, product = h, total ^ int.from_bytes(data[i : i + 16].ljust(16, b"\0"), "big"), 0
        for bit in range(127, -1, -1):
            product ^= factor if value >> bit & 1 else 0
            factor = factor >> 1 ^ (0xE1 << 120 if factor & 1 else 0)
        total = product
    return total


def seal(key: bytes, nonce: bytes, data: bytes, extra: bytes) -> bytes:
    """Ciphertext and tag."""
    keys = _schedule(key)
    stream = b"".join(_block(keys, nonce + struct.pack(">I", 2 + i)) for i in range((len(data) + 15) // 16))
    out = bytes(a ^ b for a, b in zip(data, stream[: len(data)], strict=True))
    padded = extra + bytes(-len(extra) % 16) + out + bytes(-len(out) % 16)
    total = _ghash(
        int.from_bytes(_block(keys, bytes(16)), "big"),
        padded + struct.pack(">QQ", 8 * len(extra), 8 * len(out)),
    )
    mask = int.from_bytes(_block(keys, nonce + b"\0\0\0\1"), "big")
    return out + (total ^ mask).to_bytes(16, "big")
