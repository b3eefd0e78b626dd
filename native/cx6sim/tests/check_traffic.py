"""Frames: what one card sends arrives at the other, cut, summed and marked as the driver wants it."""

from __future__ import annotations

import array
import select
import socket
import struct

from parts import (
    MAC,
    checksum,
    completion,
    control,
    make_cq,
    make_eq,
    make_sq,
    ring,
    send,
    set_link,
    side,
    sums_right,
    tcp,
)
from rig import BASE, FIELDS, SET_IRQS, SIZE, Guest, Rig, at, got


def check_a_frame_arrives(rig: Rig) -> None:
    """Its bytes, the sum of its IP packet, its headers' kinds; and the sender's completion."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        send(a, one.sq, tcp(b"hello" * 20))
        [(entry, frame)] = two.came()
        assert frame[54:] == b"hello" * 20 and sums_right(frame) and frame[:14] == tcp(b"")[:14]
        assert entry[29] == 4 << 4 | 2 << 2 and entry[28] == 7 and entry[63] >> 4 == 2
        assert struct.unpack_from(">H", entry, 20)[0] == 0xFFFF ^ _sum(frame[14:])
        sent = completion(a, one.tx_cq)
        assert (
            sent and struct.unpack_from(">I", sent, 56)[0] == one.sq.number | 0x0A << 24 and not sent[63] >> 4
        )
        truth = model.control({"card": 1})
        assert truth["rx_frames"] == 1 and truth["rx_bytes"] == len(frame) and truth["link"] == 1


GROUPS = {"eth_802_3_cntrs_grp_data_layout": 0, "eth_2819_cntrs_grp_data_layout": 2, "phys_layer_cntrs": 0x12}


def counted(guest: Guest, group: str, name: str, size: int = 8, skip: int = 0) -> int:
    """A counter of the port, as PPCNT tells it."""
    request = struct.pack(">HHI", 0, 0x5008, 0) + bytes((0, 1, 0, GROUPS[group])) + bytes(252)
    answer = guest.command(0x805, 1, request, 16 + 256)
    start = 16 + FIELDS["ppcnt_reg__counter_set"][0] // 8 + FIELDS[f"{group}__{name}"][0] // 8 + skip
    return int.from_bytes(answer[start : start + size], "big")


def check_a_port_counts_its_cable(rig: Rig) -> None:
    """Frames and bytes both ways, sizes with the checksum at a frame's end, and failures of the link."""
    ieee, rmon = list(GROUPS)[:2]
    with rig.pair() as (_, a, b):
        one, two = side(a), side(b)
        frames = [tcp(bytes(size)) for size in (6, 7, 400, 1400)]  # 60 bytes and 4 of checksum are 64
        for frame in frames:
            send(a, one.sq, frame)
            two.came()
        for guest, moved in ((a, ("transmitted", "received")), (b, ("received", "transmitted"))):
            seen = [
                counted(guest, ieee, f"a_{kind}_{did}_ok_high")
                for did in moved
                for kind in ("frames", "octets")
            ]
            assert seen == [4, sum(map(len, frames)), 0, 0]
        assert counted(b, rmon, "ether_stats_octets_high") == sum(map(len, frames)) + 16
        sizes = [counted(b, rmon, "ether_stats_pkts64octets_high", skip=8 * place) for place in range(10)]
        assert sizes == [1, 1, 0, 1, 0, 1, 0, 0, 0, 0]
        assert counted(a, rmon, "ether_stats_pkts_high") == 0, "nothing came"
        assert counted(b, "phys_layer_cntrs", "link_down_events", 4) == 0
        set_link(a, up=False)
        assert counted(b, "phys_layer_cntrs", "link_down_events", 4) == 1


