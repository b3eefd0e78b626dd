"""Random damage to captures and key logs: a verdict or a sentence, never anything else."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import pytest

from offload.errors import ConfigError
from offload.suite.wire.ask import Ask
from offload.suite.wire.document import misfit
from offload.suite.wire.oracle import verify
from tests.unit.suite.wire.oracle.test_wire_capture import enhanced, interface, section
from tests.unit.suite.wire.oracle.wire_hand import PAYLOAD, SUITES, Hand, record
from tests.unit.suite.wire.oracle.wire_make import Flow, pcap

TURNS = 40


def damaged(rng: random.Random, data: bytes) -> bytes:
    """A few bytes changed, put in, taken out, or the end cut off."""
    out = bytearray(data)
    for _ in range(rng.randrange(1, 12)):
        at = rng.randrange(len(out))
        kind = rng.randrange(5)
        if kind == 0:
            out[at] ^= 1 << rng.randrange(8)
        elif kind == 1:
            out[at : at + 4] = rng.choice([b"\0\0\0\0", b"\xff\xff\xff\xff", rng.randbytes(4)])
        elif kind == 2:
            out[at:at] = rng.randbytes(rng.randrange(1, 9))
        elif kind == 3:
            del out[at : at + rng.randrange(1, 40)]
        elif rng.random() < 0.1:
            del out[at:]
        out = out or bytearray(1)
    return bytes(out)


@pytest.mark.parametrize("suite", SUITES)
@pytest.mark.parametrize("where", ["stream", "pcap", "pcapng", "keylog", "frames"])
def test_damage_never_breaks_the_verifier(tmp_path: Path, suite: tuple[str, str], where: str) -> None:
    """Whatever is damaged, the answer is a document or a sentence."""
    rng = random.Random(f"{suite}{where}")
    for _ in range(TURNS):
        hand = Hand(*suite)
        hand.say("client", PAYLOAD, rng.randrange(50, 2000))
        hand.say("server", PAYLOAD[:500])
        hand.close()
        if where == "stream":
            hand.client.out[:] = damaged(rng, bytes(hand.client.out))
            hand.server.out[:] = damaged(rng, bytes(hand.server.out))
        frames = hand.flow().frames
        if where == "frames":
            frames = [f if rng.random() < 0.7 else damaged(rng, f) for f in frames if rng.random() < 0.9]
            rng.shuffle(frames)
        data = pcap(frames)
        if where == "pcapng":
            data = section() + interface() + b"".join(enhanced(f) for f in frames)
        data = damaged(rng, data) if where.startswith("pcap") else data
        keylog = damaged(rng, hand.keylog) if where == "keylog" else hand.keylog
        (tmp_path / "c").write_bytes(data)
        ask = Ask(tmp_path / "c", keylog, PAYLOAD, PAYLOAD[:500], checksums=rng.random() < 0.5)
        try:
            assert not misfit(verify(ask))
        except ConfigError as error:
            assert "\n" not in str(error).replace("\n  hint", "")


def test_noise_behind_a_good_handshake(tmp_path: Path) -> None:
    """Records of every type, length and version after the handshake are survived."""
    rng = random.Random(5)
    for turn in range(200):
        hand = Hand(*rng.choice(list(SUITES)))
        for _ in range(8):
            body = rng.randbytes(rng.choice([0, 1, 15, 16, 17, 23, 24, 25, 300]))
            hand.add("client", record(rng.randrange(20, 25), body, 0x0300 + rng.randrange(6)))
        assert not misfit(hand.verify(tmp_path, rng.choice([None, b"", PAYLOAD]))), turn


def test_a_million_tiny_records(tmp_path: Path) -> None:
    """A stream of empty records costs time in proportion to its length."""
    hand = Hand(finished=False)
    hand.add("client", struct.pack(">BHHB", 22, 0x0303, 1, 11) * 20000)
    flow = Flow()
    hello = hand.client.starts[1]
    flow.send("client", bytes(hand.client.out[:hello]))
    flow.send("server", bytes(hand.server.out))
    flow.send("client", bytes(hand.client.out[hello:]), 60000)
    found = verify(Ask(flow.write(tmp_path / "c"), hand.keylog))
    assert found["connections"][0]["from_client"]["records"] == 20001
