"""What a hostile card could hide payload in, or slip past a receiver; and what looks like it and is legal."""

from __future__ import annotations

import struct
from random import Random

from tests.lib.wiregen import frames, strays
from tests.lib.wiregen.damage.frames import leaked, secret
from tests.lib.wiregen.damage.kinds import Unfit, Want, kind
from tests.lib.wiregen.damage.tcp import data_segs
from tests.lib.wiregen.frames import ETHERNET, Frame, Link, ip_bytes, tcp_bytes
from tests.lib.wiregen.scene import Scene
from tests.lib.wiregen.session import CCS, CLIENT, HANDSHAKE, RAW, SERVER, Rec
from tests.lib.wiregen.tcp import ACK, FIN, RST, SYN, URG, Seg


def before_end(scene: Scene, *more: Seg) -> None:
    """Put segments behind the last data of the client."""
    segs = scene.main.segs
    last = max(i for i, seg in enumerate(segs) if seg.direction == CLIENT and seg.data)
    segs[last + 1 : last + 1] = more


def size(scene: Scene) -> int:
    """The bytes that the client sent."""
    return len(scene.session.stream(CLIENT))


@kind("segments")
def stray_far_away(rng: Random, scene: Scene) -> Want:
    """Payload in plaintext with a number from before the stream, or from far ahead."""
    data, needle = secret(rng, scene)
    far = rng.choice((-rng.randint(100, 2**30), 2**30 + 2**20, 2**31 - 2**20))
    before_end(scene, Seg(CLIENT, far, ACK, data))
    return Want(problem=("stray-data", "client"), leak={"payload_offset": needle, "of": "payload"})


@kind("segments")
def stray_over_the_begin(rng: Random, scene: Scene) -> Want:
    """Payload in plaintext that begins before the stream and ends in it."""
    data, needle = secret(rng, scene)
    before_end(scene, Seg(CLIENT, -rng.randint(2, 30), ACK | rng.choice((0, RST)), data))
    return Want(problem=("stray-data", "client"), leak={"payload_offset": needle})


@kind("segments")
def stray_on_reset(rng: Random, scene: Scene) -> Want:
    """Payload in plaintext on a RST: no receiver accepts it, and every tap sees it."""
    data, needle = secret(rng, scene)
    scene.main.segs.append(Seg(CLIENT, size(scene), RST, data))
    return Want(problem=("stray-data", "client"), leak={"payload_offset": needle})


@kind("segments")
def stray_noise(rng: Random, scene: Scene) -> Want:
    """Bytes of nowhere on a RST are no payload, and yet nothing explains them."""
    scene.main.segs.append(Seg(SERVER, 5, RST, rng.randbytes(40)))
    return Want("inconclusive", problem=("stray-data", "server"))


@kind("segments")
def second_syn(rng: Random, scene: Scene) -> Want:
    """A SYN with another number comes in the middle of the connection."""
    scene.main.segs.append(Seg(CLIENT, 70000, SYN))
    for seg in scene.main.segs:
        seg.flags &= ~FIN if seg.direction == CLIENT else 0xFF
    return Want("inconclusive", problem=("second-syn", "client"))


@kind("segments")
def second_syn_answer(rng: Random, scene: Scene) -> Want:
    """A SYN+ACK with another number comes in the middle of the connection, with payload in plaintext."""
    data, needle = secret(rng, scene)
    before_end(scene, Seg(SERVER, 7000, SYN | ACK, data))
    return Want(problem=("second-syn", "server"), leak={"payload_offset": needle})


@kind("segments")
def second_fin(rng: Random, scene: Scene) -> Want:
    """A second FIN says that the stream ends elsewhere."""
    off = size(scene) - rng.choice((-3, 5, 40))
    scene.main.segs.append(Seg(CLIENT, off, ACK | FIN))
    return Want("inconclusive", problem=("second-fin", "client"), at=off)


