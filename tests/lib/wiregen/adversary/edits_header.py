"""Edits of headers: any field, options, checksums, VLAN tags, tunnels, fragments, and frames of others."""

from __future__ import annotations

import struct
from dataclasses import replace
from random import Random

from tests.lib.wiregen.adversary.dice import Dice
from tests.lib.wiregen.adversary.edits import content, edit, place, poked, secret, span, which
from tests.lib.wiregen.adversary.reader import Kind, Packet, read
from tests.lib.wiregen.adversary.table import Hand, Shot
from tests.lib.wiregen.frames import Link, Net, any_net, frame, ip_bytes, ones_sum, tcp_bytes
from tests.lib.wiregen.tcp import ACK, Seg

ETHER = {4: 0x0800, 6: 0x86DD}
# field: (offset from IP or TCP header, bytes); IP ones for version 4 and 6
IP4 = {
    "tos": (1, 1),
    "length": (2, 2),
    "id": (4, 2),
    "part": (6, 2),
    "ttl": (8, 1),
    "protocol": (9, 1),
    "sum": (10, 2),
    "source": (12, 4),
    "target": (16, 4),
    "version": (0, 1),
}
IP6 = {
    "flow": (1, 3),
    "length": (4, 2),
    "next": (6, 1),
    "hops": (7, 1),
    "source": (8, 16),
    "target": (24, 16),
    "version": (0, 1),
}
TCP = {
    "sport": (0, 2),
    "dport": (2, 2),
    "seq": (4, 4),
    "ack": (8, 4),
    "offset": (12, 1),
    "flags": (13, 1),
    "window": (14, 2),
    "sum": (16, 2),
    "urgent": (18, 2),
}


def ours(dice: Dice, hand: Hand) -> tuple[int, Shot, Packet] | None:
    """A frame of the connection, or none where the drawn one is not."""
    i = which(dice, hand)
    if i < 0:
        return None
    seen = read(hand.shots[i].data, hand.shots[i].orig)
    return (i, hand.shots[i], seen) if seen.kind is Kind.TCP else None


def mend(data: bytes, seen: Packet) -> bytes:
    """The frame with right checksums, as far as its packet is whole."""
    if seen.kind is not Kind.TCP or len(data) < seen.end:
        return data
    if data[seen.ip] >> 4 == 4:
        head = poked(data[seen.ip : seen.ip + (data[seen.ip] & 15) * 4], 10, b"\0\0")
        data = poked(data, seen.ip + 10, (0xFFFF - ones_sum(head)).to_bytes(2, "big"))
    body = poked(data[seen.tcp : seen.end], 16, b"\0\0")
    pseudo = seen.src + seen.dst + struct.pack(">II", 6, len(body))
    return poked(data, seen.tcp + 16, (0xFFFF - ones_sum(pseudo + body)).to_bytes(2, "big"))


def rewrite(hand: Hand, i: int, data: bytes, right: bool) -> None:
    """Put a frame's new bytes in, with right checksums if wanted."""
    orig = hand.shots[i].orig
    hand.shots[i] = Shot(mend(data, read(data, orig)) if right else data, orig)


@edit
def field(dice: Dice, hand: Hand) -> str:
    """Any field of the IP or TCP header gets any value."""
    if (found := ours(dice, hand)) is None:
        return ""
    i, shot, seen = found
    fields = {name: (seen.tcp + at, size) for name, (at, size) in TCP.items()}
    table = IP6 if hand.truth.net.v6 else IP4
    fields |= {f"ip-{name}": (seen.ip + at, size) for name, (at, size) in table.items()}
    name = dice.pick(sorted(fields))
    at, size = fields[name]
    old = int.from_bytes(shot.data[at : at + size], "big")
    top = 256**size
    value = dice.pick((old ^ 1 << dice.int(0, 8 * size - 1), dice.int(0, top - 1), (old + 1) % top, 0))
    right = dice.flip()
    rewrite(hand, i, poked(shot.data, at, value.to_bytes(size, "big")), right)
    return f"{name} of frame {i + 1} is {value:#x}, was {old:#x}{', checksums right' * right}"


@edit
def harmless(dice: Dice, hand: Hand) -> str:
    """A field that no receiver's data depends on: TTL, ToS, window, addresses of Ethernet."""
    if (found := ours(dice, hand)) is None:
        return ""
    i, shot, seen = found
    v6 = hand.truth.net.v6
    at = dice.pick(
        (seen.ip + (7 if v6 else 8), seen.ip + (2 if v6 else 1), seen.tcp + 14, seen.tcp + 15, 3, 9)
    )
    rewrite(hand, i, poked(shot.data, at, bytes([dice.int(0, 255)])), True)
    return f"harmless byte {at} of frame {i + 1}"