def _sum(data: bytes) -> int:
    total = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def check_a_wrong_checksum_is_reported(rig: Rig) -> None:
    """The frame arrives, and the card does not say that its TCP is right."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        wrong = bytearray(tcp(b"x" * 100, sums=True))
        wrong[60] ^= 1
        send(a, one.sq, bytes(wrong), sums=0)
        [(entry, frame)] = two.came()
        assert frame == bytes(wrong) and entry[28] == 3 and entry[29] >> 4 == 0
        assert model.control({"card": 1})["rx_bad_checksum"] == 1


def check_a_long_frame_is_cut(rig: Rig) -> None:
    """TSO: sequence numbers, IP identifications, flags and checksums of each segment; the last is shorter."""
    with rig.pair() as (_, a, b):
        one, two = side(a), side(b)
        payload = bytes(i * 7 % 251 for i in range(20001))
        send(a, one.sq, tcp(payload, flags=0x99), mss=1448)
        frames = [frame for _, frame in two.came()]
        assert len(frames) == 14 and all(map(sums_right, frames))
        assert b"".join(frame[54:] for frame in frames) == payload
        assert [struct.unpack_from("!I", f, 38)[0] for f in frames] == [1000 + 1448 * i for i in range(14)]
        assert [struct.unpack_from("!H", f, 18)[0] for f in frames] == [7 + i for i in range(14)]
        assert [f[47] for f in frames] == [0x90, *[0x10] * 12, 0x19], "CWR first; PSH and FIN last"


def check_a_long_frame_with_options_of_ipv6_is_cut(rig: Rig) -> None:
    """TCP behind options for the destination is found: each segment has them, and a right checksum."""
    ends = bytes(range(32))
    options = bytes([6, 0, 1, 4, 0, 0, 0, 0])
    head = struct.pack("!HHIIBBHHH", 40000, 4433, 1000, 1, 5 << 4, 0x18, 5000, 0, 0)
    with rig.pair() as (_, a, b):
        one, two = side(a), side(b)
        payload = bytes(i * 7 % 251 for i in range(3000))
        whole = struct.pack("!IHBB", 6 << 28, 8 + 20 + len(payload), 60, 64) + ends + options + head + payload
        send(a, one.sq, tcp(b"")[:12] + b"\x86\xdd" + whole, mss=1448)
        frames = [frame for _, frame in two.came()]
        assert [len(frame) for frame in frames] == [82 + 1448, 82 + 1448, 82 + 104]
        assert b"".join(frame[82:] for frame in frames) == payload
        assert all(frame[54:62] == options for frame in frames)
        for frame in frames:
            pseudo = ends + struct.pack("!II", len(frame) - 62, 6)
            assert checksum(pseudo + frame[62:]) == 0


def check_a_vlan_tag_goes_in_and_out(rig: Rig) -> None:
    """The sender's card puts the tag in; the receiver's takes it out and tells it, or leaves it."""
    for strips in (True, False):
        with rig.pair() as (_, a, b):
            one, two = side(a), side(b, strips_vlan=strips)
            send(a, one.sq, tcp(b"v" * 100, sums=True), vlan=0x6005, sums=0)
            [(entry, frame)] = two.came()
            want = tcp(b"v" * 100, sums=True, vlan=0 if strips else 0x6005)
            assert frame == want and entry[28] == 7, frame.hex()
            assert entry[29] & 1 == strips and struct.unpack_from(">H", entry, 30)[0] == (
                0x6005 if strips else 0
            )


def check_no_frame_without_a_link(rig: Rig) -> None:
    """A port that is down neither sends nor receives, and both ends of its cable say so."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        for down in (b, a):
            set_link(down, False)
            send(a, one.sq, tcp(b"n" * 100))
            assert not two.came()
            assert [model.control({"card": card})["link"] for card in (0, 1)] == [0, 0], "both ends see it"
            set_link(down, True)
            assert [model.control({"card": card})["link"] for card in (0, 1)] == [1, 1]
        send(a, one.sq, tcp(b"y" * 100))
        assert len(two.came()) == 1


def check_own_frames_go_round(rig: Rig) -> None:
    """A frame to the card's own address comes back, and is not on the wire (`ethtool -t` lives on it)."""
    with rig.pair() as (model, a, b):
        one, two = side(a, takes_own=1), side(b)
        send(a, one.sq, tcp(b"o" * 100, to=0))
        [(_, frame)] = one.came()
        assert frame[:6] == MAC[0] and not two.came() and model.control({"card": 0})["own_frames"] == 1
        send(b, two.sq, tcp(b"o" * 100, to=1))
        assert not two.came(), "a TIR takes its own frames only if it was told to"


def check_interrupts_come_when_they_are_armed(rig: Rig) -> None:
    """A completion makes an event and an interrupt; if it was there before, arming brings it at once."""
    with rig.pair() as (_, _, b):
        eq = make_eq(b, 3, 0)
        cq = make_cq(b, eq.number)
        b.write(0x20040, struct.pack(">I", eq.number << 24))
        b.write(0x20020, struct.pack(">II", 0, cq.number))
        ring(b, _queue_to(b, cq), b"")
        b.wait_irq(3)
        assert bytes(b.memory[eq.start : eq.start + 64])[1] == 0 and completion(b, cq)
        event = struct.unpack_from(">I", b.memory, eq.start + 32 + 24)[0]
        assert event == cq.number and not b.memory[eq.start + 63] & 1
        b.write(0x20020, struct.pack(">II", 0, cq.number))  # armed with an old index: it is behind
        b.write(0x20040, struct.pack(">I", eq.number << 24 | 1))
        b.wait_irq(3)