@kind("segments")
def urgent(rng: Random, scene: Scene) -> Want:
    """A segment is marked urgent, so a receiver may take a byte out of the stream."""
    seg = scene.main.segs[rng.choice(data_segs(scene))]
    seg.flags |= URG
    return Want("inconclusive", problem=("urgent", "client"), at=seg.off)


@kind("segments")
def again_and_cut(rng: Random, scene: Scene) -> Want:
    """The capture kept only the first bytes of a retransmission: nobody saw what the others were."""
    seg = scene.main.segs[rng.choice(data_segs(scene, least=2))]
    kept = rng.randint(0, len(seg.data) - 1)
    before_end(scene, seg.copy(kept=kept))
    return Want("inconclusive", problem=("cut-segment", "client"), at=seg.off + kept)


def open_end(scene: Scene, data: bytes, reset: bool) -> int:
    """More bytes behind the client's last record, and no FIN of it; where they begin."""
    for seg in scene.main.segs:
        seg.flags &= ~FIN if seg.direction == CLIENT else 0xFF
    more = [Seg(CLIENT, size(scene), ACK, data)]
    before_end(scene, *more, *([Seg(CLIENT, size(scene) + len(data), RST)] if reset else []))
    return size(scene)


@kind("segments")
def tail_of_noise(rng: Random, scene: Scene) -> Want:
    """Random bytes that begin like a record, or four bytes, behind the last one, and no FIN."""
    data = rng.choice((b"\x17\3\3\x40\0" + rng.randbytes(50), rng.randbytes(4), b"\x15"))
    at = open_end(scene, data, rng.random() < 0.5)
    return Want("inconclusive", problem=("tail", "client"), at=at)


@kind("segments")
def tail_of_payload(rng: Random, scene: Scene) -> Want:
    """A record's header and payload in plaintext behind the last record, and no FIN."""
    data, needle = secret(rng, scene)
    at = open_end(scene, b"\x17\3\3\x40\0" + data, rng.random() < 0.5)
    found = {"class": "plaintext", "detail": f"payload offset {needle}", "offset": at, "field": "payload"}
    return Want(problem=("tail", "client"), at=at, first=found)


def clear(scene: Scene, before: Rec, head: bytes, body: bytes) -> int:
    """Put a clear record before another one; where it begins in the stream."""
    flow = scene.session.flow
    rec = Rec(before.direction, before.kind, b"", head=head + struct.pack(">H", len(body)), body=body)
    flow.insert(next(i for i, one in enumerate(flow) if one is before), rec)
    return scene.session.offset(rec)


def begin(scene: Scene, direction: int) -> Rec:
    """Return what begins protection: the ChangeCipherSpec, or the first protected record."""
    tls13 = scene.session.suite.tls13
    return next(rec for rec in scene.session.of(direction) if (rec.sealed if tls13 else rec.kind == CCS))


@kind("records", "tls12")
def data_in_clear(rng: Random, scene: Scene) -> Want:
    """Application data before protection begins."""
    data, needle = secret(rng, scene)
    at = clear(scene, begin(scene, CLIENT), b"\x17\3\3", data)
    found = {"class": "plaintext", "detail": f"payload offset {needle}", "offset": at, "field": "payload"}
    return Want(problem=("clear-record", "client"), at=at, first=found)


@kind("records", "tls12")
def empty_data_in_clear(rng: Random, scene: Scene) -> Want:
    """Application data of no byte, or of noise, before protection begins."""
    at = clear(scene, begin(scene, SERVER), b"\x17\3\3", rng.choice((b"", rng.randbytes(30))))
    return Want("inconclusive", problem=("clear-record", "server"), at=at)


@kind("records", "tls13")
def data_before_hello(rng: Random, scene: Scene) -> Want:
    """Application data before the ServerHello of TLS 1.3."""
    at = clear(scene, scene.session.of(SERVER)[0], b"\x17\3\3", rng.randbytes(rng.choice((0, 20))))
    return Want("inconclusive", problem=("clear-record", "server"), at=at)


