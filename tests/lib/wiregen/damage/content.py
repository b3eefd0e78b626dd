"""Damage to the ciphertext and tag of a record: what a card that encrypts wrongly could send."""

from __future__ import annotations

from dataclasses import replace
from random import Random

from tests.lib.wiregen.damage.kinds import Unfit, Want, blame, kind, pick, span
from tests.lib.wiregen.scene import Scene
from tests.lib.wiregen.session import Rec
from tests.lib.wiregen.suites import Keys


def sealed_text(rec: Rec) -> bytes:
    """Ciphertext and tag as they are now."""
    return rec.body[rec.cipher_at :]


def inner(rec: Rec) -> bytes:
    """Return what the cipher encrypts: with TLS 1.3 the type and padding are part of it."""
    assert rec.keys is not None
    return rec.plain + (bytes([rec.kind]) + bytes(rec.pad) if rec.keys.suite.tls13 else b"")


def keystream(rec: Rec, size: int, seq: int | None = None) -> bytes:
    """The keystream of the record, or of another sequence number."""
    assert rec.keys is not None
    return rec.keys.keystream(rec.seq if seq is None else seq, rec.explicit, size)


def xor(a: bytes, b: bytes) -> bytes:
    """Both byte strings xored, to the length of the shorter."""
    size = min(len(a), len(b))
    return (int.from_bytes(a[:size], "big") ^ int.from_bytes(b[:size], "big")).to_bytes(size, "big")


def content(scene: Scene, rec: Rec, old: bytes, name: str, **more: object) -> Want:
    """A difference in the ciphertext, whose first place is found by comparing with what was there."""
    low, _ = span(old, sealed_text(rec))
    return blame(scene, rec, name, "ciphertext", at=low, **more)


def flip(rec: Rec, at: int, bit: int) -> None:
    """Flip a bit of ciphertext and tag."""
    rec.poke(at, bytes([sealed_text(rec)[at] ^ 1 << bit]))


@kind("records")
def bit_in_ciphertext(rng: Random, scene: Scene) -> Want:
    """One bit of the ciphertext is flipped."""
    rec = pick(rng, scene, 1)
    at, bit = rng.randrange(rec.cipher_size), rng.randrange(8)
    flip(rec, at, bit)
    return blame(scene, rec, "bit flip", "ciphertext", at=at, detail=f"bit {bit}")


@kind("records")
def bit_in_tag(rng: Random, scene: Scene) -> Want:
    """One bit of the tag is flipped."""
    rec = pick(rng, scene, 0)
    at, bit = rng.randrange(16), rng.randrange(8)
    flip(rec, rec.cipher_size + at, bit)
    return blame(scene, rec, "bit flip", "tag", at=at, detail=f"bit {bit}")


@kind("records")
def bits_in_one_byte(rng: Random, scene: Scene) -> Want:
    """Two bits of a byte of ciphertext are flipped: no single-bit error."""
    rec = pick(rng, scene, 64)
    at = rng.randrange(rec.cipher_size)
    rec.poke(at, bytes([sealed_text(rec)[at] ^ 0x21]))
    return blame(scene, rec, "garbage", "ciphertext", at=at)


@kind("records")
def zeros_in_ciphertext(rng: Random, scene: Scene) -> Want:
    """A run of ciphertext is zero, as from a page that was never filled."""
    rec = pick(rng, scene)
    size = rng.randint(8, 60)
    old, at = sealed_text(rec), rng.randrange(rec.cipher_size - size)
    rec.poke(at, bytes(size))
    low, high = span(old, sealed_text(rec))
    return content(scene, rec, old, "zero run", detail=str(high - low + 1))


@kind("records")
def zeros_for_record(rng: Random, scene: Scene) -> Want:
    """The whole record body after the nonce is zero, tag included."""
    rec = pick(rng, scene)
    old = sealed_text(rec)
    rec.poke(0, bytes(len(old)))
    return content(scene, rec, old, "zero run", expected=old[span(old, bytes(len(old)))[0] :][:16].hex())


@kind("records")
def plaintext_in_ciphertext(rng: Random, scene: Scene) -> Want:
    """A stretch of the record was never encrypted."""
    rec = pick(rng, scene)
    size = rng.randint(16, 60)
    old, at = sealed_text(rec), rng.randrange(len(rec.plain) - size)
    rec.poke(at, rec.plain[at : at + size])
    low = span(old, sealed_text(rec))[0]
    return content(scene, rec, old, "plaintext", detail=f"payload offset {rec.pos + low}")


