"""Edits of the stream itself, in honest TCP: records in plaintext, twice, moved or gone, and other bytes."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy

from tests.lib.wiregen.adversary.dice import Dice
from tests.lib.wiregen.session import ALERT, CCS, DATA, HANDSHAKE, RAW, Rec, Session

RecordEdit = Callable[[Dice, Session], str]
RECORD_EDITS: dict[str, RecordEdit] = {}


def record_edit(function: RecordEdit) -> RecordEdit:
    """Register an edit of records under its name. It says what it did."""
    RECORD_EDITS[function.__name__] = function
    return function


def copied(session: Session) -> Session:
    """A session whose records can be edited."""
    twin = copy(session)
    twin.flow = [copy(rec) for rec in session.flow]
    return twin


def clear(flow: int, kind: int, body: bytes, minor: int = 3) -> Rec:
    """A record in plaintext."""
    return Rec(flow, kind, body, head=bytes([kind, 3, minor]) + len(body).to_bytes(2, "big"), body=body)


def said(dice: Dice, session: Session, kind: int) -> bytes:
    """Return what a record in plaintext holds: nothing, one byte, noise, application data, a message
    around it."""
    flow = dice.int(0, 1)
    app = session.sent(flow)[: dice.pick((0, 1, 2, 16, 40, 300))]
    if dice.flip():
        app = dice.noise(len(app))
    if kind == HANDSHAKE and dice.flip():
        return bytes([dice.pick((0, 1, 2, 4, 11, 20, 22, 99))]) + len(app).to_bytes(3, "big") + app
    return dice.pick((app, b"\1", b"\1\0", b"\2\x28"))


@record_edit
def insert_clear(dice: Dice, session: Session) -> str:
    """A record in plaintext anywhere."""
    at, kind = dice.int(0, len(session.flow)), dice.pick((CCS, ALERT, HANDSHAKE, DATA, 24, 0))
    flow, body = dice.int(0, 1), said(dice, session, kind)
    session.flow.insert(at, clear(flow, kind, body, dice.pick((3, 3, 1, 4))))
    return f"clear record of type {kind}, {len(body)} bytes, direction {flow}, in front of record {at}"


@record_edit
def insert_raw(dice: Dice, session: Session) -> str:
    """Bytes that are no record between two records."""
    at, flow = dice.int(0, len(session.flow)), dice.int(0, 1)
    data = dice.noise(dice.pick((1, 4, 5, 40)))
    session.flow.insert(at, Rec(flow, RAW, b"", body=data))
    return f"{len(data)} raw bytes, direction {flow}, in front of record {at}"


@record_edit
def poke_clear(dice: Dice, session: Session) -> str:
    """A bit of a clear record, header or body."""
    recs = [rec for rec in session.flow if not rec.sealed]
    rec = dice.pick(recs)
    data = bytearray(rec.wire)
    at, bit = dice.int(0, len(data) - 1), dice.int(0, 7)
    data[at] ^= 1 << bit
    rec.head, rec.body = bytes(data[:5]), bytes(data[5:])
    return f"bit {bit} of byte {at} of clear record {session.flow.index(rec)}"


@record_edit
def poke_sealed(dice: Dice, session: Session) -> str:
    """A bit of a protected record, header or body."""
    rec = dice.pick([rec for rec in session.flow if rec.sealed])
    data = bytearray(rec.wire)
    at, bit = dice.int(0, len(data) - 1), dice.int(0, 7)
    data[at] ^= 1 << bit
    rec.head, rec.body = bytes(data[:5]), bytes(data[5:])
    return f"bit {bit} of byte {at} of protected record {session.flow.index(rec)}"


@record_edit
def fill_clear(dice: Dice, session: Session) -> str:
    """Application data in the body of a clear handshake message, behind its first bytes."""
    rec = dice.pick([rec for rec in session.flow if not rec.sealed])
    data = session.sent(dice.int(0, 1))[: dice.pick((31, 32, 48, 300))]
    at = dice.int(min(4, len(rec.body)), len(rec.body))
    data = data[: len(rec.body) - at]
    rec.body = rec.body[:at] + data + rec.body[at + len(data) :]
    return f"{len(data)} bytes in clear at {at} of clear record {session.flow.index(rec)}"


@record_edit
def twice(dice: Dice, session: Session) -> str:
    """A record twice."""
    i, at = dice.int(0, len(session.flow) - 1), dice.int(0, len(session.flow))
    session.flow.insert(at, copy(session.flow[i]))
    return f"record {i} again in front of record {at}"


@record_edit
def gone(dice: Dice, session: Session) -> str:
    """A record that is not there."""
    i = dice.int(0, len(session.flow) - 1)
    session.flow.pop(i)
    return f"record {i} gone"


@record_edit
def swapped(dice: Dice, session: Session) -> str:
    """Two neighbors change places."""
    i = dice.int(0, len(session.flow) - 2)
    session.flow[i], session.flow[i + 1] = session.flow[i + 1], session.flow[i]
    return f"records {i} and {i + 1} swapped"


@record_edit
def emptied(dice: Dice, session: Session) -> str:
    """A record's plaintext in plaintext where its ciphertext was."""
    rec = dice.pick([rec for rec in session.flow if rec.sealed])
    data = rec.plain[: rec.cipher_size]
    rec.poke(0, data)
    return f"{len(data)} bytes of protected record {session.flow.index(rec)} in clear"
