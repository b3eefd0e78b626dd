"""Payload that begins in a plain header and ends in a clear record; and how far clear records may go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from offload.suite.wire.ask import Ask
from offload.suite.wire.verify import verify
from tests.lib.wiregen.engines import both, parting
from tests.lib.wiregen.plants import planted
from tests.unit.suite.wire.oracle.wire_hand import PAYLOAD, Hand, message, record

TCP = 14 + 20  # where the TCP header of a frame of wire_make is
WINDOW, BODY = TCP + 14, TCP + 20
FOUND_BY_PLANTS = (20005011, 20005017)
engines = pytest.mark.parametrize("engine", ["core", "python"])


def asked(hand: Hand, frames: list[bytes], engine: str, folder: Path) -> Any:
    """The document of one engine; these frames are taken for the session's."""
    flow = hand.flow()
    flow.frames = frames
    return verify(Ask(flow.write(folder / "c"), hand.keylog, PAYLOAD), engine)


def session() -> Hand:
    """A good one, with a certificate that goes on in a second frame."""
    hand = Hand(finished=False)
    hand.add("server", record(22, message(11, bytes(2000))))
    for name in ("server", "client"):
        hand.add(name, record(20, b"\1"))
        hand.seal(name, 22, message(20, b"f" * 12))
    hand.say("client", PAYLOAD)
    return hand.close()


def over(frame: bytes, at: int, data: bytes) -> bytes:
    """A frame with these bytes over others."""
    return frame[:at] + data + frame[at + len(data) :]


@engines
def test_payload_that_begins_in_a_plain_header(engine: str, tmp_path: Path) -> None:
    """Payload in window, checksum, urgent pointer and on into a clear record is a leak."""
    hand = session()
    frames = hand.flow().frames
    number = next(i for i, frame in enumerate(frames) if frame[BODY:].startswith(bytes(40)))
    assert asked(hand, frames, engine, tmp_path)["outcome"] == "equal"
    frames[number] = over(frames[number], WINDOW, PAYLOAD[:31])
    found = asked(hand, frames, engine, tmp_path)
    assert (found["leak"]["at"], found["leak"]["payload_offset"]) == (WINDOW, 0)


@pytest.mark.parametrize("seed", FOUND_BY_PLANTS)
def test_the_plants_that_were_equal(seed: int, tmp_path: Path) -> None:
    """The two of 12,500 plants that both engines called equal are not, by either."""
    for _, ours, theirs in both([(seed, planted(seed))], tmp_path):
        assert ours["outcome"] == "different"
        assert not list(parting(ours, theirs))


@engines
@pytest.mark.parametrize("sixteens", [7, 9])
def test_clear_handshake_ends_within_128_kib(engine: str, sixteens: int, tmp_path: Path) -> None:
    """Handshake records in clear are a problem beyond 128 KiB of a direction, not before."""
    hand = Hand(finished=False)
    for _ in range(sixteens):
        hand.add("server", record(22, message(11, bytes(16380))))
    for name in ("server", "client"):
        hand.add(name, record(20, b"\1"))
        hand.seal(name, 22, message(20, b"f" * 12))
    hand.say("client", PAYLOAD)
    found = asked(hand.close(), hand.flow().frames, engine, tmp_path)
    codes = [problem["code"] for problem in found["connections"][0]["problems"]]
    assert codes == (["clear-record"] if sixteens == 9 else [])