@kind("records")
def plaintext_for_record(rng: Random, scene: Scene) -> Want:
    """The whole record is in plaintext behind a good header, with a tag of zeros or none that fits."""
    rec = pick(rng, scene)
    old = sealed_text(rec)
    rec.poke(0, inner(rec) + rng.choice((bytes(16), rng.randbytes(16))))
    low = span(old, sealed_text(rec))[0]
    return content(scene, rec, old, "plaintext", detail=f"payload offset {rec.pos + low}")


@kind("records")
def replayed_ciphertext(rng: Random, scene: Scene) -> Want:
    """From some place on, the record holds what was sent before, as from a buffer that was used again."""
    rec = pick(rng, scene)
    before = scene.session.stream(rec.direction)[: scene.session.offset(rec)]
    old, at = sealed_text(rec), rng.randrange(rec.cipher_size - 40)
    size = min(len(old) - at, len(before), rng.choice((40, 300)))
    source = rng.randint(max(0, len(before) - 100000), len(before) - size)
    rec.poke(at, before[source : source + size])
    low = span(old, sealed_text(rec))[0]
    return content(scene, rec, old, "replay", detail=f"stream offset {source + low - at}")


@kind("records")
def missing_bytes_inside(rng: Random, scene: Scene) -> Want:
    """N bytes of the record were left out, and its end is filled up."""
    rec = pick(rng, scene, 120)
    old = sealed_text(rec)
    most = min(256, rec.cipher_size - 60)
    gone = rng.choice((1, most, rng.randint(1, most)))
    at = rng.randrange(rec.cipher_size - gone - 40)
    rec.poke(0, old[:at] + old[at + gone :] + rng.randbytes(gone))
    return content(scene, rec, old, "shift", detail=f"+{gone}")


@kind("records")
def missing_bytes_beyond_reach(rng: Random, scene: Scene) -> Want:
    """More bytes of the record were left out than a shift is looked for."""
    rec = pick(rng, scene, 400)
    old, gone = sealed_text(rec), 257
    at = rng.randrange(rec.cipher_size - gone - 40)
    rec.poke(0, old[:at] + old[at + gone :] + rng.randbytes(gone))
    return content(scene, rec, old, "garbage")


@kind("records")
def repeated_bytes_inside(rng: Random, scene: Scene) -> Want:
    """Up to 15 bytes of the record are there twice, and its end is lost."""
    rec = pick(rng, scene)
    old, more = sealed_text(rec), rng.randint(1, 15)
    at = rng.randrange(more, rec.cipher_size - 40)
    rec.poke(0, (old[:at] + old[at - more :])[: len(old)])
    return content(scene, rec, old, "shift", detail=f"-{more}")


