"""Damage that is encrypted well: wrong sequence, key, nonce or payload, records too many or too few."""

from __future__ import annotations

from random import Random

from tests.lib.wiregen.damage.kinds import Unfit, Want, blame, kind, pick, span
from tests.lib.wiregen.scene import Scene
from tests.lib.wiregen.session import ALERT, CLIENT, DATA, HANDSHAKE, Rec


def reseal(rec: Rec, seq: int | None = None, plain: bytes | None = None, kind: int | None = None) -> None:
    """Encrypt the record again with something else."""
    assert rec.keys is not None
    seq, plain = rec.seq if seq is None else seq, rec.plain if plain is None else plain
    kind = rec.kind if kind is None else kind
    rec.body = rec.keys.seal(seq, kind, plain, rec.explicit, rec.pad)
    rec.head = rec.head[:3] + len(rec.body).to_bytes(2, "big")


def where(rec: Rec) -> str:
    """The field in which another sequence shows: TLS 1.2 GCM has it in the tag only."""
    assert rec.keys is not None
    return "ciphertext" if rec.keys.suite.counted else "tag"


@kind("records")
def sequence_off_by_k(rng: Random, scene: Scene) -> Want:
    """One record has a sequence number that is off by up to 16."""
    rec = pick(rng, scene)
    k = rng.choice([k for k in (1, -1, 1, -1, 16, rng.randint(1, 16), -16) if rec.seq + k >= 0])
    reseal(rec, seq=rec.seq + k)
    return blame(scene, rec, "wrong sequence", where(rec), detail=f"{k:+d}")


@kind("records", "gcm12")
def sequence_far_off_gcm12(rng: Random, scene: Scene) -> Want:
    """One record's sequence number is off by 17 or more; TLS 1.2 GCM shows it in the tag alone."""
    rec = pick(rng, scene)
    reseal(rec, seq=rec.seq + rng.choice((17, rng.randint(17, 2**32))))
    return blame(scene, rec, "bad tag", "tag")


@kind("records", "counted")
def sequence_far_off(rng: Random, scene: Scene) -> Want:
    """One record's sequence number, and so its nonce, is off by 17 or more."""
    rec = pick(rng, scene)
    reseal(rec, seq=rec.seq + rng.choice((17, rng.randint(17, 2**32))))
    return blame(scene, rec, "garbage", "ciphertext")


@kind("records")
def key_of_other_direction(rng: Random, scene: Scene) -> Want:
    """One record is encrypted with what the other side sends with."""
    rec = pick(rng, scene)
    rec.keys = scene.session.sides[1 - rec.direction].epochs[-1]
    reseal(rec)
    return blame(scene, rec, "wrong key", "ciphertext", detail="other direction")


@kind("records", "update")
def key_of_old_epoch(rng: Random, scene: Scene) -> Want:
    """One record after a KeyUpdate is encrypted with the keys from before it."""
    rec = pick(rng, scene)
    if rec.epoch == 0:
        raise Unfit
    old = rng.randrange(rec.epoch)
    rec.keys = scene.session.sides[rec.direction].epochs[old]
    reseal(rec)
    return blame(scene, rec, "wrong key", "ciphertext", detail=f"epoch {old}")


@kind("records", "update")
def key_update_forgotten(rng: Random, scene: Scene) -> Want:
    """After its KeyUpdate the sender goes on with the old keys and numbers, as a card without rekey would."""
    session = scene.session
    last = [rec for rec in session.of(CLIENT) if rec.sealed]
    first = next((rec for rec in last if rec.epoch == 2), None)
    if first is None:
        raise Unfit
    start = sum(1 for rec in last if rec.epoch == 1)
    for rec in [rec for rec in last if rec.epoch == 2]:
        rec.keys = session.sides[CLIENT].epochs[1]
        reseal(rec, seq=start + rec.seq)
    return blame(scene, first, "garbage", "ciphertext")


