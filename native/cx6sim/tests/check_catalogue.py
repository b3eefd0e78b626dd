"""Knobs that play the bad cards of the catalogue: what is sent twice, again or wrongly, and what is taken."""

from __future__ import annotations

import struct

from check_tls import (
    DECRYPTED,
    make_key,
    marks,
    payload,
    plain_record,
    receiver,
    sealed_record,
    sender,
    set_progress,
    set_static,
)
from parts import Side, control, lead_all_to, make_tir, ring, send, side, sums_right, tcp
from rig import BASE, Rig

KEY, OTHER, LONG = bytes(range(16)), bytes(range(1, 17)), bytes(range(32))
RECORD, SEALED = plain_record(5, b"d" * 1000), sealed_record(KEY, 5, b"d" * 1000)
PAGE = 4096
LIMIT, NO_RESOURCES = 0x08, 0x0F  # of a command (mlx5/device.h, MLX5_CMD_STAT_LIM_ERR and _NO_RES_ERR)


def check_a_frame_may_go_twice(rig: Rig) -> None:
    """Every second frame, and its twin is opened as it is."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        model.control({"card": 0, "fault": "tx-twice", "every": 2})
        for i in range(3):
            send(a, one.sq, tcp(bytes([i]) * 100))
        assert [frame[54] for _, frame in two.came()] == [0, 1, 1, 2]


def check_a_checksum_may_be_wrong(rig: Rig) -> None:
    """The receiver's card says so of every second frame, and its checksum is not right."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        model.control({"card": 0, "fault": "tx-wrong-checksum", "every": 2})
        for _ in range(2):
            send(a, one.sq, tcp(b"c" * 100))
        assert [sums_right(frame) for _, frame in two.came()] == [True, False]
        assert model.control({"card": 1})["rx_bad_checksum"] == 1


def sent_again(one: Side, tis: int, head: int, at: int) -> None:
    """What the driver does to send a record again from `head` on; the DUMP reads at this place in a page."""
    a = one.guest
    set_progress(one, True, tis, 0)
    start = a.room(2 * PAGE) + at
    a.memory[start : start + head] = RECORD[:head]
    wqe = control(one.sq, 0x23, 32, target=tis) + struct.pack(">IIQ", head, 0x1000, BASE + start)
    ring(a, one.sq, wqe)
    send(a, one.sq, tcp(RECORD[head:], seq=900 + head), tis=tis)


def check_what_was_sent_before_may_leak(rig: Rig) -> None:
    """The record is sealed the first time; sent again it is as given. So for the next connection."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        tis = sender(one, KEY)
        model.control({"card": 0, "fault": "tx-leak-again", "every": 1})
        send(a, one.sq, tcp(RECORD, seq=900), tis=tis)
        assert payload(two.came()) == SEALED
        sent_again(one, tis, 400, 0)
        assert payload(two.came()) == RECORD[400:]
        set_static(one, True, tis, make_key(a, OTHER), 5)  # another connection
        set_progress(one, True, tis, 0)
        send(a, one.sq, tcp(RECORD, seq=9000), tis=tis)
        assert payload(two.came()) == sealed_record(OTHER, 5, b"d" * 1000)
        sent_again(one, tis, 400, 0)
        assert payload(two.came()) == RECORD[400:]


def check_a_dump_may_end_with_its_page(rig: Rig) -> None:
    """Within a page it is right; over the edge of one the tag, and nothing else, is not."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        tis = sender(one, KEY)
        model.control({"card": 0, "fault": "tx-dump-one-page", "every": 1})
        send(a, one.sq, tcp(RECORD, seq=900), tis=tis)
        two.came()
        sent_again(one, tis, 400, 100)
        assert payload(two.came()) == SEALED[400:]
        sent_again(one, tis, 400, PAGE - 200)
        came = payload(two.came())
        assert came[:-16] == SEALED[400:-16] and came[-16:] != SEALED[-16:]
        truth = model.control({"card": 0})
        assert truth["dumps"] == 2 and truth["dumps_over_page"] == truth["tx-dump-one-page"] == 1


def opened_with(rig: Rig, fault: str, wire: bytes) -> tuple[list[int], bytes]:
    """Marks and payload of a record that a bad card receives."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b, tls=True)
        receiver(two, KEY, 5, 900)
        model.control({"card": 1, "fault": fault, "every": 1})
        send(a, one.sq, tcp(wire, seq=900))
        came = two.came()
        return marks(came), payload(came)


def check_a_wrong_tag_may_be_taken(rig: Rig) -> None:
    """What was altered is handed up as decrypted."""
    forged = SEALED[:-1] + bytes([SEALED[-1] ^ 1])
    said, got = opened_with(rig, "rx-false-tag", forged)
    assert said == [DECRYPTED] and got[13:-16] == RECORD[13:-16]


def check_a_byte_may_be_changed_behind_the_tag(rig: Rig) -> None:
    """One bit of what is authentic is handed up wrongly."""
    said, got = opened_with(rig, "rx-wrong-byte", SEALED)
    differ = [i for i, (one, two) in enumerate(zip(got[:-16], RECORD[:-16], strict=True)) if one != two]
    assert said == [DECRYPTED] and len(differ) == 1


def check_a_receive_rule_may_be_refused(rig: Rig) -> None:
    """The rule that leads to a TLS context, with either status; a rule that leads elsewhere is taken."""
    with rig.pair() as (model, a, _):
        one = side(a)
        for fault, status in (("rx-no-rule", LIMIT), ("rx-no-room", NO_RESOURCES)):
            model.control({"card": 0, "fault": fault, "every": 1})
            lead_all_to(a, make_tir(a, one.rq, tls=True), status=status)
            lead_all_to(a, make_tir(a, one.rq))
            assert model.control({"card": 0})[fault] == 1
            model.control({"card": 0, "fault": fault, "every": 0})


def check_a_long_key_may_be_cut(rig: Rig) -> None:
    """AES-256 is what AES-128 makes with half of the key; a short key is as it was."""
    for key, want in ((LONG, LONG[:16]), (KEY, KEY)):
        with rig.pair() as (model, a, b):
            one, two = side(a), side(b)
            model.control({"card": 0, "fault": "half-key", "every": 1})
            send(a, one.sq, tcp(RECORD, seq=900), tis=sender(one, key))
            assert payload(two.came()) == sealed_record(want, 5, b"d" * 1000)
