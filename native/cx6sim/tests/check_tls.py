"""TLS: records are sealed and opened as by another implementation of RFC 5288; loss and damage are told."""

from __future__ import annotations

import struct

import aes_gcm
from parts import Side, control, made, ring, send, side, tcp
from rig import BASE, Guest, Rig, at, got, put

SALT = b"salt"
DECRYPTED, RESYNC, ERROR = 1, 2, 3


def plain_record(number: int, data: bytes) -> bytes:
    """A record as the kernel hands it to the card: header and nonce are set, the tag is not."""
    return struct.pack("!BHHQ", 23, 0x0303, len(data) + 24, number) + data + bytes(16)


def sealed_record(key: bytes, number: int, data: bytes) -> bytes:
    """The record as it belongs on the wire."""
    nonce = struct.pack("!Q", number)
    extra = struct.pack("!QBHH", number, 23, 0x0303, len(data))
    return (
        struct.pack("!BHH", 23, 0x0303, len(data) + 24) + nonce + aes_gcm.seal(key, SALT + nonce, data, extra)
    )


def make_key(guest: Guest, key: bytes) -> int:
    """A DEK; a short key lies in the second half of its field."""
    body = bytearray(8 + 128)
    put(body, 8, "encryption_key_obj__key_size", len(key) == 32)
    place = 8 + at("encryption_key_obj__key") + (32 - len(key) if len(key) == 16 else 0)
    body[place : place + len(key)] = key
    return made(guest.command(0xA00, 0xC, bytes(body)))


def set_static(one: Side, tx: bool, stream: int, dek: int, number: int, resync: int = 0) -> None:
    """The WQE with the static parameters of a stream."""
    params = bytearray(64)
    put(params, 0, "tls_static_params__tls_version", 2)
    put(params, 0, "tls_static_params__dek_index", dek)
    put(params, 0, "tls_static_params__resync_tcp_sn", resync)
    put(params, 0, "tls_static_params__initial_record_number", number)
    place = at("tls_static_params__gcm_iv")
    params[place : place + 4] = SALT
    head = control(one.sq, 0x25, 192, 1 if tx else 2, stream)
    ring(one.guest, one.sq, head + bytes(112) + bytes(params))


def set_progress(one: Side, tx: bool, stream: int, seq: int) -> None:
    """The WQE with which a stream begins."""
    head = control(one.sq, 0x20, 32, 1 if tx else 2)
    ring(one.guest, one.sq, head + struct.pack(">IIII", stream, 0 if tx else seq, 0, 0))


def ask_progress(one: Side, tir: int) -> tuple[int, int, int]:
    """GET_PSV: tracker state, authentication state, and where the header was found."""
    place = one.guest.room(64)
    head = control(one.sq, 0x21, 64, 2)
    ring(one.guest, one.sq, head + bytes(24) + struct.pack(">QI", BASE + place, tir))
    said = bytes(one.guest.memory[place + 4 : place + 20])
    names = ("record_tracker_state", "auth_state", "hw_resync_tcp_sn")
    state, auth, found = (got(said, 0, f"tls_progress_params__{name}") for name in names)
    return state, auth, found


def sender(one: Side, key: bytes, number: int = 5) -> int:
    """A sending stream; its TIS."""
    tis = made(one.guest.command(0x912, 0, bytes(200)))
    set_static(one, True, tis, make_key(one.guest, key), number)
    set_progress(one, True, tis, 0)
    return tis


def receiver(two: Side, key: bytes, number: int, seq: int) -> int:
    """A receiving stream; its key's number."""
    dek = make_key(two.guest, key)
    set_static(two, False, two.tir, dek, number)
    set_progress(two, False, two.tir, seq)
    return dek


def marks(came: list[tuple[bytes, bytes]]) -> list[int]:
    """What the card says of each frame: bits 3 and 4 of the first byte."""
    return [entry[0] >> 3 & 3 for entry, _ in came]


def payload(came: list[tuple[bytes, bytes]]) -> bytes:
    """The TCP payload of frames that came in order."""
    return b"".join(frame[54:] for _, frame in came)


def check_records_are_sealed(rig: Rig) -> None:
    """Both key lengths; records in one frame, over several, and cut by TSO: as another AES-GCM makes them."""
    for key in (bytes(range(16)), bytes(range(32))):
        with rig.pair() as (model, a, b):
            one, two = side(a), side(b)
            tis = sender(one, key)
            data = [b"a" * 300, b"", b"bc" * 1500]
            stream = b"".join(plain_record(5 + i, d) for i, d in enumerate(data))
            want = b"".join(sealed_record(key, 5 + i, d) for i, d in enumerate(data))
            send(a, one.sq, tcp(stream[:309], seq=900), tis=tis)  # ends within the nonce of the second record
            send(a, one.sq, tcp(stream[309:700], seq=1209), tis=tis)
            send(a, one.sq, tcp(stream[700:], seq=1600), mss=1000, tis=tis)
            assert payload(two.came()) == want
            truth = model.control({"card": 0})
            assert truth["sealed"] == 3 and truth["tx_tls_bytes"] == len(want) and not truth["tx_out_of_sync"]


