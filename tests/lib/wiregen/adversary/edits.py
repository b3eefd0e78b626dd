"""Edits of frames: what a hostile card resends, inserts, moves, cuts and plants; a register of them all."""

from __future__ import annotations

from collections.abc import Callable

from tests.lib.wiregen.adversary.dice import Dice
from tests.lib.wiregen.adversary.reader import Kind, read
from tests.lib.wiregen.adversary.table import Hand, Shot
from tests.lib.wiregen.tcp import ACK, FIN, PSH, RST, SYN, URG, Seg

Edit = Callable[[Dice, Hand], str]
EDITS: dict[str, Edit] = {}
FLAGS = (ACK, ACK | PSH, RST, RST | ACK, ACK | URG, ACK | FIN, SYN, SYN | ACK, 0, FIN, PSH, 255)


def edit(function: Edit) -> Edit:
    """Register an edit under its name. It says what it did."""
    assert function.__name__ not in EDITS
    EDITS[function.__name__] = function
    return function


def place(dice: Dice, hand: Hand) -> int:
    """Where a new frame goes: behind some frame, mostly the last."""
    return len(hand.shots) - dice.int(0, len(hand.shots))


def which(dice: Dice, hand: Hand) -> int:
    """Which frame is edited; -1 if none is left."""
    return dice.int(0, len(hand.shots) - 1) if hand.shots else -1


def secret(dice: Dice, hand: Hand, size: int) -> bytes:
    """A piece of the application data of either direction, of this size at most."""
    app = hand.truth.app[dice.int(0, 1)]
    at = dice.int(0, max(0, len(app) - size))
    return app[at : at + size]


def content(dice: Dice, hand: Hand, size: int) -> bytes:
    """Return what a hostile card would send: zeros, noise, the application data in plaintext."""
    kind = dice.int(0, 2)
    return bytes(size) if kind == 0 else dice.noise(size) if kind == 1 else secret(dice, hand, size)


def span(dice: Dice, hand: Hand, flow: int) -> tuple[int, int]:
    """A piece of a stream."""
    size = len(hand.truth.streams[flow])
    low = dice.int(0, size - 1)
    return low, min(size, low + dice.pick((1, 16, 40, 100, 300, 1448)))


def add(dice: Dice, hand: Hand, seg: Seg, said: str, **net: object) -> str:
    """Insert a segment somewhere."""
    at = place(dice, hand)
    hand.put(at, hand.shot(seg, **net))
    return f"{said}, as frame {at + 1}"


@edit
def resend(dice: Dice, hand: Hand) -> str:
    """A piece of the true stream again."""
    flow = dice.int(0, 1)
    low, high = span(dice, hand, flow)
    seg = Seg(flow, low, dice.pick((ACK, ACK | PSH)), hand.truth.streams[flow][low:high])
    return add(dice, hand, seg, f"resend {flow} {low}..{high}")


@edit
def forge(dice: Dice, hand: Hand) -> str:
    """A piece of the stream again, but not as it was."""
    flow = dice.int(0, 1)
    low, high = span(dice, hand, flow)
    data = bytearray(hand.truth.streams[flow][low:high])
    if dice.flip():
        data[:] = content(dice, hand, len(data))
    else:
        data[dice.int(0, len(data) - 1)] ^= 1 << dice.int(0, 7)
    return add(dice, hand, Seg(flow, low, dice.pick(FLAGS), bytes(data)), f"forge {flow} {low}..{high}")


@edit
def stranger(dice: Dice, hand: Hand) -> str:
    """Bytes where the stream is not: before its begin, behind its end, far away."""
    flow, size = dice.int(0, 1), dice.pick((1, 2, 4, 5, 16, 40, 200))
    end = len(hand.truth.streams[flow])
    off = dice.pick(
        (-1, -size, -size + 1, end, end + 1, -1 - dice.int(0, 999), end + dice.int(0, 9999))
        + (2**30, 2**30 + end + 1, 2**31, 2**31 - 1, -(2**30), -(2**31))
    )
    flags, data = dice.pick(FLAGS), content(dice, hand, size)
    return add(
        dice, hand, Seg(flow, off, flags, data), f"stranger {flow} at {off}, flags {flags}, {len(data)} bytes"
    )


@edit
def behind(dice: Dice, hand: Hand) -> str:
    """A tail behind the last record: some bytes, or a header with clear bytes."""
    flow = dice.int(0, 1)
    data = dice.pick((b"", b"\x17\x03\x03\x00\x40", b"\x17\x03\x03\x00\x01"))
    data += content(dice, hand, dice.pick((1, 4, 16, 64)))
    said = add(dice, hand, Seg(flow, len(hand.truth.streams[flow]), ACK, data), f"tail {flow}")
    if dice.flip():
        strip(hand, flow)
        said += ", no FIN"
    return said


def strip(hand: Hand, flow: int) -> None:
    """Take the FIN off every frame of a direction."""
    for i, shot in enumerate(hand.shots):
        seen = read(shot.data, shot.orig)
        if seen.kind is Kind.TCP and seen.flags & FIN and seen.ports[0] == hand.truth.net.port[flow]:
            hand.shots[i] = Shot(poked(shot.data, seen.tcp + 13, bytes([seen.flags & ~FIN])), shot.orig)


def poked(data: bytes, at: int, new: bytes) -> bytes:
    """Bytes overwritten."""
    return data[:at] + new + data[at + len(new) :]