@edit
def urgent(dice: Dice, hand: Hand) -> str:
    """URG and its pointer on a frame of the connection."""
    if (found := ours(dice, hand)) is None:
        return ""
    i, shot, seen = found
    data = poked(shot.data, seen.tcp + 13, bytes([seen.flags | 32]))
    rewrite(hand, i, poked(data, seen.tcp + 18, dice.pick((0, 1, 5, 65535)).to_bytes(2, "big")), True)
    return f"URG on frame {i + 1}"


@edit
def options(dice: Dice, hand: Hand) -> str:
    """TCP options of any content on a segment sent again."""
    flow = dice.int(0, 1)
    low, high = span(dice, hand, flow)
    plain = tcp_bytes(replace(hand.truth.net, stamps=False), Seg(flow, low, ACK, b""))
    size = dice.pick((40, 32, 12, 4))
    extra = dice.pick((b"\1" * size, secret(dice, hand, size), dice.noise(size)))
    extra += bytes(-len(extra) % 4)
    data = b"" if dice.flip() else hand.truth.streams[flow][low:high]
    head = poked(plain, 12, bytes([(20 + len(extra)) // 4 << 4]))
    i = place(dice, hand)
    hand.put(i, packet(hand, flow, head + extra + data))
    rewrite(hand, i, hand.shots[i].data, True)
    return f"{len(extra)} bytes of TCP options, as frame {i + 1}"


def packet(hand: Hand, flow: int, body: bytes, protocol: int = 6, part: int = 0) -> Shot:
    """A frame between the addresses of the connection."""
    net = hand.truth.net
    made = frame(Random(1), Link(), ip_bytes(net, flow, body, protocol, part), ETHER[6 if net.v6 else 4])
    return Shot(made.data, made.orig)


@edit
def ip_options(dice: Dice, hand: Hand) -> str:
    """IPv4 options of any content in a frame that goes out again."""
    if (found := ours(dice, hand)) is None or hand.truth.net.v6:
        return ""
    i, shot, seen = found
    size = dice.pick((40, 32, 12, 4))
    extra = dice.pick((b"\1" * size, secret(dice, hand, size), dice.noise(size)))
    extra += b"\1" * (size - len(extra))
    head = bytearray(shot.data[seen.ip : seen.ip + 20])
    head[0] = 0x45 + size // 4
    head[2:4] = (20 + size + seen.end - seen.tcp).to_bytes(2, "big")
    data = shot.data[: seen.ip] + bytes(head) + extra + shot.data[seen.tcp : seen.end]
    at = place(dice, hand)
    hand.put(at, Shot(data, max(len(data), shot.orig + len(data) - len(shot.data))))
    rewrite(hand, at, data, True)
    return f"frame {i + 1} again with {size} bytes of IP options, as frame {at + 1}"


@edit
def extensions(dice: Dice, hand: Hand) -> str:
    """An IPv6 extension header of any content in a frame that goes out again."""
    if (found := ours(dice, hand)) is None or not hand.truth.net.v6:
        return ""
    i, shot, seen = found
    size = 8 * dice.int(1, 8) - 2
    extra = dice.pick((bytes(size), secret(dice, hand, size), dice.noise(size)))
    kind = dice.pick((60, 0, 43, 44, 51, 135))
    old = shot.data[seen.ip + 6]
    extra = bytes([old, size // 8]) + extra + bytes(size - len(extra))
    if kind == 44:
        extra = bytes([old, 0]) + dice.pick((b"\0\0", b"\0\1", b"\1\0")) + b"\0\0\0\7"
    data = shot.data[: seen.ip + 40] + extra + shot.data[seen.ip + 40 : seen.end]
    length = (len(data) - seen.ip - 40).to_bytes(2, "big")
    at = place(dice, hand)
    data = poked(poked(data, seen.ip + 6, bytes([kind])), seen.ip + 4, length)
    hand.put(at, Shot(data, len(data)))
    rewrite(hand, at, data, True)
    return f"frame {i + 1} again behind header {kind} of {len(extra)} bytes, as frame {at + 1}"


@edit
def tagged(dice: Dice, hand: Hand) -> str:
    """A frame, or a copy of it, behind VLAN tags or an ethertype that nobody unpacks."""
    i = which(dice, hand)
    if i < 0 or len(hand.shots[i].data) < 14:
        return ""
    shot, again = hand.shots[i], dice.flip()
    kinds = [dice.pick((0x8100, 0x88A8, 0x9100, 0x9200, 0x8847, 0x8864)) for _ in range(dice.int(1, 5))]
    tags = b"".join(struct.pack(">HH", kind, 7) for kind in kinds)
    made = Shot(shot.data[:12] + tags + shot.data[12:], shot.orig + len(tags))
    hand.shots[i : i + 1] = [shot, made] if again else [made]
    return f"frame {i + 1} {'again, ' * again}tagged {' '.join(f'{kind:04x}' for kind in kinds)}"


@edit
def tunnelled(dice: Dice, hand: Hand) -> str:
    """A segment, true or clear, inside GRE, IP in IP, VXLAN, or an ICMP error that quotes it."""
    flow = dice.int(0, 1)
    low, high = span(dice, hand, flow)
    data = hand.truth.streams[flow][low:high] if dice.flip() else content(dice, hand, high - low)
    v6 = hand.truth.net.v6
    inner = ip_bytes(hand.truth.net, flow, tcp_bytes(hand.truth.net, Seg(flow, low, ACK, data)))
    ether = bytes(12) + ETHER[6 if v6 else 4].to_bytes(2, "big") + inner
    protocol, head = dice.pick(
        (
            (47, b"\0\0" + ether[12:14]),
            (41 if v6 else 4, b""),
            (17, struct.pack(">HHHHII", 9, 4789, 0, 0, 1, 2)),
        )
        + ((1, b"\3\4" + bytes(6)), (51, b"\6\4" + bytes(22)))
    )
    body = head + (ether if protocol == 17 else inner)
    at = place(dice, hand)
    hand.put(at, packet(hand, flow, body, protocol) if dice.flip() else stray(dice, body, protocol, v6))
    return f"protocol {protocol} around {low}..{high}, as frame {at + 1}"


def strangers(dice: Dice, v6: bool, port: int) -> Net:
    """Addresses of others."""
    net = any_net(Random(dice.int(0, 9)), v6, port)
    net.big, net.extensions = False, ()
    return net


def stray(dice: Dice, body: bytes, protocol: int, v6: bool) -> Shot:
    """A frame between others."""
    net = strangers(dice, v6, 53)
    made = frame(Random(2), Link(), ip_bytes(net, 0, body, protocol), ETHER[6 if v6 else 4])
    return Shot(made.data, made.orig)


@edit
def alien(dice: Dice, hand: Hand) -> str:
    """A frame of others: UDP, another TCP connection, or no IP at all."""
    body, kind = content(dice, hand, dice.pick((0, 16, 40, 200))), dice.int(0, 2)
    v6, at = dice.flip(), place(dice, hand)
    if kind == 0:
        body = struct.pack(">HHHH", 9, 9, 8 + len(body), 0) + body
        hand.put(at, stray(dice, body, 17, v6))
    elif kind == 1:
        net = strangers(dice, v6, dice.pick((80, 443)))
        made = frame(
            Random(3), Link(), ip_bytes(net, 0, tcp_bytes(net, Seg(0, 0, ACK, body))), ETHER[6 if v6 else 4]
        )
        hand.put(at, Shot(made.data, made.orig))
    else:
        made = frame(Random(4), Link(), body, dice.pick((0x0806, 0x88CC, 0x9200, 40)))
        hand.put(at, Shot(made.data, made.orig))
    return f"alien {('UDP', 'TCP', 'Ethernet')[kind]}, {len(body)} bytes, as frame {at + 1}"


@edit
def same_hosts(dice: Dice, hand: Hand) -> str:
    """TCP between the same hosts, but not of this connection; or UDP."""
    flow, body = dice.int(0, 1), content(dice, hand, dice.pick((0, 16, 40, 200)))
    net = replace(hand.truth.net, port=(dice.int(1024, 2000), hand.truth.net.port[1]))
    at, tcp = place(dice, hand), dice.flip()
    if tcp:
        hand.put(at, packet(hand, flow, tcp_bytes(net, Seg(flow, 0, ACK, body))))
    else:
        hand.put(at, packet(hand, flow, struct.pack(">HHHH", 9, 9, 8 + len(body), 0) + body, 17))
    return f"{'TCP' if tcp else 'UDP'} of the same hosts, {len(body)} bytes, as frame {at + 1}"


@edit
def fragments(dice: Dice, hand: Hand) -> str:
    """A segment, true or not, in two IP fragments, or one of them alone."""
    flow = dice.int(0, 1)
    low, high = span(dice, hand, flow)
    data = hand.truth.streams[flow][low:high] if dice.flip() else content(dice, hand, high - low)
    body = tcp_bytes(hand.truth.net, Seg(flow, low, ACK, data))
    first = 8 * dice.int(1, max(1, (len(body) - 1) // 8))
    more, later = (1, first) if hand.truth.net.v6 else (0x2000, first // 8)
    at, keep = place(dice, hand), dice.int(0, 2)
    if keep != 1:
        hand.put(at, packet(hand, flow, body[:first], 6, more))
    if keep != 2 and body[first:]:
        hand.put(at, packet(hand, flow, body[first:], 6, later))
    return f"fragments of {low}..{high}, as frame {at + 1}"
