"""The control socket: the card's own count, and knobs that make it a bad one."""

from __future__ import annotations

import struct
import time
from contextlib import suppress

from check_tls import (
    DECRYPTED,
    ERROR,
    RESYNC,
    ask_progress,
    make_key,
    marks,
    payload,
    plain_record,
    receiver,
    sealed_record,
    sender,
)
from parts import completion, send, side, tcp
from rig import DEADLINE, Rig

KEY = bytes(range(16))


def sealed_with(rig: Rig, fault: str) -> bytes:
    """What is on the wire of one record when a knob is turned."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        tis = sender(one, KEY)
        assert model.control({"card": 0, "fault": fault, "every": 1})["card"] == 0
        send(a, one.sq, tcp(plain_record(5, b"f" * 300), seq=900), tis=tis)
        assert model.control({"card": 0})[fault] >= 1
        return payload(two.came())


def check_each_sender_fault_spoils_its_own_part(rig: Rig) -> None:
    """Tag, nonce, salt, number, plaintext, nothing at all: each is seen on the wire."""
    want, plain = sealed_record(KEY, 5, b"f" * 300), plain_record(5, b"f" * 300)
    tag = sealed_with(rig, "tx-wrong-tag")
    assert tag[:-16] == want[:-16] and tag[-16:] != want[-16:]
    nonce, salt = sealed_with(rig, "tx-wrong-nonce"), sealed_with(rig, "tx-wrong-salt")
    assert nonce[:13] == salt[:13] == want[:13] and len({nonce, salt, want}) == 3
    forgot = sealed_with(rig, "tx-forget-number")
    assert forgot[13:-16] == want[13:-16] and forgot[-16:] != want[-16:], (
        "the number is in the additional data only"
    )
    assert sealed_with(rig, "tx-leak") == plain
    assert sealed_with(rig, "tx-drop") == b""


def check_a_stream_that_was_pushed_out_loses_its_number(rig: Rig) -> None:
    """Two streams take turns: with room for one, the next record is wrong; with room for two, it is right."""
    for room, hits in ((2, 0), (1, 1)):
        with rig.pair() as (model, a, b):
            one, two = side(a), side(b)
            model.control({"card": 0, "fault": "tx-small-cache", "every": room})
            first, second = sender(one, KEY), sender(one, KEY)
            frames = []
            for tis, number, seq in ((first, 5, 900), (second, 5, 900), (first, 6, 1229)):
                send(a, one.sq, tcp(plain_record(number, b"f" * 300), seq=seq), tis=tis)
                frames.append(payload(two.came()))
            right = [sealed_record(KEY, number, b"f" * 300) for number in (5, 5, 6)]
            assert frames[:2] == right[:2] and (frames[2] == right[2]) == (not hits)
            assert model.control({"card": 0})["tx-small-cache"] == hits


def check_a_wrong_key_is_in_every_record(rig: Rig) -> None:
    """The key is spoiled as it comes: the header and the nonce are right, nothing else is."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        model.control({"card": 0, "fault": "wrong-key", "every": 1})
        send(a, one.sq, tcp(plain_record(5, b"k" * 300), seq=900), tis=sender(one, KEY))
        came, want = payload(two.came()), sealed_record(KEY, 5, b"k" * 300)
        assert came[:13] == want[:13] and came[13:] != want[13:]


def check_a_frame_may_go_behind_the_next(rig: Rig) -> None:
    """Every second frame lets one pass; none is lost."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        model.control({"card": 0, "fault": "tx-reorder", "every": 2})
        for i in range(5):
            send(a, one.sq, tcp(bytes([i]) * 100))
        assert [frame[54] for _, frame in two.came()] == [0, 2, 1, 3]
        send(a, one.sq, tcp(bytes([5]) * 100))
        assert [frame[54] for _, frame in two.came()] == [5, 4]


def check_a_send_queue_may_break(rig: Rig) -> None:
    """An error completion though the WQE was good; what comes behind it is handed back undone."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        model.control({"card": 0, "fault": "tx-error", "every": 2})
        for i in range(4):
            send(a, one.sq, tcp(bytes([i]) * 100))
        assert [frame[54] for _, frame in two.came()] == [0]
        entries = [completion(a, one.tx_cq) for _ in range(4)]
        assert all(entries) and [entry[63] >> 4 for entry in entries if entry] == [0, 13, 13, 13]
        assert [entry[55] for entry in entries if entry] == [0, 2, 5, 5]
        counters = [struct.unpack_from(">H", entry, 60)[0] for entry in entries if entry]
        assert counters == sorted(set(counters)), "each names its own WQE"


