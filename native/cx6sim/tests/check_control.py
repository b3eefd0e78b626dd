"""The control socket: the card's own count, and knobs that make it a bad one."""

from __future__ import annotations

import struct
from contextlib import suppress

from check_tls import ERROR, make_key, marks, payload, plain_record, receiver, sealed_record, sender
from parts import completion, send, side, tcp
from rig import Rig

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
        lines: tuple[object, ...] = ("", "{}", '{"card":9}', '{"card":0,"fault":"rx-drop"')
        for line in (*lines, {"card": 0, "fault": "none", "every": 1}):
            assert "error" in model.control(line), line
        with suppress(ValueError, OSError):
            raise AssertionError(model.control("x" * 2000))
        assert model.control({"card": 1})["card"] == 1
