"""What kind of difference is it? The first rule that holds names it: docs/reference/wire.md, "Classes"."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from offload.suite.wire.handshake import MAX_LENGTH
from offload.suite.wire.keys import TAG, Epoch
from offload.suite.wire.records import APPLICATION, Difference, Record, Walk

FAR_PAYLOAD = 1 << 20
FAR_STREAM = 1 << 17


@dataclass(frozen=True)
class Verdict:
    """Class, detail and, where the rule says so, the field and the bytes."""

    name: str
    detail: str = ""
    field: str = ""
    at: int = 0
    expected: bytes = b""
    got: bytes = b""

    def document(self, difference: Difference) -> dict[str, Any]:
        """The difference as the verdict document shows it."""
        record = difference.record
        return {
            "record": record.number,
            "sequence": record.sequence,
            "offset": record.offset,
            "field": self.field,
            "at": self.at,
            "expected": self.expected.hex(),
            "got": self.got.hex(),
            "class": self.name,
            "detail": self.detail,
        }


def differing(a: bytes, b: bytes) -> tuple[int, int] | None:
    """First and last index at which two strings of one length differ; None if they are equal."""
    if a == b:
        return None
    size = len(a)
    change = int.from_bytes(a, "big") ^ int.from_bytes(b, "big")
    return size - (change.bit_length() + 7) // 8, size - 1 - ((change & -change).bit_length() - 1) // 8


def around(limit: int) -> Iterator[int]:
    """1, -1, 2, -2, ... limit, -limit."""
    for k in range(1, limit + 1):
        yield k
        yield -k


def nearest(haystack: bytes, needle: bytes, place: int, far: int) -> int | None:
    """Where the needle is nearest to a place, at most `far` from it; of two the earlier."""
    before = haystack.rfind(needle, max(0, place - far), place + len(needle))
    after = haystack.find(needle, place, place + far + len(needle))
    found = [at for at in (before, after) if at >= 0]
    return min(found, key=lambda at: abs(at - place)) if found else None


def one_bit(a: int, b: int) -> int | None:
    """The number of the only bit that differs, from the lowest; None if it is not one."""
    change = a ^ b
    return change.bit_length() - 1 if change.bit_count() == 1 else None


@dataclass(frozen=True)
class Case:
    """A record whose content is wrong, and what is known around it."""

    record: Record
    plain: bytes | None
    stream: bytes
    payload: bytes
    epoch: Epoch
    others: list[tuple[str, Epoch]]

    @property
    def wire(self) -> bytes:
        """The explicit nonce."""
        return self.record.body[: self.epoch.explicit]

    @cached_property
    def sealed(self) -> bytes:
        """Ciphertext and tag on the wire."""
        return self.record.body[self.epoch.explicit :]

    @cached_property
    def right(self) -> bytes:
        """Ciphertext and tag as they should be; of what is there if the plaintext is not known."""
        plain = self.decrypted() if self.plain is None else self.plain
        return self.epoch.seal(self.record.kind, self.record.sequence, self.wire, plain)

    @cached_property
    def span(self) -> tuple[int, int] | None:
        """First and last differing byte of the ciphertext."""
        return differing(self.sealed[:-TAG], self.right[:-TAG])

    @property
    def known(self) -> bytes:
        """The expected plaintext of a case that has one."""
        return self.plain or b""

    def decrypted(self) -> bytes:
        """Return what the ciphertext decrypts to, authentic or not."""
        text = self.sealed[:-TAG]
        stream = self.epoch.keystream(self.record.sequence, self.wire, len(text))
        mixed = int.from_bytes(text, "big") ^ int.from_bytes(stream, "big")
        return mixed.to_bytes(len(text), "big")

    def opened(self, sequence: int) -> bytes | None:
        """The plaintext under another sequence; None if not authentic."""
        return self.epoch.open(self.record.kind, sequence, self.record.body)


def explain(walk: Walk, other: Walk) -> Verdict:
    """The class of the content difference that `walk` met first."""
    difference = walk.first
    assert difference is not None and walk.schedule is not None and other.schedule is not None
    own = walk.schedule.epochs
    record = difference.record
    others = [("other direction", epoch) for epoch in other.schedule.epochs]
    others += [(f"epoch {i}", epoch) for i, epoch in enumerate(own) if i != record.epoch]
    case = Case(record, difference.plain, walk.stream.data, walk.payload or b"", own[record.epoch], others)
    rules = RULES if case.plain is not None else RULES[:3]
    found = next((verdict for rule in rules if (verdict := rule(case))), Verdict("unauthentic"))
    return found if found.field else located(case, found)


def located(case: Case, verdict: Verdict) -> Verdict:
    """The verdict with the first byte that differs."""
    field, start, end = ("tag", len(case.sealed) - TAG, len(case.sealed))
    if case.plain is not None and case.span:
        field, start, end = "ciphertext", 0, len(case.sealed) - TAG
    got, expected = case.sealed[start:end], case.right[start:end]
    at = (differing(got, expected) or (0, 0))[0]
    return Verdict(verdict.name, verdict.detail, field, at, expected[at : at + 16], got[at : at + 16])


def header_bit(case: Case) -> Verdict | None:
    """Rule 1: with one bit of the type or the length put back, the record is authentic."""
    record, epoch = case.record, case.epoch
    if epoch.version == "1.2" and record.kind != APPLICATION:
        bit = one_bit(record.kind, APPLICATION)
        if bit is not None and epoch.open(APPLICATION, record.sequence, record.body) is not None:
            expected = bytes([APPLICATION]) + record.header[1:]
            return Verdict("bit flip", f"bit {bit}", "header", 0, expected, record.header)
    length, start = len(record.body), record.offset + 5
    for bit in range(15):
        other = length ^ 1 << bit
        body = case.stream[start : start + other]
        if other > MAX_LENGTH or other < epoch.overhead or len(body) < other:
            continue
        if epoch.open(record.kind, record.sequence, body) is not None:
            at = 4 - bit // 8
            expected = (record.header[:3] + other.to_bytes(2, "big"))[at:]
            return Verdict("bit flip", f"bit {bit % 8}", "header", at, expected, record.header[at:])
    return None


def wrong_sequence(case: Case) -> Verdict | None:
    """Rule 2: the tag is right for a record before or after."""
    for k in around(16):
        if case.opened(case.record.sequence + k) is not None:
            return Verdict("wrong sequence", f"{k:+d}")
    return None


def wrong_key(case: Case) -> Verdict | None:
    """Rule 3: authentic under a key that is used elsewhere in the connection."""
    for name, epoch in case.others:
        if epoch.open(case.record.kind, case.record.sequence, case.record.body) is not None:
            return Verdict("wrong key", name)
    return None


def bit_flip(case: Case) -> Verdict | None:
    """Rule 4: one bit of ciphertext and tag."""
    span = differing(case.sealed, case.right)
    if span is None or span[0] != span[1]:
        return None
    bit = one_bit(case.sealed[span[0]], case.right[span[0]])
    return None if bit is None else Verdict("bit flip", f"bit {bit}")


def other_payload(case: Case) -> Verdict | None:
    """Rule 5: the card sealed well, but not what it should have."""
    inner = case.opened(case.record.sequence)
    span = inner and differing(inner, case.known)
    if not inner or not span:
        return None
    # in TLS 1.3 an authentic record ends with type and padding, which are no payload
    size = len(inner) if case.epoch.version == "1.2" else len(inner.rstrip(b"\0")) - 1
    i = span[0]
    width, place = min(16, size - i), case.record.position + i
    found = nearest(case.payload, inner[i : i + width], place, FAR_PAYLOAD) if width >= 8 else None
    name, detail = "wrong payload", ""
    if found is not None:
        before = found < place
        name, detail = ("replay", f"payload offset {found}") if before else ("shift", f"+{found - place}")
    return Verdict(name, detail, "ciphertext", i, case.known[i:size][:16], inner[i:size][:16])


def zero_run(case: Case) -> Verdict | None:
    """Rule 6: zeros where ciphertext should be."""
    if not case.span:
        return None
    i, j = case.span
    zeros = j - i + 1 >= 4 and not any(case.sealed[i : j + 1])
    return Verdict("zero run", str(j - i + 1)) if zeros else None


def plaintext(case: Case) -> Verdict | None:
    """Rule 7: the payload itself is on the wire."""
    if not case.span:
        return None
    i, j = case.span
    width = min(16, j - i + 1)
    if width < 4 or case.sealed[i : i + width] != case.known[i : i + width]:
        return None
    return Verdict("plaintext", f"payload offset {case.record.position + i}")


def piece(case: Case) -> tuple[int, bytes] | None:
    """The first differing byte and the 16 bytes of ciphertext from there, if there are this many."""
    if not case.span:
        return None
    i = case.span[0]
    found = case.sealed[i : len(case.sealed) - TAG][:16]
    return (i, found) if len(found) == 16 else None


def stream_replay(case: Case) -> Verdict | None:
    """Rule 8: the bytes are in the stream just before."""
    if (found := piece(case)) is None:
        return None
    end = case.record.offset + 5 + case.epoch.explicit + found[0]
    at = case.stream.rfind(found[1], max(0, end - FAR_STREAM), end)
    return Verdict("replay", f"stream offset {at}") if at >= 0 else None


def shift(case: Case) -> Verdict | None:
    """Rule 9: the right bytes at the wrong offset."""
    if (found := piece(case)) is None:
        return None
    for n in around(256):
        at = found[0] + n
        if at >= 0 and case.right[at : at + 16] == found[1]:
            return Verdict("shift", f"{n:+d}")
    return None


def wrong_keystream(case: Case) -> Verdict | None:
    """Rule 10: the right plaintext under the keystream of another block or record."""
    i, j = case.span or (0, -1)
    width = min(16, j - i + 1)
    if width < 8:
        return None
    mixed = bytes(c ^ p for c, p in zip(case.sealed[i : i + width], case.known[i : i + width], strict=True))
    sequence = case.record.sequence
    stream = case.epoch.keystream(sequence, case.wire, i + 64 * 16 + width)
    for k in around(64):
        at = i + 16 * k
        if at >= 0 and stream[at : at + width] == mixed:
            return Verdict("wrong keystream", f"blocks {k:+d}")
    if case.epoch.explicit:
        return None
    for k in around(16):
        if sequence + k >= 0 and case.epoch.keystream(sequence + k, b"", i + width)[i:] == mixed:
            return Verdict("wrong keystream", f"sequence {k:+d}")
    return None


def bad_tag(case: Case) -> Verdict | None:
    """Rule 11: only the tag differs."""
    return None if case.span else Verdict("bad tag")


def garbage(case: Case) -> Verdict | None:
    """Rule 12: no rule says what it is."""
    i, j = case.span or (0, 0)
    return Verdict("garbage", f"bytes {i} to {j}")


RULES: tuple[Callable[[Case], Verdict | None], ...] = (
    header_bit,
    wrong_sequence,
    wrong_key,
    bit_flip,
    other_payload,
    zero_run,
    plaintext,
    stream_replay,
    shift,
    wrong_keystream,
    bad_tag,
    garbage,
)