@kind("records")
def payload_again(rng: Random, scene: Scene) -> Want:
    """An authentic record holds payload that was sent before."""
    rec = pick(rng, scene)
    assert scene.payload is not None
    at = rng.randrange(max(1, rec.pos - len(rec.plain)))
    plain = scene.payload[at : at + len(rec.plain)]
    low = span(rec.plain, plain)[0]
    reseal(rec, plain=plain)
    return blame(scene, rec, "replay", "ciphertext", detail=f"payload offset {at + low}")


@kind("records")
def payload_too_early(rng: Random, scene: Scene) -> Want:
    """An authentic record holds payload from N bytes further on."""
    rec = pick(rng, scene)
    assert scene.payload is not None
    room = len(scene.payload) - rec.pos - len(rec.plain)
    if room < 1:
        raise Unfit
    ahead = rng.choice((1, rng.randint(1, room)))
    reseal(rec, plain=scene.payload[rec.pos + ahead :][: len(rec.plain)])
    return blame(scene, rec, "shift", "ciphertext", detail=f"+{ahead}")


@kind("records")
def payload_altered(rng: Random, scene: Scene) -> Want:
    """A bit of the payload was altered below kernel TLS, before it was encrypted."""
    rec = pick(rng, scene)
    at = rng.randrange(len(rec.plain) - 16)
    plain = bytearray(rec.plain)
    plain[at] ^= 1 << rng.randrange(8)
    reseal(rec, plain=bytes(plain))
    got = plain[at : at + 16].hex()
    more = {"at": at, "expected": rec.plain[at : at + 16].hex(), "got": got, "detail": ""}
    return blame(scene, rec, "wrong payload", "ciphertext", **more)


@kind("records")
def payload_of_others(rng: Random, scene: Scene) -> Want:
    """An authentic record holds what nobody gave to send."""
    rec = pick(rng, scene)
    reseal(rec, plain=rng.randbytes(len(rec.plain)))
    return blame(scene, rec, "wrong payload", "ciphertext")


def renumber(scene: Scene) -> None:
    """Encrypt the client's data again with numbers and nonces in the order of sending, as a sender would."""
    session = scene.session
    recs = [rec for rec in session.of(CLIENT) if rec.sealed]
    start = int.from_bytes(recs[0].explicit or b"\0", "big")
    seqs: dict[int, int] = {}
    for i, rec in enumerate(recs):
        rec.seq = seqs.setdefault(rec.epoch, 0)
        seqs[rec.epoch] += 1
        if rec.explicit:
            rec.explicit = nonce(start + i)
        rec.seal()


@kind("records")
def payload_skipped(rng: Random, scene: Scene) -> Want:
    """The sender left out a record's worth of payload and went on: authentic, and one write short."""
    rec = pick(rng, scene)
    after = [one for one in scene.session.data(CLIENT, 40) if one.pos > rec.pos]
    if not after:
        raise Unfit
    scene.session.flow = [one for one in scene.session.flow if one is not rec]
    renumber(scene)
    return blame(scene, after[0], "shift", "ciphertext", detail=f"+{len(rec.plain)}")


@kind("records")
def payload_repeated(rng: Random, scene: Scene) -> Want:
    """The sender sent a write twice, in two authentic records."""
    rec = pick(rng, scene)
    twin = Rec(rec.direction, DATA, rec.plain, rec.keys, rec.epoch, 0, rec.explicit, 0, rec.pos)
    flow = scene.session.flow
    flow.insert(next(i for i, one in enumerate(flow) if one is rec) + 1, twin)
    renumber(scene)
    assert scene.payload is not None
    should = scene.payload[rec.pos + len(rec.plain) :][: len(rec.plain)]
    low = span(should, rec.plain[: len(should)])[0]
    return blame(scene, twin, "replay", "ciphertext", detail=f"payload offset {rec.pos + low}")


@kind("records")
def payload_as_alert(rng: Random, scene: Scene) -> Want:
    """An authentic record of payload says that it is an alert: the next record is not what should follow."""
    rec = pick(rng, scene)
    after = next((one for one in scene.session.data(CLIENT, 40) if one.pos > rec.pos), None)
    if after is None:
        raise Unfit
    reseal(rec, kind=ALERT)
    if not scene.session.suite.tls13:
        rec.head = bytes([ALERT]) + rec.head[1:]
    return blame(scene, after, "shift", "ciphertext", detail=f"+{after.pos - rec.pos}")