@kind("records", "tls13")
def handshake_in_clear(rng: Random, scene: Scene) -> Want:
    """A message in plaintext that must be encrypted in TLS 1.3."""
    body = b"\x0b\0\0\x1e" + rng.randbytes(30)
    at = clear(scene, begin(scene, SERVER), b"\x16\3\3", body)
    return Want("inconclusive", problem=("clear-record", "server"), at=at)


@kind("records", "tls12")
def payload_in_handshake(rng: Random, scene: Scene) -> Want:
    """A well-formed handshake message holds payload, in one record or in pieces that are too short to see."""
    data, needle = secret(rng, scene)
    message, piece = b"\x0b" + len(data).to_bytes(3, "big") + data, rng.choice((7, 15, 16, 64))
    flow, rec = scene.session.flow, begin(scene, CLIENT)
    place = next(i for i, one in enumerate(flow) if one is rec)
    for at in range(0, len(message), piece):
        part = message[at : at + piece]
        flow.insert(place, Rec(CLIENT, RAW, b"", head=b"\x16\3\3" + struct.pack(">H", len(part)), body=part))
        place += 1
    return Want(first={"class": "plaintext", "detail": f"payload offset {needle}", "expected": ""})


@kind("records")
def payload_in_hello(rng: Random, scene: Scene) -> Want:
    """The session ticket in a ClientHello is payload."""
    data, needle = secret(rng, scene)
    rec = next(rec for rec in scene.session.of(CLIENT) if rec.kind == HANDSHAKE)
    at = rec.body.find(b"canary-")
    rec.body = rec.body[:at] + data + rec.body[at + len(data) :]
    if rec.sealed or at < 0 or len(rec.wire) < at + 5 + len(data) or len(rec.body) + 5 != len(rec.wire):
        raise Unfit
    rec.head = rec.head[:3] + len(rec.body).to_bytes(2, "big")
    return Want(first={"class": "plaintext", "detail": f"payload offset {needle}", "record": 0})


@kind("records")
def ccs_of_payload(rng: Random, scene: Scene) -> Want:
    """A ChangeCipherSpec holds payload instead of its one byte."""
    data, needle = secret(rng, scene)
    rec = next((rec for rec in scene.session.of(CLIENT) if rec.kind == CCS and not rec.sealed), None)
    if rec is None:
        raise Unfit
    rec.body, rec.head = data, rec.head[:3] + len(data).to_bytes(2, "big")
    at = scene.session.offset(rec)
    first = {"class": "plaintext", "detail": f"payload offset {needle}", "offset": at}
    return Want(problem=("change-cipher-spec", "client"), at=at, first=first)


@kind("records")
def ccs_of_two(rng: Random, scene: Scene) -> Want:
    """A ChangeCipherSpec has another value, or not one byte."""
    rec = next((rec for rec in scene.session.of(CLIENT) if rec.kind == CCS and not rec.sealed), None)
    if rec is None:
        raise Unfit
    rec.body = rng.choice((b"", b"\2", b"\1\1", b"\0"))
    rec.head = rec.head[:3] + len(rec.body).to_bytes(2, "big")
    at = scene.session.offset(rec)
    return Want("inconclusive", problem=("change-cipher-spec", "client"), at=at)


def main_link(scene: Scene, *kinds: int) -> Link:
    """An interface of the main connection, of one of these kinds."""
    for link in scene.links:
        if (not kinds or link.kind in kinds) and link.kind != (
            frames.IPV4 if scene.main.net.v6 else frames.IPV6
        ):
            return link
    raise Unfit


def plainly(scene: Scene) -> None:
    """No options, extensions nor trailers: only what the damage itself puts there."""
    net = scene.main.net
    net.options, net.extensions, net.big, net.trailer, net.stamps = 0, (), False, 0, False