def lost_stream(rig: Rig, fault: str) -> tuple[list[int], tuple[int, int, int], dict[str, int]]:
    """Marks of three records without the second one, what GET_PSV says then, and the card's own count."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b, tls=True)
        receiver(two, KEY, 0, 900)
        if fault:
            model.control({"card": 1, "fault": fault, "every": 1})
        records = [sealed_record(KEY, i, b"l" * 200) for i in range(3)]
        for i in (0, 2):
            send(a, one.sq, tcp(records[i], seq=900 + i * len(records[0])))
        return marks(two.came()), ask_progress(two, two.tir), model.control({"card": 1})


def check_a_receiver_may_lose_sync(rig: Rig) -> None:
    """A good one says resync and where; bad ones forget, keep silent, or answer what is not so."""
    good, said, truth = lost_stream(rig, "")
    assert good == [DECRYPTED, RESYNC] and said[0] == 1 and truth["rx_tracking"] == 1 == truth["searches"]
    came, answer, truth = lost_stream(rig, "rx-forget")
    assert came == [0, 0] and truth["rx_tracking"] == 0 == truth["opened"]
    came, answer, truth = lost_stream(rig, "rx-no-resync")
    assert came == [DECRYPTED, 0] and answer == said and truth["rx-no-resync"] == 1
    came, answer, truth = lost_stream(rig, "rx-wrong-resync-answer")
    assert came == good and answer == (said[0], said[1], said[2] + 1)
    came, answer, truth = lost_stream(rig, "rx-no-resync-answer")
    assert came == good and answer[0] == 0


def check_a_receiver_may_say_opened_of_what_it_left(rig: Rig) -> None:
    """The frame is as it came on the wire, and marked as decrypted."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b, tls=True)
        receiver(two, KEY, 0, 900)
        model.control({"card": 1, "fault": "rx-false-opened", "every": 1})
        record = sealed_record(KEY, 0, b"o" * 200)
        send(a, one.sq, tcp(record, seq=900))
        came = two.came()
        assert marks(came) == [DECRYPTED] and payload(came) == record


def check_a_slow_command_ends_later(rig: Rig) -> None:
    """Its entry is the card's until the time has come, and the card hears other things meanwhile."""
    waited = False
    for delay in (300, 3000, 30000):  # on a busy machine it may be over before we look
        with rig.pair() as (model, a, _):
            model.control({"card": 0, "fault": "command-delay", "every": delay})
            began = time.monotonic()
            try:
                a.command(0x104)
            except AssertionError as exc:
                assert "not given the entry back" in str(exc)
                waited = True
            assert model.control({"card": 0})["command-delay"] == 1
            while a.memory[63] & 1:
                assert time.monotonic() < began + DEADLINE
                time.sleep(0.01)
            assert time.monotonic() - began >= delay / 1000 and a.memory[32] == 0
            model.control({"card": 0, "fault": "all", "every": 0})
            a.command(0x104)
        if waited:
            return
    raise AssertionError("it was always over before we looked")


def check_a_receiver_may_cry_wolf(rig: Rig) -> None:
    """Every second frame is called an error though nothing is wrong with it."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b, tls=True)
        receiver(two, KEY, 0, 900)
        model.control({"card": 1, "fault": "rx-false-error", "every": 2})
        seq = 900
        for i in range(4):
            record = sealed_record(KEY, i, b"w" * 200)
            send(a, one.sq, tcp(record, seq=seq))
            seq += len(record)
        assert marks(two.came()) == [1, ERROR, 1, ERROR]


def check_commands_may_fail_or_never_end(rig: Rig) -> None:
    """An internal error, no key left, and an entry that is never given back."""
    with rig.pair() as (model, a, _):
        model.control({"card": 0, "fault": "command-error", "every": 2})
        a.command(0x104)
        a.command(0x104, status=1)
        model.control({"card": 0, "fault": "command-error", "every": 0})
        model.control({"card": 0, "fault": "no-key-left", "every": 1})
        try:
            make_key(a, KEY)
            raise RuntimeError("a key was made")
        except AssertionError as exc:
            assert "08000000" in str(exc)
        model.control({"card": 0, "fault": "no-stream-left", "every": 1})
        a.command(0x912, 0, bytes(200), status=8)
        model.control({"card": 0, "fault": "command-timeout", "every": 1})
        a.memory[63] = 1
        a.write(0x18, struct.pack(">I", 1))
        assert a.memory[63] == 1


def check_a_syndrome_stops_the_health_counter(rig: Rig) -> None:
    """The card asks for a reset; when the driver makes it, all is as new."""
    with rig.pair() as (model, a, _):
        model.control({"card": 0, "fault": "health", "every": 8})
        assert a.read(0x23D, 1) == b"\x08" and a.read(0x238, 1)[0] >> 7 == 1 and a.word(0x1010) == 0
        a.write(0x14, struct.pack(">I", 7 << 8))
        assert a.word(0x14) >> 8 & 7 == 1 and a.read(0x23D, 1) == b"\0"
        a.start()
        a.command(0x104)


def check_a_receiver_may_lose_frames(rig: Rig) -> None:
    """Every second frame is gone, and the sender hears nothing of it."""
    with rig.pair() as (model, a, b):
        one, two = side(a), side(b)
        model.control({"card": 1, "fault": "rx-drop", "every": 2})
        for i in range(4):
            send(a, one.sq, tcp(bytes([i]) * 100))
        assert [frame[54] for _, frame in two.came()] == [0, 2]
        assert completion(a, one.tx_cq)


def check_nonsense_is_answered(rig: Rig) -> None:
    """What is no request, no card or no fault gets an error in words; a line without end is hung up on."""
    with rig.model() as model:
        cut: tuple[object, ...] = ("", "{}", '{"card":0', '{"card":0}x', '{"card":0,"fault":"rx-drop"')
        odd = ('{"card":9}', '{"card":"0"}', '{"card":1234567890123456789}', '{"car\\u0064":0}')
        half = ('{"card":-1}', '{"card":0,"card":1}', '{"card":0,"every":1}')
        faults = ({"card": 0, "fault": name, "every": 1} for name in ("none", "all", "x" * 40))
        for line in (*cut, *odd, *half, *faults):
            assert "error" in model.control(line), line
        assert model.control(' { "every" : 1 , "fault" : "rx-drop" , "card" : 1 } ')["card"] == 1
        model.control({"card": 1, "fault": "all", "every": 0})
        with suppress(ValueError, OSError):
            raise AssertionError(model.control("x" * 2000))
        assert model.control({"card": 1})["card"] == 1