def check_a_lost_interrupt_is_one_of_a_completion(rig: Rig) -> None:
    """The knob keeps interrupts of completions back; those of an EQ that has events, too, still come."""
    with rig.pair() as (model, _, b):
        model.control({"card": 1, "fault": "lost-interrupt", "every": 1})
        for vector, mask in ((3, 0), (2, 1 << 10)):
            cq = make_cq(b, (eq := make_eq(b, vector, mask)).number)
            b.write(0x20040, struct.pack(">I", eq.number << 24))
            b.write(0x20020, struct.pack(">II", 0, cq.number))
            ring(b, _queue_to(b, cq), b"")
        b.wait_irq(2)
        assert not select.select([b.irqs[3]], [], [], 0)[0]
        assert model.control({"card": 1})["lost-interrupt"] == 1


def check_an_interrupt_waits_for_its_file(rig: Rig) -> None:
    """QEMU takes the event files away for a moment: what the card has to say then is not lost."""
    with rig.pair() as (_, _, b):
        eq = make_eq(b, 3, 0)
        cq = make_cq(b, eq.number)
        b.write(0x20040, struct.pack(">I", eq.number << 24))
        b.write(0x20020, struct.pack(">II", 0, cq.number))
        b.ask(SET_IRQS, struct.pack("<IIIII", 20, 0x21, 2, 0, 0))
        ring(b, _queue_to(b, cq), b"")
        b.ask(SET_IRQS, struct.pack("<IIIII", 20, 0x24, 2, 3, 1), [b.irqs[3]])
        b.wait_irq(3)


def check_files_go_to_the_message_that_takes_them(rig: Rig) -> None:
    """A busy machine reads two messages at once: the files of the second are not the first one's."""
    with rig.pair() as (_, _, b):
        eq = make_eq(b, 3, 0)
        cq = make_cq(b, eq.number)
        b.ask(SET_IRQS, struct.pack("<IIIII", 20, 0x21, 2, 0, 0))
        read = struct.pack("<HHIII", 1, 9, 32, 0, 0) + struct.pack("<QII", 0, 7, 2)
        irqs = struct.pack("<HHIII", 2, SET_IRQS, 36, 0, 0) + struct.pack("<IIIII", 20, 0x24, 2, 3, 1)
        fd = array.array("i", [b.irqs[3]])
        b.sock.sendmsg([read + irqs], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fd)])
        b._exactly(34 + 16)
        b.write(0x20040, struct.pack(">I", eq.number << 24))
        b.write(0x20020, struct.pack(">II", 0, cq.number))
        ring(b, _queue_to(b, cq), b"")
        b.wait_irq(3)


def _queue_to(guest, cq):
    """A send queue whose first WQE, a NOP, completes into this CQ."""
    queue = make_sq(guest, cq)
    nop = control(queue, 0, 16)
    guest.memory[queue.start : queue.start + 16] = nop
    queue.posted = 1
    guest.memory[queue.doorbell + 4 : queue.doorbell + 8] = struct.pack(">I", 1)
    return queue


def check_a_bad_wqe_breaks_its_queue_only(rig: Rig) -> None:
    """Memory that is not there, or ends too early: an error completion, and the other queues go on."""
    for place in (1 << 60, BASE + SIZE - 8, BASE - 8):
        with rig.pair() as (_, a, b):
            one, two = side(a), side(b)
            other_cq = make_cq(a)
            broken = _queue_to(a, other_cq)
            piece = struct.pack(">IIQ", 100, 0x1000, place)
            ring(a, broken, control(broken, 0x0A, 48) + bytes(16) + piece)
            entries = [completion(a, other_cq), completion(a, other_cq)]
            assert entries[0] and entries[1] and entries[1][63] >> 4 == 13 and entries[1][55]
            said = a.command(0x907, 0, struct.pack(">II", broken.number, 0), 16 + 240)
            assert got(said, at("query_sq_out__sq_context"), "sqc__state") == 3
            send(a, one.sq, tcp(b"g" * 100))
            assert len(two.came()) == 1


def check_no_buffer_no_frame(rig: Rig) -> None:
    """The seventeenth frame finds no buffer, and the counter says so."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        for i in range(17):
            send(a, one.sq, tcp(bytes([i]) * 100))
        assert [frame[54] for _, frame in two.came()] == list(range(16))
        assert model.control({"card": 1})["rx_no_buffer"] == 1
        send(a, one.sq, tcp(b"z" * 100))
        assert len(two.came()) == 1
