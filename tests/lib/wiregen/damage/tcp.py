"""Damage below the records: what is lost, sent again differently, cut short, or never closed."""

from __future__ import annotations

from random import Random

from tests.lib.wiregen.damage.kinds import Unfit, Want, kind
from tests.lib.wiregen.scene import Scene
from tests.lib.wiregen.session import CLIENT, SERVER, Rec
from tests.lib.wiregen.tcp import ACK, FIN, RST, SYN, Seg


def data_segs(scene: Scene, least: int = 1) -> list[int]:
    """Where segments of the client with this much payload are; their first and last excepted."""
    found = [i for i, seg in enumerate(scene.main.segs) if seg.direction == CLIENT and len(seg.data) >= least]
    if len(found) < 3:
        raise Unfit
    return found[1:-1]


def app_piece(rng: Random, scene: Scene, size: int) -> tuple[Rec, int]:
    """An application record, and the stream offset of a piece of its plaintext of this size."""
    recs = [rec for rec in scene.session.data(CLIENT, size) if rec.sealed]
    if not recs:
        raise Unfit
    rec = rng.choice(recs)
    return rec, scene.session.offset(rec) + 5 + rec.cipher_at


def send_again(scene: Scene, low: int, data: bytes) -> None:
    """A retransmission of these bytes after all the data."""
    segs = scene.main.segs
    last = max(i for i, seg in enumerate(segs) if seg.direction == CLIENT and seg.data)
    segs.insert(last + 1, Seg(CLIENT, low, ACK, data))


@kind("segments")
def again_with_bit(rng: Random, scene: Scene) -> Want:
    """One bit of a retransmission differs from what was sent first."""
    stream = scene.session.stream(CLIENT)
    low = rng.randrange(len(stream) - 40)
    high = min(len(stream), low + rng.randint(20, 1448))
    at, data = rng.randrange(low, high), bytearray(stream[low:high])
    data[at - low] ^= 1 << rng.randrange(8)
    send_again(scene, low, bytes(data))
    side = {"retransmissions": 1, "retransmitted_bytes": high - low, "first_difference": None}
    return Want(sent_again={"class": "bit flip", "offset": at}, side=side)


@kind("segments")
def again_with_zeros(rng: Random, scene: Scene) -> Want:
    """A retransmission is zero in a part."""
    stream = scene.session.stream(CLIENT)
    low = rng.randrange(len(stream) - 100)
    data, at = bytearray(stream[low : low + 100]), rng.randint(0, 60)
    data[at : at + 30] = bytes(30)
    send_again(scene, low, bytes(data))
    return Want(sent_again={"class": "zero run"})


@kind("segments")
def again_in_plaintext(rng: Random, scene: Scene) -> Want:
    """A retransmission carries the payload in the clear, as a card without its context would."""
    rec, at = app_piece(rng, scene, 64)
    send_again(scene, at, rec.plain)
    found = {
        "class": "plaintext",
        "expected": rec.body[rec.cipher_at :][:16].hex(),
        "got": rec.plain[:16].hex(),
    }
    if rec.body[rec.cipher_at] == rec.plain[0]:
        raise Unfit
    return Want(sent_again=found | {"offset": at})


@kind("segments")
def again_as_noise(rng: Random, scene: Scene) -> Want:
    """A retransmission is something else."""
    low = rng.randrange(len(scene.session.stream(CLIENT)) - 100)
    send_again(scene, low, rng.randbytes(80))
    return Want(sent_again={"class": "differs"})


@kind("segments")
def again_with_other_bounds(rng: Random, scene: Scene) -> Want:
    """Retransmissions with other boundaries, all equal, are no difference."""
    stream = scene.session.stream(CLIENT)
    for _ in range(5):
        low = rng.randrange(len(stream) - 40)
        send_again(scene, low, stream[low : low + rng.randint(1, 3000)])
    return Want("equal", side={"retransmissions": 5, "retransmission": None})


@kind("segments")
def segment_lost(rng: Random, scene: Scene) -> Want:
    """A segment is missing from the capture."""
    seg = scene.main.segs.pop(rng.choice(data_segs(scene)))
    return Want("inconclusive", problem=("gap", "client"), at=seg.off)


@kind("segments")
def last_segment_lost(rng: Random, scene: Scene) -> Want:
    """The last data before the FIN is missing from the capture."""
    segs = scene.main.segs
    found = [i for i, seg in enumerate(segs) if seg.direction == CLIENT and seg.data and not seg.flags & FIN]
    seg = segs.pop(found[-1])
    return Want("inconclusive", problem=("gap", "client"), at=seg.off)


@kind("segments")
def segment_cut_short(rng: Random, scene: Scene) -> Want:
    """The capture kept only the first bytes of a segment."""
    seg = scene.main.segs[rng.choice(data_segs(scene, least=40))]
    seg.kept = rng.randint(0, len(seg.data) - 1)
    cut = {"cut_bytes": len(seg.data) - seg.kept}
    return Want("inconclusive", problem=("gap", "client"), at=seg.off + seg.kept, side=cut)