@edit
def keepalive(dice: Dice, hand: Hand) -> str:
    """One byte, garbage or not, or none: in front of the end of what was sent, or anywhere in the stream."""
    flow = dice.int(0, 1)
    end = len(hand.truth.streams[flow])
    off = dice.pick((end, dice.int(1, end))) - 1
    data = dice.pick((b"", b"\0", b"\x55", hand.truth.streams[flow][off : off + 1]))
    return add(dice, hand, Seg(flow, off, ACK, data), f"keepalive {flow} at {off} {data!r}")


@edit
def early_keepalive(dice: Dice, hand: Hand) -> str:
    """A keep-alive while the stream goes on: one byte in front of the next one."""
    i = which(dice, hand)
    seen = read(hand.shots[i].data, hand.shots[i].orig) if hand.shots else None
    if seen is None or seen.kind is not Kind.TCP or seen.ports[0] not in hand.truth.net.port:
        return ""
    flow = hand.truth.net.port.index(seen.ports[0])
    off = (seen.seq + seen.size - hand.truth.net.isn[flow] - 1) % 2**32
    hand.put(i + 1, hand.shot(Seg(flow, off - 1, ACK, dice.pick((b"\0", b"\x55", b"")))))
    return f"keepalive {flow} at {off - 1}, as frame {i + 2}"


@edit
def bare(dice: Dice, hand: Hand) -> str:
    """A segment without payload, anywhere, with any flags."""
    flow, flags = dice.int(0, 1), dice.pick(FLAGS)
    off = dice.pick((0, -1, dice.int(0, 3000), 2**31, -(2**20), len(hand.truth.streams[flow])))
    return add(dice, hand, Seg(flow, off, flags), f"bare {flow} at {off}, flags {flags}")


@edit
def other_isn(dice: Dice, hand: Hand) -> str:
    """A SYN of either side with another ISN, with data or without."""
    flow, data = dice.int(0, 1), content(dice, hand, dice.pick((0, 0, 20)))
    flags = SYN | ACK * dice.int(0, 1)
    return add(dice, hand, Seg(flow, dice.int(0, 2**31), flags, data), f"SYN {flow} flags {flags}")


@edit
def move(dice: Dice, hand: Hand) -> str:
    """A frame at another time."""
    if (i := which(dice, hand)) < 0:
        return ""
    shot = hand.shots.pop(i)
    at = place(dice, hand)
    hand.put(at, shot)
    return f"frame {i + 1} moved to {at + 1}"


@edit
def drop(dice: Dice, hand: Hand) -> str:
    """A frame that is not there."""
    if (i := which(dice, hand)) < 0:
        return ""
    hand.shots.pop(i)
    return f"frame {i + 1} dropped"


@edit
def double(dice: Dice, hand: Hand) -> str:
    """A frame twice."""
    if (i := which(dice, hand)) < 0:
        return ""
    at = place(dice, hand)
    hand.put(at, hand.shots[i])
    return f"frame {i + 1} again, as frame {at + 1}"


@edit
def cut(dice: Dice, hand: Hand) -> str:
    """A frame, or a copy of it, of which only the first bytes were kept."""
    if (i := which(dice, hand)) < 0:
        return ""
    shot, again = hand.shots[i], dice.flip()
    kept = Shot(shot.data[: dice.int(0, len(shot.data))], shot.orig)
    hand.shots[i : i + 1] = [shot, kept] if again else [kept]
    return f"frame {i + 1} {'again, ' * again}cut to {len(kept.data)} of {shot.orig}"


@edit
def snap(dice: Dice, hand: Hand) -> str:
    """All frames cut to one length."""
    most = dice.pick((54, 60, 96, 128, 200, 1000))
    hand.shots = [Shot(shot.data[:most], shot.orig) for shot in hand.shots]
    return f"snaplen {most}"


@edit
def plant(dice: Dice, hand: Hand) -> str:
    """Application data in plaintext written over any bytes of a frame."""
    if (i := which(dice, hand)) < 0:
        return ""
    shot, data = hand.shots[i], secret(dice, hand, dice.pick((31, 40, 64, 300)))
    at = dice.int(0, len(shot.data))
    room = data[: max(0, len(shot.data) - at)]
    hand.shots[i] = Shot(poked(shot.data, at, room), shot.orig)
    return f"{len(room)} bytes in clear at {at} of frame {i + 1}"


@edit
def trailer(dice: Dice, hand: Hand) -> str:
    """Bytes behind the packet of a frame."""
    if (i := which(dice, hand)) < 0:
        return ""
    shot, data = hand.shots[i], content(dice, hand, dice.pick((1, 4, 31, 40, 100)))
    hand.shots[i] = Shot(shot.data + data, shot.orig + len(data))
    return f"{len(data)} bytes behind frame {i + 1}"


@edit
def flip_bit(dice: Dice, hand: Hand) -> str:
    """One bit of any byte of any frame."""
    i = which(dice, hand)
    if i < 0 or not hand.shots[i].data:
        return ""
    shot = hand.shots[i]
    at, bit = dice.int(0, len(shot.data) - 1), dice.int(0, 7)
    hand.shots[i] = Shot(poked(shot.data, at, bytes([shot.data[at] ^ 1 << bit])), shot.orig)
    return f"bit {bit} of byte {at} of frame {i + 1}"


@edit
def ask_checksums(dice: Dice, hand: Hand) -> str:
    """The question: leave out what a receiver would drop."""
    hand.checksums = True
    return "--checksums"


@edit
def ask_reply(dice: Dice, hand: Hand) -> str:
    """The question: compare the server's data too, or neither."""
    hand.payload, hand.reply = dice.pick(((True, True), (False, True), (False, False)))
    return f"payload {hand.payload}, reply {hand.reply}"


@edit
def ask_port(dice: Dice, hand: Hand) -> str:
    """The question: this port only."""
    hand.port = hand.truth.net.port[1]
    return f"--port {hand.port}"
