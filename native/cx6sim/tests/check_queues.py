"""Receive queues beyond the plain one: spread by the Toeplitz hash, and many frames in one striding entry."""

from __future__ import annotations

import struct

from parts import (
    Queue,
    completion,
    lead_all_to,
    made,
    make_cq,
    make_rq,
    make_sq,
    pages,
    post,
    send,
    set_link,
    side,
    tcp,
)
from rig import BASE, Guest, Rig, at, got, put

# the key and an answer of Microsoft's verification suite for receive-side scaling
KEY = bytes.fromhex("6d5a56da255b0ec24167253d43a38fb0d0ca2bcbae7b30b477cb2da38030f20c6a42b73bbeac01fa")
ENDS, HASH = bytes([66, 9, 149, 187, 161, 142, 100, 80]) + struct.pack(">HH", 2794, 1766), 0x51CCC178
STRIDES, SIZE = 512, 64


def spread_over(guest: Guest, rqs: list[Queue]) -> int:
    """A TIR that spreads TCP by addresses and ports over queues."""
    context = at("create_rqt_in__rqt_context") - 8
    body = bytearray(context + at("rqtc__rq_num") + 4 * len(rqs))
    put(body, context, "rqtc__rqt_actual_size", len(rqs))
    body[-4 * len(rqs) :] = struct.pack(f">{len(rqs)}I", *(rq.number for rq in rqs))
    rqt = made(guest.command(0x916, 0, bytes(body)))
    context = at("create_tir_in__ctx") - 8
    body = bytearray(context + 240)
    put(body, context, "tirc__disp_type", 1)
    put(body, context, "tirc__indirect_table", rqt)
    put(
        body, context + at("tirc__rx_hash_field_selector_outer"), "rx_hash_field_select__selected_fields", 0xF
    )
    place = context + at("tirc__rx_hash_toeplitz_key")
    body[place : place + 40] = KEY
    return made(guest.command(0x900, 0, bytes(body)))


def check_the_hash_is_toeplitz(rig: Rig) -> None:
    """As others compute it; the frame is in the queue that the hash says, and flows do not share all one."""
    with rig.pair() as (_, a, b):
        sq, cqs = make_sq(a, make_cq(a)), [make_cq(b) for _ in range(4)]
        rqs = [make_rq(b, cq) for cq in cqs]
        lead_all_to(b, spread_over(b, rqs))
        set_link(a, True)
        set_link(b, True)
        frame = bytearray(tcp(b"h" * 100))
        frame[26:34], frame[34:38] = ENDS[:8], ENDS[8:]
        send(a, sq, bytes(frame))
        [(queue, entry)] = [(i, e) for i, cq in enumerate(cqs) if (e := completion(b, cq))]
        assert struct.unpack_from(">I", entry, 12)[0] == HASH and queue == HASH % 4
        for port in range(10):
            frame[34:36] = struct.pack(">H", 5000 + port)
            send(a, sq, bytes(frame))
        assert sum(completion(b, cq) is not None for cq in cqs) > 1


def make_key(guest: Guest, start: int) -> int:
    """A memory key that UMR can change, over pages of guest memory; its number."""
    context = at("create_mkey_in__memory_key_mkey_entry") - 8
    body = bytearray(at("create_mkey_in__klm_pas_mtt") - 8 + 8 * 16)
    put(body, context, "mkc__umr_en", 1)
    put(body, context, "mkc__translations_octword_size", 8)
    put(body, context, "mkc__log_page_size", 12)
    body[-128:] = pages(start, 16)
    return got(guest.command(0x200, 0, bytes(body)), 0, "create_mkey_out__mkey_index")


def make_striding(guest: Guest, cq: Queue) -> Queue:
    """A striding queue of two entries with 512 strides of 64 bytes, ready; its memory is in `buffers`."""
    context, wq = at("create_rq_in__ctx") - 8, at("create_rq_in__ctx") - 8 + at("rqc__wq")
    body, queue = bytearray(wq + at("wq__pas") + 8), Queue(0, guest.room(4096), guest.room(4096))
    put(body, context, "rqc__cqn", cq.number)
    for name, value in (
        ("wq_type", 2),
        ("log_wq_sz", 1),
        ("log_wq_stride", 6),
        ("dbr_addr", BASE + queue.doorbell),
    ):
        put(body, wq, f"wq__{name}", value)
    body[-8:] = pages(queue.start, 1)
    queue.number = made(guest.command(0x908, 0, bytes(body)))
    change = bytearray(at("modify_rq_in__ctx") - 8 + 64)
    put(change, -8, "modify_rq_in__rqn", queue.number)
    put(change, at("modify_rq_in__ctx") - 8, "rqc__state", 1)
    guest.command(0x909, 0, bytes(change))
    memory = guest.room(16 * 4096)
    key = make_key(guest, memory)
    for i in range(2):  # each entry has half of the key, and leads to the other one
        entry = struct.pack(">HH12xIIQ", 0, 1 - i, 0, key << 8, i * STRIDES * SIZE)
        guest.memory[queue.start + 64 * i : queue.start + 64 * i + 32] = entry
    queue.buffers = [memory, memory + STRIDES * SIZE]
    post(guest, queue, 2)
    return queue


def strides(guest: Guest, cq: Queue, rq: Queue) -> list[tuple[int, int, bytes]]:
    """Entry, first stride and frame of each completion; a filler has no frame."""
    found = []
    while entry := completion(guest, cq):
        number, first = struct.unpack_from(">H", entry, 2)[0], struct.unpack_from(">H", entry, 60)[0]
        count = struct.unpack_from(">I", entry, 44)[0]
        place = rq.buffers[number] + first * SIZE
        found.append(
            (number, first, b"" if count >> 31 else bytes(guest.memory[place : place + (count & 0xFFFF)]))
        )
    return found


def check_frames_share_a_striding_entry(rig: Rig) -> None:
    """One behind the other, over pages; what does not fit begins the next entry; then there is none."""
    with rig.pair() as (model, a, b):
        one = side(a)
        cq = make_cq(b)
        rq = make_striding(b, cq)
        context = at("create_tir_in__ctx") - 8
        body = bytearray(context + 240)
        put(body, context, "tirc__inline_rqn", rq.number)
        lead_all_to(b, made(b.command(0x900, 0, bytes(body))))
        set_link(b, True)
        sent = [tcp(bytes([i]) * 9000, seq=1000 + i, sums=True) for i in range(8)]  # 142 strides each
        for frame in sent:
            send(a, one.sq, frame, sums=0)
        came = strides(b, cq, rq)
        assert [(number, first) for number, first, _ in came] == [
            (0, 0),
            (0, 142),
            (0, 284),
            (0, 426),
            (1, 0),
            (1, 142),
            (1, 284),
            (1, 426),
        ]
        assert [frame for _, _, frame in came] == [*sent[:3], b"", *sent[3:6], b""]
        assert model.control({"card": 1})["rx_no_buffer"] == 2
        post(b, rq, 1)
        send(a, one.sq, sent[7], sums=0)
        assert [(n, f, d == sent[7]) for n, f, d in strides(b, cq, rq)] == [(0, 0, True)]