@kind("records")
def blocks_swapped(rng: Random, scene: Scene) -> Want:
    """Two neighboring cipher blocks changed places."""
    rec = pick(rng, scene)
    old, at = sealed_text(rec), 16 * rng.randrange(rec.cipher_size // 16 - 1)
    rec.poke(at, old[at + 16 : at + 32] + old[at : at + 16])
    if span(old, sealed_text(rec))[0] != at:
        raise Unfit
    return content(scene, rec, old, "shift", detail="+16")


@kind("records")
def keystream_of_other_block(rng: Random, scene: Scene) -> Want:
    """From some place on, the block counter is off by k."""
    rec = pick(rng, scene)
    old, plain = sealed_text(rec), inner(rec)
    at = rng.randrange(len(plain) - 20)
    k = rng.choice([k for k in (1, 2, -1, -2, 64, -64, rng.randint(-64, 64)) if k and at + 16 * k >= 0])
    stream = keystream(rec, len(plain) + 16 * 65)[at + 16 * k :]
    rec.poke(at, xor(plain[at:], stream))
    return content(scene, rec, old, "wrong keystream", detail=f"blocks {k:+d}")


@kind("records")
def keystream_beyond_reach(rng: Random, scene: Scene) -> Want:
    """From some place on, the block counter is off by more than is looked for."""
    rec = pick(rng, scene)
    old, plain = sealed_text(rec), inner(rec)
    at = rng.randrange(len(plain) - 20)
    rec.poke(at, xor(plain[at:], keystream(rec, len(plain) + 16 * 65)[at + 16 * 65 :]))
    return content(scene, rec, old, "garbage")


@kind("records", "counted")
def keystream_of_other_sequence(rng: Random, scene: Scene) -> Want:
    """From some place on, the keystream is that of another record."""
    rec = pick(rng, scene)
    old, plain = sealed_text(rec), inner(rec)
    at = rng.randrange(len(plain) - 20)
    k = rng.choice([k for k in (*range(-16, 0), *range(1, 17), 16, 16) if rec.seq + k >= 0])
    rec.poke(at, xor(plain[at:], keystream(rec, len(plain), rec.seq + k)[at:]))
    return content(scene, rec, old, "wrong keystream", detail=f"sequence {k:+d}")


@kind("records")
def garbage(rng: Random, scene: Scene) -> Want:
    """A stretch of the record is noise."""
    rec = pick(rng, scene)
    old, size = sealed_text(rec), rng.randint(20, 40)
    at = rng.randrange(rec.cipher_size - size)
    rec.poke(at, rng.randbytes(size))
    low, high = span(old, sealed_text(rec))
    return content(scene, rec, old, "garbage", detail=f"bytes {low} to {high}")


@kind("records")
def random_tag(rng: Random, scene: Scene) -> Want:
    """The ciphertext is right and the tag is noise."""
    rec = pick(rng, scene, 0)
    old = sealed_text(rec)
    rec.poke(rec.cipher_size, rng.randbytes(16))
    low = span(old, sealed_text(rec))[0] - rec.cipher_size
    return blame(scene, rec, "bad tag", "tag", at=low, detail="")


@kind("records")
def empty_tag(rng: Random, scene: Scene) -> Want:
    """The ciphertext is right and the tag was never filled in."""
    rec = pick(rng, scene, 0)
    old = sealed_text(rec)
    rec.poke(rec.cipher_size, bytes(16))
    low = span(old, sealed_text(rec))[0] - rec.cipher_size
    return blame(scene, rec, "bad tag", "tag", at=low, expected=old[rec.cipher_size + low :].hex())


@kind("records")
def tag_of_other_header(rng: Random, scene: Scene) -> Want:
    """The ciphertext is right, and the tag is for another length in the additional data."""
    rec = pick(rng, scene)
    assert rec.keys is not None
    nonce = rec.keys.nonce(rec.seq, rec.explicit)
    rec.poke(0, rec.keys.aead().encrypt(nonce, inner(rec), b"\x17\x03\x03\0\0"))
    return blame(scene, rec, "bad tag", "tag")


def rekeyed(scene: Scene, rec: Rec, keys: Keys) -> Want:
    """The record sealed with unknown keys."""
    old = sealed_text(rec)
    rec.body = keys.seal(rec.seq, rec.kind, rec.plain, rec.explicit)
    return content(scene, rec, old, "garbage")


@kind("records", "aes256")
def half_a_key(rng: Random, scene: Scene) -> Want:
    """A record is encrypted with AES-128 by the first half of the key of AES-256."""
    rec = pick(rng, scene)
    assert rec.keys is not None
    return rekeyed(scene, rec, replace(rec.keys, key=rec.keys.key[:16]))


@kind("records")
def wrong_salt(rng: Random, scene: Scene) -> Want:
    """A record is encrypted with one bit of the salt or iv wrong."""
    rec = pick(rng, scene)
    assert rec.keys is not None
    return rekeyed(scene, rec, replace(rec.keys, iv=bytes([rec.keys.iv[0] ^ 4]) + rec.keys.iv[1:]))


@kind("records")
def encrypted_twice(rng: Random, scene: Scene) -> Want:
    """A record went through the cipher twice, as when software and card both do their duty."""
    rec = pick(rng, scene)
    assert rec.keys is not None
    old = sealed_text(rec)
    # a stream cipher done twice gives the payload in plaintext; the tag is right for what was encrypted
    rec.body = rec.keys.seal(rec.seq, rec.kind, old[: len(rec.plain)], rec.explicit)
    low = span(old, sealed_text(rec))[0]
    shown = {"expected": rec.plain[low : low + 16].hex(), "got": old[: len(rec.plain)][low : low + 16].hex()}
    return content(scene, rec, old, "wrong payload", **shown)