@kind("records")
def two_records_swapped(rng: Random, scene: Scene) -> Want:
    """Two records changed places after they were encrypted."""
    flow = scene.session.flow
    pairs = [
        (i, j)
        for i, one in enumerate(flow)
        for j in [next((j for j in range(i + 1, len(flow)) if flow[j].direction == one.direction), 0)]
        if j
        and one.direction == CLIENT
        and one.kind == flow[j].kind == DATA
        and one.epoch == flow[j].epoch
        and len(one.plain) > 16
        and len(flow[j].plain) > 16
    ]
    if not pairs:
        raise Unfit
    i, j = rng.choice(pairs)
    early, late = flow[i], flow[j]
    offset = scene.session.offset(early)
    flow[i], flow[j] = late, early
    if late.explicit:  # the nonce on the wire is not the next one, which is seen first
        return Want(first={"class": "nonce step", "field": "nonce", "offset": offset})
    return Want(first={"class": "wrong sequence", "detail": "+1", "offset": offset, "sequence": early.seq})


@kind("records")
def record_lost(rng: Random, scene: Scene) -> Want:
    """A record was left out after it was encrypted, and TCP knows nothing of it."""
    rec = pick(rng, scene)
    session = scene.session
    after = next((one for one in session.of(CLIENT)[session.number(rec) + 1 :] if one.sealed), None)
    if after is None or after.epoch != rec.epoch:
        raise Unfit
    number, offset = session.number(rec), session.offset(rec)
    session.flow = [one for one in session.flow if one is not rec]
    name, detail = ("nonce step", None) if after.explicit else ("wrong sequence", "+1")
    first = {"class": name, "record": number, "offset": offset, "sequence": rec.seq}
    return Want(first=first | ({"detail": detail} if detail else {}))


@kind("records", "counted")
def record_again(rng: Random, scene: Scene) -> Want:
    """A record is on the wire twice, byte for byte."""
    rec = pick(rng, scene)
    flow = scene.session.flow
    twin = Rec(**rec.__dict__)
    flow.insert(next(i for i, one in enumerate(flow) if one is rec) + 1, twin)
    want = blame(scene, twin, "wrong sequence", "ciphertext", detail="-1", sequence=rec.seq + 1)
    if want.first and rec.pos + 2 * len(rec.plain) > len(scene.session.sent(CLIENT)):
        want.first["field"] = (
            "tag"  # the payload has not this much left, so that there is nothing to compare with
        )
    return want


@kind("records", "gcm12")
def record_again_gcm12(rng: Random, scene: Scene) -> Want:
    """A record is on the wire twice, byte for byte, so that a nonce is used twice."""
    rec = pick(rng, scene)
    flow = scene.session.flow
    twin = Rec(**rec.__dict__)
    flow.insert(next(i for i, one in enumerate(flow) if one is rec) + 1, twin)
    number = int.from_bytes(rec.explicit, "big")
    return blame(
        scene, twin, "nonce reuse", "nonce", sequence=rec.seq + 1, **shown(nonce(number + 1), rec.explicit)
    )


def nonce(number: int) -> bytes:
    """An explicit nonce."""
    return (number % 2**64).to_bytes(8, "big")


def shown(wanted: bytes, got: bytes) -> dict[str, object]:
    """Where two nonces part, and what they are from there."""
    low = span(wanted, got)[0]
    return {"at": low, "expected": wanted[low:].hex(), "got": got[low:].hex()}


@kind("records", "gcm12")
def nonce_reused(rng: Random, scene: Scene) -> Want:
    """A record is encrypted with the explicit nonce of an earlier one."""
    rec = pick(rng, scene)
    before = [one.explicit for one in scene.session.of(CLIENT) if one.sealed and one.seq < rec.seq]
    wanted, rec.explicit = rec.explicit, rng.choice(before)
    reseal(rec)
    return blame(scene, rec, "nonce reuse", "nonce", **shown(wanted, rec.explicit))


