"""Oddities that have no name but need one answer: what no sane sender does, for the differential test."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

from tests.lib.wiregen.damage.authentic import renumber, reseal
from tests.lib.wiregen.scene import Scene
from tests.lib.wiregen.session import ALERT, CCS, DATA, HANDSHAKE, Rec
from tests.lib.wiregen.suites import keys13, next_secret
from tests.lib.wiregen.tcp import Seg

Odd = Callable[[Random, Scene], None]
UPDATE = b"\x18\0\0\1\0"
TICKET = b"\4\0\0\3abc"


def updates(rng: Random, scene: Scene) -> None:
    """A KeyUpdate in parts, with a tail, behind a ticket, twice in a record, of wrong length, or ignored."""
    session, direction = scene.session, rng.choice((0, 1))
    parts = rng.choice(
        (
            [UPDATE[:3], UPDATE[3:]],
            [UPDATE + TICKET],
            [TICKET + UPDATE],
            [UPDATE + UPDATE],
            [TICKET[:2], TICKET[2:] + UPDATE],
            [b"\x18\0\0\0"],
            [b"\x18\0\0\1", b"", b"\1"],
            [UPDATE[:1]],
        )
    )
    for part in parts:
        session.say(direction, HANDSHAKE, part)
    if rng.random() < 0.8 and session.suite.tls13:
        secret = next_secret(session.suite, session.sides[direction].secret)
        session.rekey(direction, keys13(session.suite, secret), secret)
    for size in (rng.randint(0, 90), rng.randint(0, 90)):
        session.say(direction, DATA, rng.randbytes(size))
    if rng.random() < 0.5:
        scene.payload = scene.payload and session.sent(0)


def clear_record(rng: Random, scene: Scene) -> None:
    """A record in the clear anywhere."""
    body = rng.choice((b"", b"\1", b"\1\0", b"\2\0", rng.randbytes(rng.randint(0, 60)), b"\x0e\0\0\0"))
    head = bytes([rng.choice((CCS, ALERT, HANDSHAKE, DATA)), 3, rng.choice((0, 1, 3, 3, 3, 4))])
    rec = Rec(rng.choice((0, 1)), -1, b"", head=head + len(body).to_bytes(2, "big"), body=body)
    scene.session.flow.insert(rng.randint(0, len(scene.session.flow)), rec)


def record_of_any_size(rng: Random, scene: Scene) -> None:
    """A sealed record of an unusual size or type, at the end or followed by more."""
    direction = rng.choice((0, 1))
    size = rng.choice((0, 16384, 16385, 16616, 16640, 16641, rng.randint(16300, 16700)))
    kind = rng.choice((DATA, DATA, DATA, ALERT, HANDSHAKE, CCS, 24, 0))
    scene.session.say(direction, kind, rng.randbytes(size), rng.choice((0, 0, 5)))
    scene.session.say(direction, DATA, b"more", rng.choice((0, 300)))


def alerts(rng: Random, scene: Scene) -> None:
    """An alert that nearly is a close_notify."""
    for _ in range(rng.randint(1, 3)):
        body = rng.choice((b"\1\0", b"\2\0", b"\1\0\0", b"\1", b"", b"\1\0\1\0"))
        scene.session.say(rng.choice((0, 1)), ALERT, body, rng.choice((0, 0, 3)))


def records_mixed(rng: Random, scene: Scene) -> None:
    """Records in another order, twice, or missing; at times encrypted again for it."""
    flow = scene.session.flow
    for _ in range(rng.randint(1, 3)):
        i, j = rng.randrange(len(flow)), rng.randrange(len(flow))
        how = rng.randrange(3)
        if how == 0:
            flow[i], flow[j] = flow[j], flow[i]
        elif how == 1:
            flow.insert(i, Rec(**flow[j].__dict__))
        else:
            del flow[i]
    if rng.random() < 0.4:
        renumber(scene)


def long_message(rng: Random, scene: Scene) -> None:
    """A handshake message of about 128 KiB in the clear, whole, and what follows it."""
    if rng.random() > 0.1:
        return  # it takes long
    direction, size = rng.choice((0, 1)), rng.choice((131067, 131068, 131069, 140000))
    data = b"\x0b" + size.to_bytes(3, "big") + bytes(size) + b"\x0e\0\0\0"
    flow = scene.session.flow
    at = next(i for i, rec in enumerate(flow) if rec.direction == direction) + rng.choice((0, 1))
    for low in range(0, len(data), 16384):
        part = data[low : low + 16384]
        head = b"\x16\3\3" + len(part).to_bytes(2, "big")
        flow.insert(at + low // 16384, Rec(direction, HANDSHAKE, b"", head=head, body=part))


def bytes_of_record(rng: Random, scene: Scene) -> None:
    """Noise in the header or body of any record, hellos included."""
    rec = rng.choice(scene.session.flow)
    if rng.random() < 0.4:
        at = rng.randrange(5)
        rec.head = rec.head[:at] + bytes([rec.head[at] ^ 1 << rng.randrange(8)]) + rec.head[at + 1 :]
    else:
        at = rng.randrange(len(rec.body))
        part = rng.choice((bytes(20), rng.randbytes(1), rng.randbytes(20), rec.plain[at:][:20]))
        rec.body = (rec.body[:at] + part + rec.body[at + len(part) :])[: len(rec.body)]


def any_segment(rng: Random, scene: Scene) -> None:
    """Segments with any flags, number and payload, anywhere."""
    conn = rng.choice(scene.conns)
    for _ in range(rng.randint(1, 4)):
        direction = rng.choice((0, 1))
        stream = b"".join(data for side, data in conn.said() if side == direction)
        off = rng.choice((-1, 0, rng.randint(-3, len(stream) + 3), len(stream), len(stream) + 1, 2**30))
        data = stream[max(0, off) :][: rng.randint(0, 200)]
        if data and rng.random() < 0.4:
            at = rng.randrange(len(data))
            data = data[:at] + rng.randbytes(1) + data[at + 1 :]
        if rng.random() < 0.2:
            data = rng.randbytes(rng.randint(1, 50))
        kept = rng.randint(0, len(data)) if rng.random() < 0.15 else None
        flags = rng.choice((16, 16, 16, 17, 4, 2, 18, 20, 1, 0, 0x3F))
        conn.segs.insert(rng.randint(0, len(conn.segs)), Seg(direction, off, flags, data, 0, kept))


def segments_mixed(rng: Random, scene: Scene) -> None:
    """Segments lost, swapped, of one direction only, or all in another order."""
    segs = rng.choice(scene.conns).segs
    how = rng.randrange(4)
    if how == 0:
        for _ in range(rng.randint(1, 3)):
            segs.pop(rng.randrange(len(segs)))
    elif how == 1:
        i, j = rng.randrange(len(segs)), rng.randrange(len(segs))
        segs[i], segs[j] = segs[j], segs[i]
    elif how == 2:
        direction = rng.choice((0, 1))
        segs[:] = [seg for seg in segs if seg.direction == direction]
    else:
        rng.shuffle(segs)


def contradictions(rng: Random, scene: Scene) -> None:
    """Overlapping segments that contradict each other, before and after what they overlap."""
    segs, direction = scene.main.segs, rng.choice((0, 1))
    stream = scene.session.stream(direction)
    for _ in range(rng.randint(1, 5)):
        low = rng.randrange(len(stream))
        data = bytearray(stream[low : low + rng.randint(1, 400)])
        for _ in range(rng.choice((0, 1, 1, 3))):
            data[rng.randrange(len(data))] ^= rng.choice((1, 0xFF, 0x40))
        segs.insert(rng.randint(min(2, len(segs)), len(segs)), Seg(direction, low, 16, bytes(data)))


def same_ends(rng: Random, scene: Scene) -> None:
    """Both ends have one address, and at times one port."""
    net = scene.main.net
    net.addr = (net.addr[0], net.addr[0])
    if rng.random() < 0.3:
        net.port = (net.port[1], net.port[1])


def frames_mixed(rng: Random, scene: Scene) -> None:
    """Frames lost, doubled, or cut short."""
    frames = scene.frames
    for _ in range(rng.randint(1, 3)):
        i = rng.randrange(len(frames))
        how = rng.randrange(3)
        if how == 0:
            del frames[i]
        elif how == 1:
            frames.insert(rng.randint(0, len(frames)), frames[i])
        else:
            frames[i].data = frames[i].data[: rng.randint(0, len(frames[i].data))]


def payload_edited(rng: Random, scene: Scene) -> None:
    """A payload with bytes added, missing, changed, or none; also where there was none."""
    for direction in (0, 1):
        if rng.random() < 0.4:
            continue
        sent = scene.session.sent(direction)
        at, size = rng.randint(0, len(sent)), rng.choice((1, 7, 16, 100, 1000))
        edited = rng.choice(
            (
                b"",
                sent[:at] + sent[at + size :],
                sent[:at] + rng.randbytes(size) + sent[at:],
                sent[:at] + sent[max(0, at - size) :],
                sent[:at] + rng.randbytes(1) + sent[at + 1 :],
                None,
            )
        )
        if direction == 0:
            scene.payload = edited
        else:
            scene.reply = edited


def far_payload(rng: Random, scene: Scene) -> None:
    """A record, authentic or plain, with payload from as far away as a verifier looks, or a byte further."""
    rec = rng.choice(scene.session.data(0, 64))
    payload, reach = scene.session.sent(0), rng.choice((2**20, 65536))
    at = rec.pos + rng.choice((1, -1)) * (reach + rng.randint(-1, 1)) + rng.choice((0, 0, 16))
    if not 0 <= at < len(payload) - 64:
        raise ValueError
    if reach == 65536:
        rec.head, rec.body = b"", payload[at : at + 64]
    else:
        reseal(rec, plain=(payload[at:] + payload)[: len(rec.plain)])


def far_replay(rng: Random, scene: Scene) -> None:
    """What was sent before, from as far away as a verifier looks, or a byte further."""
    rec = rng.choice(scene.session.data(0, 64))
    stream, off = scene.session.stream(0), scene.session.offset(rec)
    inside = rng.choice((0, 0, rng.randrange(len(rec.plain) - 40)))
    here = off + (5 + rec.cipher_at + inside if inside else 0)
    at = here - 131072 + rng.randint(-1, 1) + rng.choice((0, 0, 16))
    if at < 0:
        raise ValueError
    if inside:
        rec.poke(inside, stream[at : at + 40])
    else:
        rec.head, rec.body = b"", stream[at : at + 64]


RECORDS: tuple[Odd, ...] = (
    updates,
    updates,
    long_message,
    clear_record,
    record_of_any_size,
    alerts,
    records_mixed,
    bytes_of_record,
)
SEGMENTS: tuple[Odd, ...] = (any_segment, any_segment, segments_mixed, contradictions, same_ends)
FRAMES: tuple[Odd, ...] = (frames_mixed, payload_edited, payload_edited)
FAR: tuple[Odd, ...] = (far_payload, far_payload, far_replay)
LAYERS = {"records": RECORDS, "segments": SEGMENTS, "frames": FRAMES}