def check_a_frame_out_of_order_is_not_sent(rig: Rig) -> None:
    """Plaintext never leaves: what does not follow is dropped and counted."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        tis = sender(one, bytes(16))
        send(a, one.sq, tcp(plain_record(5, b"s" * 200), seq=900), tis=tis)
        send(a, one.sq, tcp(plain_record(6, b"t" * 200), seq=5000), tis=tis)
        assert len(two.came()) == 1 and model.control({"card": 0})["tx_out_of_sync"] == 1


def check_a_dump_brings_the_card_into_the_middle_of_a_record(rig: Rig) -> None:
    """Sent again from inside a record: the driver sets the number, dumps the beginning, sends the rest."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        key = bytes(range(16))
        tis = sender(one, key)
        record, want = plain_record(5, b"d" * 1000), sealed_record(key, 5, b"d" * 1000)
        send(a, one.sq, tcp(record, seq=900), tis=tis)
        two.came()
        set_progress(one, True, tis, 0)
        start = a.room(4096)
        a.memory[start : start + 400] = record[:400]
        ring(
            a, one.sq, control(one.sq, 0x23, 32, target=tis) + struct.pack(">IIQ", 400, 0x1000, BASE + start)
        )
        send(a, one.sq, tcp(record[400:], seq=1300), tis=tis)
        assert payload(two.came()) == want[400:] and model.control({"card": 0})["dumps"] == 1


def check_records_are_opened(rig: Rig) -> None:
    """In frames of any size, and each frame says so; what is not TLS's turn is left alone."""
    for key in (bytes(range(16)), bytes(range(32))):
        with rig.pair() as (model, a, b):
            one, two = side(a), side(b, tls=True)
            receiver(two, key, 7, 900)
            data = [b"p" * 500, b"q" * 2000, b"r"]
            wire = b"".join(sealed_record(key, 7 + i, d) for i, d in enumerate(data))
            for start in range(0, len(wire), 333):
                send(a, one.sq, tcp(wire[start : start + 333], seq=900 + start))
            came = two.came()
            assert set(marks(came)) == {DECRYPTED} and len(came) == 8
            opened = payload(came)
            assert (
                opened[13:513] == data[0]
                and opened[542:2542] == data[1]
                and model.control({"card": 1})["opened"] == 3
            )


def check_a_wrong_tag_is_reported(rig: Rig) -> None:
    """The frame with the tag is an error, as it came; what follows is left alone; the driver hears of it."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b, tls=True)
        key = bytes(range(16))
        receiver(two, key, 7, 900)
        bad = bytearray(sealed_record(key, 7, b"p" * 500))
        bad[200] ^= 1
        good = sealed_record(key, 8, b"q" * 500)
        send(a, one.sq, tcp(bytes(bad), seq=900))
        send(a, one.sq, tcp(good, seq=900 + len(bad)))
        came = two.came()
        assert marks(came) == [ERROR, 0] and payload(came) == bytes(bad) + good
        assert ask_progress(two, two.tir)[1] == 2 and model.control({"card": 1})["tags_failed"] == 1


def check_the_stream_is_found_again_after_a_loss(rig: Rig) -> None:
    """A header is found and told; the driver confirms its number; from the next header on it is opened."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b, tls=True)
        key = bytes(range(16))
        dek = receiver(two, key, 0, 900)
        records = [sealed_record(key, i, bytes([65 + i]) * 400) for i in range(6)]
        begin = [900 + sum(map(len, records[:i])) for i in range(7)]
        send(a, one.sq, tcp(records[0], seq=begin[0]))
        send(a, one.sq, tcp(records[2], seq=begin[2]))  # record 1 is lost
        assert marks(two.came()) == [DECRYPTED, RESYNC]
        assert ask_progress(two, two.tir) == (1, 0, begin[2])
        send(a, one.sq, tcp(records[3], seq=begin[3]))
        set_static(two, False, two.tir, dek, 2, resync=begin[2])
        send(a, one.sq, tcp(records[4], seq=begin[4]))
        send(a, one.sq, tcp(records[5], seq=begin[5]))
        came = two.came()
        assert (
            marks(came) == [0, DECRYPTED, DECRYPTED]
            and payload(came)[len(records[3]) + 13 :][:400] == b"E" * 400
        )
        assert model.control({"card": 1})["confirmed"] == 1


def check_a_number_that_was_not_asked_for_is_not_taken(rig: Rig) -> None:
    """A confirmation of another header leaves the card where it is."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b, tls=True)
        key = bytes(range(16))
        dek = receiver(two, key, 0, 900)
        records = [sealed_record(key, i, b"x" * 400) for i in range(4)]
        size = len(records[0])
        send(a, one.sq, tcp(records[1], seq=900 + size))
        set_static(two, False, two.tir, dek, 1, resync=900)
        send(a, one.sq, tcp(records[2], seq=900 + 2 * size))
        assert marks(two.came()) == [RESYNC, 0] and model.control({"card": 1})["confirmed"] == 0
