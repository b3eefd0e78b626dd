"""Damage to record headers, to where records begin and end, and handshakes that nobody here can follow."""

from __future__ import annotations

from random import Random

from tests.lib.wiregen import hello
from tests.lib.wiregen.damage.kinds import Unfit, Want, blame, kind, pick
from tests.lib.wiregen.scene import Scene
from tests.lib.wiregen.session import ALERT, CCS, CLIENT, DATA, HANDSHAKE, RAW, SERVER, Rec
from tests.lib.wiregen.talk import Plan, talk


def set_head(rec: Rec, at: int, value: int) -> None:
    """Overwrite a byte of the header."""
    rec.head = rec.head[:at] + bytes([value]) + rec.head[at + 1 :]


def set_length(rec: Rec, value: int) -> None:
    """Overwrite the length in the header."""
    rec.head = rec.head[:3] + value.to_bytes(2, "big")


def insert(scene: Scene, before: Rec, data: bytes) -> Rec:
    """Bytes that are no record, before this one."""
    raw = Rec(before.direction, RAW, b"", body=data)
    scene.session.flow.insert(next(i for i, one in enumerate(scene.session.flow) if one is before), raw)
    return raw


@kind("records")
def bit_in_type(rng: Random, scene: Scene) -> Want:
    """One bit of the type is flipped, and the type is one that exists."""
    rec = pick(rng, scene)
    bit = rng.choice((0, 1))
    set_head(rec, 0, 23 ^ 1 << bit)
    return blame(scene, rec, "bit flip", "header", at=0, detail=f"bit {bit}")


@kind("records")
def bit_in_type_implausible(rng: Random, scene: Scene) -> Want:
    """One bit of the type is flipped, and there is no such type."""
    rec = pick(rng, scene)
    bit = rng.randint(2, 7)
    set_head(rec, 0, 23 ^ 1 << bit)
    return blame(scene, rec, "bit flip", "header", at=0, detail=f"bit {bit}")


@kind("records")
def bit_in_minor_version(rng: Random, scene: Scene) -> Want:
    """One bit of the minor version is flipped, to a version that exists."""
    rec = pick(rng, scene)
    bit = rng.choice((0, 1))
    set_head(rec, 2, 3 ^ 1 << bit)
    return blame(scene, rec, "bit flip", "header", at=2, detail=f"bit {bit}")


@kind("records")
def bit_in_version_implausible(rng: Random, scene: Scene) -> Want:
    """One bit of the version is flipped, to one that nobody speaks."""
    rec = pick(rng, scene)
    at, bit = rng.choice((1, 2)), rng.randint(2, 7)
    set_head(rec, at, 3 ^ 1 << bit)
    return blame(scene, rec, "bit flip", "header", at=at, detail=f"bit {bit}")


@kind("records")
def version_wrong(rng: Random, scene: Scene) -> Want:
    """The version is 3.0 or 3.4, which is no bit flip."""
    rec = pick(rng, scene)
    set_head(rec, 2, rng.choice((0, 4)))
    return blame(scene, rec, "lost framing", "header")