@kind("segments")
def begun_without_syn(rng: Random, scene: Scene) -> Want:
    """The capture begins just after the client's SYN."""
    segs = scene.main.segs
    scene.main.segs = [seg for seg in segs if seg.direction != CLIENT or not seg.flags & SYN]
    return Want("inconclusive", problem=("no-syn", "client"))


@kind("segments")
def begun_without_answer(rng: Random, scene: Scene) -> Want:
    """The capture lacks the SYN of the server."""
    segs = scene.main.segs
    scene.main.segs = [seg for seg in segs if seg.direction != SERVER or not seg.flags & SYN]
    return Want("inconclusive", problem=("no-syn", "server"))


@kind("segments")
def begun_mid_stream(rng: Random, scene: Scene) -> Want:
    """The capture begins in the middle of the connection."""
    segs = scene.main.segs
    starts = {scene.session.offset(rec) for rec in scene.session.of(CLIENT)}
    clean = [
        i for i in data_segs(scene) if segs[i].off not in starts and segs[i].data[0] not in (20, 21, 22, 23)
    ]
    if not clean:
        raise Unfit
    scene.main.segs = [seg for seg in segs[rng.choice(clean) :] if seg.direction == CLIENT or not seg.data]
    return Want("inconclusive", problem=("no-tls", ""), listed=0)


@kind("segments")
def no_fin(rng: Random, scene: Scene) -> Want:
    """The capture lacks the client's close, so how much it had to send is unknown."""
    scene.payload = None
    for seg in scene.main.segs:
        seg.flags &= ~FIN if seg.direction == CLIENT else 0xFF
    return Want("inconclusive", problem=("no-close", "client"))


@kind("segments")
def no_fin_but_all_there(rng: Random, scene: Scene) -> Want:
    """Nobody saw the client close, and all of its payload was proven."""
    for seg in scene.main.segs:
        seg.flags &= ~FIN if seg.direction == CLIENT else 0xFF
    return Want("equal")


@kind("segments")
def reset_for_fin(rng: Random, scene: Scene) -> Want:
    """The client ended with RST, so how much it had to send is unknown."""
    scene.payload = None
    for seg in scene.main.segs:
        if seg.direction == CLIENT and seg.flags & FIN:
            seg.flags = seg.flags & ~FIN if seg.data else RST
    scene.main.segs.append(Seg(CLIENT, len(scene.session.stream(CLIENT)), RST))
    return Want("inconclusive", problem=("reset", "client"))


@kind("segments")
def aborted_too_early(rng: Random, scene: Scene) -> Want:
    """The connection was reset before all of the payload was sent."""
    rec, at = app_piece(rng, scene, 40)
    kept = [seg for seg in scene.main.segs if seg.direction == SERVER or seg.off + len(seg.data) <= at]
    kept = [seg for seg in kept if seg.direction == SERVER or not seg.flags & FIN]
    scene.main.segs = [*kept, Seg(CLIENT, at, RST)]
    return Want("inconclusive", problem=("payload-not-covered", "client"))


@kind("segments")
def data_beyond_fin(rng: Random, scene: Scene) -> Want:
    """The client sends more after its FIN."""
    scene.main.segs.append(Seg(CLIENT, len(scene.session.stream(CLIENT)) + 1, ACK, rng.randbytes(30)))
    return Want("inconclusive", problem=("data-after-fin", "client"))


@kind("segments")
def strange_numbers(rng: Random, scene: Scene) -> Want:
    """Segments with sequence numbers from nowhere are left out, counted, and a problem."""
    segs = scene.main.segs
    last = rng.choice(data_segs(scene))
    off = segs[last].off
    for _ in range(3):
        far = rng.choice((2**30 + 2**20, 2**31 - 2**20, -(2**30)))
        segs.insert(last, Seg(CLIENT, off + far, ACK, rng.randbytes(20)))
    return Want("inconclusive", problem=("stray-data", "client"), side={"strange": 3})


@kind("segments")
def wrong_first_copy(rng: Random, scene: Scene) -> Want:
    """A copy with a wrong checksum and a wrong bit comes first: without --checksums that is the stream."""
    i = rng.choice(data_segs(scene))
    seg = scene.main.segs[i]
    at = rng.randrange(len(seg.data))
    data = seg.data[:at] + bytes([seg.data[at] ^ 2]) + seg.data[at + 1 :]
    scene.main.segs.insert(i, seg.copy(data=data, spoiled=True))
    return Want(sent_again={"class": "bit flip", "offset": seg.off + at})


@kind("segments")
def wrong_copy_dropped(rng: Random, scene: Scene) -> Want:
    """With --checksums a copy with a wrong checksum is dropped, as a receiver would."""
    wrong_first_copy(rng, scene)
    scene.checksums = True
    return Want("equal", side={"retransmission": None, "retransmissions": 0})


@kind("segments")
def checksum_wrong_and_only(rng: Random, scene: Scene) -> Want:
    """With --checksums the only copy of a segment is dropped, and that leaves a gap."""
    seg = scene.main.segs[rng.choice(data_segs(scene))]
    seg.spoiled, scene.checksums = True, True
    return Want("inconclusive", problem=("gap", "client"), at=seg.off)