@kind("records", "gcm12")
def nonce_jumps(rng: Random, scene: Scene) -> Want:
    """From one record on, the explicit nonces are some steps ahead."""
    rec = pick(rng, scene)
    step = rng.choice((1, 5, 2**32))
    for one in [one for one in scene.session.of(CLIENT) if one.sealed and one.seq >= rec.seq]:
        one.explicit = nonce(int.from_bytes(one.explicit, "big") + step)
        reseal(one)
    want = blame(scene, rec, "nonce step", "nonce")
    want.side["different_records"] = 1
    return want


@kind("records", "gcm12")
def nonce_is_sequence(rng: Random, scene: Scene) -> Want:
    """From one record on, the explicit nonce is the sequence number."""
    rec = pick(rng, scene)
    wanted = rec.explicit
    if wanted == nonce(rec.seq):
        raise Unfit  # the sender began at 0, and this is what it does anyway
    for one in [one for one in scene.session.of(CLIENT) if one.sealed and one.seq >= rec.seq]:
        one.explicit = nonce(one.seq)
        reseal(one)
    return blame(scene, rec, "nonce step", "nonce", **shown(wanted, rec.explicit))


@kind("records", "gcm12")
def bit_in_nonce(rng: Random, scene: Scene) -> Want:
    """One high bit of the explicit nonce is flipped on the wire."""
    rec = pick(rng, scene)
    at, bit = rng.randrange(6), rng.randrange(8)
    rec.body = rec.body[:at] + bytes([rec.body[at] ^ 1 << bit]) + rec.body[at + 1 :]
    want = blame(scene, rec, "nonce step", "nonce", **shown(rec.explicit, rec.body[:8]))
    want.side["different_records"] = 2
    return want


@kind("records")
def record_too_many(rng: Random, scene: Scene) -> Want:
    """After all of the payload the sender sends more of it."""
    data = scene.session.data(CLIENT)
    if not data:
        raise Unfit
    last, flow = data[-1], scene.session.flow
    more = Rec(CLIENT, DATA, rng.randbytes(rng.randint(1, 99)), last.keys, last.epoch, 0, last.explicit)
    flow.insert(next(i for i, one in enumerate(flow) if one is last) + 1, more)
    renumber(scene)
    return blame(scene, more, "excess", "payload")


@kind("records")
def last_records_missing(rng: Random, scene: Scene) -> Want:
    """The sender closes in good order before the payload's end."""
    gone = scene.session.data(CLIENT)[-rng.randint(1, 3) :]
    if not [rec for rec in gone if rec.plain] or not scene.session.data(CLIENT):
        raise Unfit
    scene.session.flow = [one for one in scene.session.flow if not any(one is rec for rec in gone)]
    renumber(scene)
    return Want(first={"class": "truncation", "field": "payload"})


@kind("records", "tls13")
def only_zeros(rng: Random, scene: Scene) -> Want:
    """An authentic TLS 1.3 record has no content type: it is all padding."""
    rec = pick(rng, scene)
    assert rec.keys is not None
    rec.body = rec.keys.seal_raw(rec.seq, bytes(len(rec.plain) + 1))
    return blame(scene, rec, "malformed", "length")


@kind("records")
def bit_in_finished(rng: Random, scene: Scene) -> Want:
    """One bit of a Finished is flipped: there is no payload for it, only the tag."""
    recs = [rec for rec in scene.session.flow if rec.sealed and rec.kind == HANDSHAKE and rec.seq == 0]
    if not recs:
        raise Unfit
    rec = rng.choice(recs)
    at = rng.randrange(rec.cipher_size)
    rec.poke(at, bytes([rec.body[rec.cipher_at + at] ^ 1]))
    return blame(scene, rec, "unauthentic", "tag")


@kind("records")
def bit_without_payload(rng: Random, scene: Scene) -> Want:
    """One bit of a record is flipped in a direction whose payload is not known."""
    rec = pick(rng, scene)
    scene.payload = None
    rec.poke(0, bytes([rec.body[rec.cipher_at] ^ 0x80]))
    return blame(scene, rec, "unauthentic", "tag")