@kind("records")
def bit_in_length(rng: Random, scene: Scene) -> Want:
    """One bit of the length is flipped, to a length that the stream has."""
    rec = pick(rng, scene)
    session = scene.session
    rest = len(session.stream(rec.direction)) - session.offset(rec) - 5
    lengths = [(len(rec.body) ^ 1 << bit, bit) for bit in range(15)]
    length, bit = rng.choice([(size, bit) for size, bit in lengths if 24 < size <= min(rest, 16640)])
    set_length(rec, length)
    return blame(scene, rec, "bit flip", "header", at=4 - bit // 8, detail=f"bit {bit % 8}")


@kind("records")
def bit_in_length_implausible(rng: Random, scene: Scene) -> Want:
    """One bit of the length is flipped, to more than a record can have."""
    rec = pick(rng, scene)
    bit = 15
    set_length(rec, len(rec.body) | 1 << bit)
    return blame(scene, rec, "bit flip", "header", at=3, detail="bit 7")


@kind("records")
def length_too_large(rng: Random, scene: Scene) -> Want:
    """The length is more than a record can have, and no bit flip."""
    rec = pick(rng, scene)
    set_length(rec, 0xFFFF - rng.randint(0, 255))
    return blame(scene, rec, "lost framing", "header")


@kind("records")
def zeros_for_header(rng: Random, scene: Scene) -> Want:
    """The header is zero."""
    rec = pick(rng, scene)
    rec.head = bytes(5)
    return blame(scene, rec, "zero run", "header")


@kind("records")
def noise_for_header(rng: Random, scene: Scene) -> Want:
    """The header is noise."""
    rec = pick(rng, scene)
    rec.head = bytes([rng.choice((0xC1, 0x80, 0x2A))]) + rng.randbytes(4)
    return blame(scene, rec, "lost framing", "header")


@kind("records")
def plaintext_without_record(rng: Random, scene: Scene) -> Want:
    """Payload is on the wire as it is, where a record should be."""
    rec = pick(rng, scene)
    if rec.plain[0] in (20, 21, 22, 23, 0):
        raise Unfit
    rec.head, rec.body = b"", rec.plain
    return blame(scene, rec, "plaintext", "header")


@kind("records")
def replay_at_header(rng: Random, scene: Scene) -> Want:
    """Where a record should begin there is a piece of what was sent before."""
    rec = pick(rng, scene)
    session = scene.session
    before = session.stream(rec.direction)[: session.offset(rec)]
    at = rng.randrange(len(before) - 40)
    if before[at] in (20, 21, 22, 23, 0, 7, 31, 19, 55, 87, 151):
        raise Unfit
    insert(scene, rec, before[at : at + 40])
    return Want(first={"class": "replay", "field": "header", "offset": session.offset(rec) - 40})


@kind("records")
def extra_bytes_before_header(rng: Random, scene: Scene) -> Want:
    """N bytes that belong to nothing stand before a record."""
    rec = pick(rng, scene)
    size = rng.choice((1, 64, rng.randint(1, 64)))
    raw = insert(scene, rec, noise(rng, size))
    first = {"class": "shift", "field": "header", "offset": scene.session.offset(raw), "detail": f"+{size}"}
    return Want(first=first)


@kind("records")
def extra_bytes_beyond_reach(rng: Random, scene: Scene) -> Want:
    """More bytes that belong to nothing stand before a record than the next header is looked for in."""
    raw = insert(scene, pick(rng, scene), noise(rng, 65))
    return Want(first={"class": "lost framing", "field": "header", "offset": scene.session.offset(raw)})


def noise(rng: Random, size: int) -> bytes:
    """Bytes that cannot be the beginning of a record."""
    return bytes([rng.choice((0xC1, 0x80, 0x2A))]) + rng.randbytes(size - 1)


@kind("records")
def tag_cut_short(rng: Random, scene: Scene) -> Want:
    """Bytes at the end of a record are missing from the stream: the next header is taken for them."""
    rec = pick(rng, scene)
    rec.body = rec.body[: -rng.randint(3, 15)]
    return blame(scene, rec, "bad tag", "tag")


@kind("records")
def missing_bytes_in_stream(rng: Random, scene: Scene) -> Want:
    """Bytes inside a record are missing from the stream."""
    rec = pick(rng, scene, 120)
    gone = rng.randint(1, min(250, rec.cipher_size - 60))
    at = rec.cipher_at + rng.randrange(rec.cipher_size - gone - 40)
    rec.body = rec.body[:at] + rec.body[at + gone :]
    return blame(scene, rec, "shift", "ciphertext", detail=f"+{gone}")


@kind("records")
def extra_bytes_in_stream(rng: Random, scene: Scene) -> Want:
    """Bytes that belong to nothing stand inside a record."""
    rec = pick(rng, scene)
    at = rec.cipher_at + rng.randrange(rec.cipher_size - 40)
    rec.body = rec.body[:at] + rng.randbytes(rng.randint(20, 60)) + rec.body[at:]
    return blame(scene, rec, "garbage", "ciphertext")


@kind("records")
def record_too_short(rng: Random, scene: Scene) -> Want:
    """A protected record has no room for a tag."""
    rec = pick(rng, scene)
    rec.body = rec.body[: rng.randint(0, len(rec.explicit) + 15)]
    set_length(rec, len(rec.body))
    return blame(scene, rec, "malformed", "length")


@kind("records")
def stream_cut_in_record(rng: Random, scene: Scene) -> Want:
    """The client's FIN comes in the middle of a record."""
    rec = pick(rng, scene)
    session = scene.session
    after = session.of(CLIENT)[session.number(rec) + 1 :]
    session.flow = [one for one in session.flow if not any(one is late for late in after)]
    want = blame(scene, rec, "truncation", "length")
    cut = rng.randint(1, len(rec.wire) - 1)
    rec.head, rec.body = b"", rec.wire[:cut]
    return want


@kind("records", "tls12")
def second_ccs(rng: Random, scene: Scene) -> Want:
    """TLS 1.2 is negotiated again within the connection."""
    rec = pick(rng, scene)
    raw = insert(scene, rec, b"\x14\3\3\0\1\1")
    assert raw.direction == CLIENT
    return Want("inconclusive", problem=("renegotiation", "client"))


@kind("records")
def alert_in_clear(rng: Random, scene: Scene) -> Want:
    """An alert comes before anything is protected."""
    flow = scene.session.flow
    insert(scene, next(rec for rec in flow if rec.direction == SERVER), b"\x15\3\3\0\2\1\x70")
    return Want("inconclusive", problem=("clear-alert", "server"))


@kind("records")
def no_client_hello(rng: Random, scene: Scene) -> Want:
    """The client's first handshake message is another."""
    rec = next(rec for rec in scene.session.flow if rec.direction == CLIENT)
    rec.body = hello.stand_in(rng, 16, 33, 66)
    set_length(rec, len(rec.body))
    return Want("inconclusive", problem=("no-hello", ""))


@kind("records")
def handshake_missing(rng: Random, scene: Scene) -> Want:
    """The connection is seen from its first application record on."""
    flow = scene.session.flow
    scene.session.flow = [rec for rec in flow if rec.kind == DATA]
    return Want("inconclusive", problem=("no-hello", ""))


@kind("records")
def other_suite(rng: Random, scene: Scene) -> Want:
    """The server chooses a suite that nobody here can check."""
    rec, at = server_random_in(scene)
    at = rec.body.find(scene.session.suite.code.to_bytes(2, "big"), at + 33)
    return swap(rec, at, b"\xc0\x13", "cipher")


@kind("records", "tls12")
def other_version(rng: Random, scene: Scene) -> Want:
    """The server chooses TLS 1.1."""
    rec, at = server_random_in(scene)
    return swap(rec, at - 2, b"\3\2", "version")


def server_random_in(scene: Scene) -> tuple[Rec, int]:
    """The record with the ServerHello, and where its random is."""
    for rec in scene.session.flow:
        if rec.direction == SERVER and rec.kind == HANDSHAKE and scene.session.server_random in rec.body:
            return rec, rec.body.find(scene.session.server_random)
    raise Unfit


def swap(rec: Rec, at: int, new: bytes, problem: str) -> Want:
    """Overwrite bytes of a hello, which makes it one that nobody here can follow."""
    if not 0 < at <= len(rec.body) - len(new):
        raise Unfit
    rec.body = rec.body[:at] + new + rec.body[at + len(new) :]
    return Want("inconclusive", problem=(problem, ""))


@kind("records")
def handshake_too_long(rng: Random, scene: Scene) -> Want:
    """The server's handshake in the clear never ends."""
    flow = scene.session.flow
    first = next(i for i, rec in enumerate(flow) if rec.direction == SERVER and rec.kind == HANDSHAKE)
    flow[first].body = b"\2\2\0\0" + flow[first].body[4:]
    for _ in range(9):
        flow.insert(first + 1, Rec(SERVER, HANDSHAKE, b"", head=b"\x16\3\3\x40\0", body=bytes(16384)))
    return Want("inconclusive", problem=("handshake-too-long", "server"))


@kind("records", "tls13")
def early_data(rng: Random, scene: Scene) -> Want:
    """The client sends 0-RTT data, for which the verifier has no place."""
    suite = scene.session.suite
    plan = Plan(suite, [(CLIENT, 300), (SERVER, 300)], resumed=True, early=2)
    session = talk(rng, plan)
    if not any(line.startswith("CLIENT_EARLY") for line in session.log):
        raise Unfit
    scene.main.session, scene.payload = session, None
    return Want("inconclusive", problem=("early-data", "client"))


@kind("records")
def random_flipped(rng: Random, scene: Scene) -> Want:
    """A bit of the ClientHello's random is flipped: no key belongs to it."""
    rec = next(rec for rec in scene.session.flow if rec.direction == CLIENT)
    at = rec.body.find(scene.session.client_random) + rng.randrange(32)
    rec.body = rec.body[:at] + bytes([rec.body[at] ^ 1]) + rec.body[at + 1 :]
    return Want("inconclusive", problem=("no-key", ""))


@kind("records", "tls13")
def ccs_anywhere(rng: Random, scene: Scene) -> Want:
    """TLS 1.3 ignores change_cipher_spec during the handshake, and not after Finished."""
    assert CCS != ALERT
    rec = pick(rng, scene)
    at = scene.session.offset(rec)
    insert(scene, rec, b"\x14\3\3\0\1\1")
    return Want("inconclusive", problem=("change-cipher-spec", "client"), at=at)