@kind("frames")
def fragment_of_connection(rng: Random, scene: Scene) -> Want:
    """A fragment of TCP goes between the addresses of the connection, in either direction."""
    plainly(scene)
    net, link = scene.main.net, main_link(scene)
    flags = rng.choice((1, 8)) if net.v6 else rng.choice((0x2000, 0x2001, 1))
    packet = ip_bytes(net, rng.choice((CLIENT, SERVER)), rng.randbytes(60), 6, flags)
    scene.frames.append(frames.frame(rng, link, packet, strays.ethertype(net.v6), -1))
    return Want("inconclusive", problem=("unread-tcp", ""), at=len(scene.frames))


@kind("frames")
def header_cut(rng: Random, scene: Scene) -> Want:
    """The capture cut a frame of the connection inside its TCP header, or that header is damaged."""
    plainly(scene)
    net, link = scene.main.net, main_link(scene)
    packet = bytearray(ip_bytes(net, CLIENT, tcp_bytes(net, Seg(CLIENT, 0, ACK, rng.randbytes(30)))))
    tcp = 40 if net.v6 else 20
    if rng.random() < 0.5:
        packet[tcp + 12] = rng.choice((0, 0x40, 0xF0))
    made = frames.frame(rng, link, bytes(packet), strays.ethertype(net.v6), -1)
    if packet[tcp + 12] not in (0, 0x40, 0xF0):
        made.data = made.data[: len(made.data) - 30 - rng.randint(1, 20)]
    scene.frames.append(made)
    return Want("inconclusive", problem=("unread-tcp", ""), at=len(scene.frames))


def in_front(scene: Scene, link: Link, packet: bytes, data: bytes, needle: int) -> Want:
    """The verdict for one more frame of the connection, with payload in it."""
    made = frames.frame(scene.rng, link, packet, strays.ethertype(scene.main.net.v6), -1)
    return leaked(scene, made, data, needle)


@kind("frames")
def leak_in_tcp_options(rng: Random, scene: Scene) -> Want:
    """Payload is in the TCP options of a segment of the connection."""
    data, needle = secret(rng, scene)
    plainly(scene)
    data = (data + data)[:40]
    if (scene.payload or b"")[needle : needle + 16] not in data:
        raise Unfit
    net = scene.main.net
    tcp = bytearray(tcp_bytes(net, Seg(CLIENT, size(scene), ACK)))
    tcp[12] = 0xF0
    made = frames.frame(
        rng, main_link(scene), ip_bytes(net, CLIENT, bytes(tcp) + data), strays.ethertype(net.v6), -1
    )
    scene.frames.append(made)
    where = made.data.find((scene.payload or b"")[needle : needle + 16])
    return Want(leak={"frame": len(scene.frames), "at": where, "payload_offset": needle, "frames": 1})


@kind("frames")
def leak_in_gre(rng: Random, scene: Scene) -> Want:
    """A copy of a segment in GRE has payload in plaintext."""
    data, needle = secret(rng, scene)
    plainly(scene)
    net = scene.main.net
    inner = ip_bytes(net, CLIENT, tcp_bytes(net, Seg(CLIENT, 40, ACK, data)))
    head = struct.pack(">HH", 0, strays.ethertype(net.v6))
    return in_front(scene, main_link(scene), ip_bytes(net, CLIENT, head + inner, 47), data, needle)


@kind("frames")
def copy_in_another_tag(rng: Random, scene: Scene) -> Want:
    """A copy of a segment under VLAN tag 0x9200 has one other bit."""
    segs = scene.main.segs
    seg = segs[rng.choice(data_segs(scene))]
    at = rng.randrange(len(seg.data))
    data = seg.data[:at] + bytes([seg.data[at] ^ 4]) + seg.data[at + 1 :]
    link = main_link(scene, ETHERNET)
    made = frames.seg_frame(rng, Link(ETHERNET, (0x9200,)), scene.main.net, seg.copy(data=data))
    scene.frames.append(Frame(made.data, made.orig, link))
    return Want(sent_again={"class": "bit flip", "offset": seg.off + at})


