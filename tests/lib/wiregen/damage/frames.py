"""Leaks of payload outside the stream, and questions that cannot be answered: keys, payload, file."""

from __future__ import annotations

import struct
from random import Random

from tests.lib.wiregen import frames, good, strays
from tests.lib.wiregen.damage.kinds import Unfit, Want, kind
from tests.lib.wiregen.frames import ETHERNET, Frame, any_net
from tests.lib.wiregen.scene import Conn, Scene
from tests.lib.wiregen.session import CLIENT, SERVER
from tests.lib.wiregen.tcp import ACK, Seg, any_style


def secret(rng: Random, scene: Scene) -> tuple[bytes, int]:
    """A piece of the payload that holds at least one needle, and where the first one is in the payload."""
    payload = scene.payload or b""
    if len(payload) < 100:
        raise Unfit
    low = rng.randrange(len(payload) - 60)
    return payload[low : low + rng.randint(31, 60)], -(-low // 16) * 16


def at_once(scene: Scene, frame: Frame) -> int:
    """Put a frame anywhere; its number from 1."""
    place = scene.rng.randint(0, len(scene.frames))
    scene.frames.insert(place, frame)
    return place + 1


def leaked(scene: Scene, frame: Frame, data: bytes, needle: int) -> Want:
    """The verdict for a frame that holds this piece of the payload."""
    payload = scene.payload or b""
    number = at_once(scene, frame)
    where = frame.data.find(payload[needle : needle + 16])
    if where < 0:
        raise Unfit
    return Want(leak={"frame": number, "at": where, "payload_offset": needle, "frames": 1})


@kind("frames")
def leak_in_datagram(rng: Random, scene: Scene) -> Want:
    """Payload is in a UDP datagram."""
    data, needle = secret(rng, scene)
    return leaked(scene, strays.datagram(rng, rng.choice(scene.links), data), data, needle)


@kind("frames")
def leak_in_trailer(rng: Random, scene: Scene) -> Want:
    """Payload is behind the IP packet, in the trailer of an Ethernet frame of the connection."""
    data, needle = secret(rng, scene)
    net = scene.main.net
    link = next((link for link in scene.links if link.kind == ETHERNET), None)
    if link is None or net.big:
        raise Unfit
    last = max((seg.off + len(seg.data) for seg in scene.main.segs if seg.direction == CLIENT), default=0)
    frame = frames.seg_frame(rng, link, net, Seg(CLIENT, last, ACK))
    frame.data += data
    frame.orig += len(data)
    scene.frames.append(frame)
    where = frame.data.rfind((scene.payload or b"")[needle : needle + 16])
    return Want(leak={"frame": len(scene.frames), "at": where, "payload_offset": needle, "frames": 1})


@kind("frames")
def leak_in_options(rng: Random, scene: Scene) -> Want:
    """Payload is in the options of an IPv4 header, in a frame of a connection that --port leaves out."""
    data, needle = secret(rng, scene)
    scene.port = 443
    link = next((link for link in scene.links if link.kind not in (frames.IPV6,)), None)
    if link is None:
        raise Unfit
    net = any_net(rng, False, 80)
    net.options, net.big = 40, False
    head = frames.ip_bytes(net, 0, frames.tcp_bytes(net, Seg(0, 0)))
    data = data[:40] + b"\1" * (40 - len(data[:40]))
    packet = head[:20] + data + head[60:]
    return leaked(scene, frames.frame(rng, link, packet, 0x0800), data, needle)


@kind("frames")
def leak_in_fragment(rng: Random, scene: Scene) -> Want:
    """Payload is in an IP fragment."""
    data, needle = secret(rng, scene)
    link = rng.choice(scene.links)
    net = any_net(rng, strays.family(rng, link), 80)
    packet = frames.ip_bytes(net, 0, rng.randbytes(8) + data, 6, 1 if net.v6 else 0x2000)
    frame = frames.frame(rng, link, packet, strays.ethertype(net.v6), -1)
    return leaked(scene, frame, data, needle)


@kind("frames")
def leak_in_unknown_frame(rng: Random, scene: Scene) -> Want:
    """Payload is in a frame of an unknown protocol, and in a second one."""
    data, needle = secret(rng, scene)
    link = rng.choice(scene.links)
    if link.kind not in (ETHERNET, frames.COOKED, frames.COOKED2):
        raise Unfit
    for _ in range(2):
        scene.frames.append(frames.frame(rng, link, rng.randbytes(9) + data, 0x88B5))
    return Want(leak={"frame": len(scene.frames) - 1, "payload_offset": needle, "frames": 2})


def leaky_conn(rng: Random, scene: Scene, data: bytes, head: bytes, port: int) -> None:
    """Another connection that says this."""
    bursts = [(CLIENT, head + data), (SERVER, head)]
    conn = Conn(any_net(rng, scene.main.net.v6, port), any_style(rng, 200), None, bursts)
    conn.style.again, conn.style.size, conn.style.fast_open = 0.0, "mtu", False
    scene.conns.append(conn)


@kind("records")
def leak_in_other_connection(rng: Random, scene: Scene) -> Want:
    """Payload is in a connection that is not TLS."""
    data, needle = secret(rng, scene)
    leaky_conn(rng, scene, data, b"POST / HTTP/1.1\r\n\r\n", 80)
    return Want(leak={"payload_offset": needle, "frames": 1})


@kind("records")
def leak_in_connection_left_out(rng: Random, scene: Scene) -> Want:
    """Payload is in a connection that looks like TLS, and that --port leaves out."""
    data, needle = secret(rng, scene)
    leaky_conn(rng, scene, data, b"\x17\3\3\0\x40", 8443)
    scene.port = 443
    return Want(leak={"payload_offset": needle, "frames": 1})


@kind("frames")
def no_keys(rng: Random, scene: Scene) -> Want:
    """The keylog has keys, and none of this connection."""
    scene.lines = [f"CLIENT_RANDOM {rng.randbytes(32).hex()} {rng.randbytes(48).hex()}", "# no more"]
    return Want("inconclusive", problem=("no-key", ""))


@kind("frames")
def wrong_secrets(rng: Random, scene: Scene) -> Want:
    """The keylog has another secret for this connection."""
    random = scene.session.client_random.hex()
    scene.lines = [
        line[:-6] + rng.randbytes(3).hex() if random in line and "EXPORTER" not in line else line
        for line in scene.lines
    ]
    return Want(first={"class": "unauthentic", "field": "tag", "sequence": 0})


@kind("frames")
def bad_key_lines(rng: Random, scene: Scene) -> Want:
    """The keylog has damaged lines between the good ones."""
    random = scene.session.client_random.hex()
    bad = [
        f"CLIENT_RANDOM {random}",
        "CLIENT_RANDOM 00 11",
        f"CLIENT_TRAFFIC_SECRET_0 {random} xyz",
        "\x01\x02",
    ]
    for line in bad:
        scene.lines.insert(rng.randint(0, len(scene.lines)), line)
    return Want("equal")


@kind("frames")
def payload_of_another_run(rng: Random, scene: Scene) -> Want:
    """The payload that was given is not what was sent."""
    if not scene.session.data(CLIENT, 16):
        raise Unfit
    scene.payload = rng.randbytes(len(scene.payload or b""))
    return Want(first={"class": "wrong payload", "field": "ciphertext"})


@kind("frames")
def payload_file_short(rng: Random, scene: Scene) -> Want:
    """The payload that was given ends before what was sent."""
    scene.payload = (scene.payload or b"")[: -rng.randint(1, 900)]
    return Want(first={"class": "excess", "field": "payload"})


@kind("frames")
def payload_file_long(rng: Random, scene: Scene) -> Want:
    """The payload that was given is longer than what was sent."""
    scene.payload = (scene.payload or b"") + rng.randbytes(rng.randint(1, 900))
    return Want(first={"class": "truncation", "field": "payload"})


@kind("records")
def reply_wrong(rng: Random, scene: Scene) -> Want:
    """A bit of what the server sent is flipped, and its payload is known."""
    recs = scene.session.data(SERVER, 16)
    scene.reply = scene.session.sent(SERVER)
    if not recs:
        raise Unfit
    rec = rng.choice(recs)
    rec.poke(3, bytes([rec.body[rec.cipher_at + 3] ^ 1]))
    first = {"class": "bit flip", "field": "ciphertext", "at": 3, "detail": "bit 0"}
    first |= {"record": scene.session.number(rec), "offset": scene.session.offset(rec)}
    return Want(direction=SERVER, first=first)


@kind("records")
def whose_payload(rng: Random, scene: Scene) -> Want:
    """A payload is given, and there are two TLS connections."""
    conn = good.tls_conn(rng)
    conn.net = any_net(rng, scene.main.net.v6, 443)
    scene.conns.append(conn)
    return Want("inconclusive", problem=("ambiguous-payload", ""), listed=2)


@kind("frames")
def only_other_ports(rng: Random, scene: Scene) -> Want:
    """No connection has the port that was asked for."""
    scene.port = 9
    return Want("inconclusive", problem=("no-tls", ""), listed=0)


@kind("frames")
def file_cut(rng: Random, scene: Scene) -> Want:
    """The capture ends inside its last frame."""
    size = rng.randint(1, 10)
    scene.wreck = lambda data: data[:-size]
    return Want("inconclusive", problem=("capture-damaged", ""))


@kind("frames")
def frame_too_large(rng: Random, scene: Scene) -> Want:
    """A last frame claims 17 MiB and does not have them."""
    if scene.form != "pcap":
        raise Unfit
    huge = struct.pack("<IIII", 0, 0, 17 << 20, 17 << 20)
    swapped = struct.pack(">IIII", 0, 0, 17 << 20, 17 << 20)
    scene.wreck = lambda data: data + (swapped if data[0] == 0xA1 else huge) + bytes(100)
    return Want("inconclusive", problem=("capture-damaged", ""))


@kind("frames")
def block_too_large(rng: Random, scene: Scene) -> Want:
    """A last pcapng block claims more than the file has."""
    if scene.form != "pcapng":
        raise Unfit
    scene.wreck = lambda data: data + struct.pack("<II", 6, 0x7FFFFFF0) + bytes(40)
    return Want("inconclusive", problem=("capture-damaged", ""))