@kind("frames")
def leak_of_reply(rng: Random, scene: Scene) -> Want:
    """Return what the server sent is in plaintext elsewhere."""
    scene.reply = scene.session.sent(SERVER)
    if len(scene.reply) < 100:
        raise Unfit
    data = scene.reply[32:80]
    scene.frames.append(strays.datagram(rng, rng.choice(scene.links), data))
    return Want(leak={"frame": len(scene.frames), "payload_offset": 32, "of": "reply", "frames": 1})


@kind("segments")
def keepalive_with_garbage(rng: Random, scene: Scene) -> Want:
    """A keep-alive has a byte of any value at the last number that was acknowledged (RFC 1122 4.2.3.6)."""
    byte = bytes([scene.session.stream(CLIENT)[-1] ^ rng.randint(1, 255)])
    keep = [Seg(CLIENT, size(scene) - 1, ACK, byte)] * rng.randint(1, 3)
    before_end(scene, Seg(SERVER, 0, ACK, ack=size(scene)), *keep)
    return Want("equal", side={"retransmission": None})


@kind("segments")
def keepalive_at_the_begin(rng: Random, scene: Scene) -> Want:
    """A keep-alive before anything was sent has the number of the SYN."""
    segs = scene.main.segs
    first = next(i for i, seg in enumerate(segs) if seg.direction == SERVER)
    segs.insert(first + 1, Seg(CLIENT, -1, ACK, rng.randbytes(1)))
    return Want("equal", side={"strange": 0, "retransmission": None})


@kind("segments")
def keepalive_unacknowledged(rng: Random, scene: Scene) -> Want:
    """One other byte where nothing is acknowledged is no keep-alive: the receiver may take it."""
    segs = scene.main.segs
    first = next(
        i for i, seg in enumerate(segs) if seg.direction == CLIENT and seg.data and not seg.flags & SYN
    )
    end = segs[first].off + len(segs[first].data)
    byte = bytes([scene.session.stream(CLIENT)[end - 1] ^ 1])
    segs.insert(first + 1, Seg(CLIENT, end - 1, ACK, byte))
    if segs[first].off:
        raise Unfit
    return Want(sent_again={"class": "bit flip", "offset": end - 1})


@kind("segments")
def late_and_legal(rng: Random, scene: Scene) -> Want:
    """Old acknowledgements, the last segment again, FIN again, and RST of any number without payload."""
    segs, stream = scene.main.segs, scene.session.stream(CLIENT)
    tail = rng.randint(1, 900)
    segs += [
        Seg(CLIENT, max(0, len(stream) - tail), ACK | FIN, stream[-tail:]),
        Seg(SERVER, 0, ACK, ack=rng.randint(0, len(stream))),
        Seg(CLIENT, len(stream), ACK | FIN),
        Seg(CLIENT, rng.choice((-1, -(2**29), len(stream), 2**30 + 2**20)), RST | rng.choice((0, ACK))),
        Seg(SERVER, rng.choice((-1, 1, 2**31 - 2**20)), RST),
    ]
    return Want("equal")


@kind("segments")
def answer_before_the_syn(rng: Random, scene: Scene) -> Want:
    """Two processors captured: the server's SYN lies before the client's that it answers."""
    segs = scene.main.segs
    first = next(i for i, seg in enumerate(segs) if seg.direction == SERVER)
    if not segs[0].flags & SYN or not segs[first].flags & SYN:
        raise Unfit
    segs.insert(0, segs.pop(first))
    return Want("equal")


@kind("frames")
def others_between_the_ends(rng: Random, scene: Scene) -> Want:
    """Other protocols, and other encapsulations, between the same addresses are searched, and no problem."""
    plainly(scene)
    net = scene.main.net
    for protocol in (17, 47, 50, 1, 4):
        packet = ip_bytes(net, rng.choice((CLIENT, SERVER)), rng.randbytes(90), protocol)
        scene.frames.append(frames.frame(rng, main_link(scene), packet, strays.ethertype(net.v6), -1))
    return Want("equal")
