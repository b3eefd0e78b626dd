"""Payload in the clear, where it is not looked for by comparing records."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from offload.suite.wire.ask import Ask
from offload.suite.wire.needles import needles
from offload.suite.wire.oracle import verify
from tests.unit.suite.wire.oracle.wire_hand import PAYLOAD, Hand
from tests.unit.suite.wire.oracle.wire_make import Flow


def asked(folder: Path, more: list[bytes], port: int | None = None) -> Any:
    """The document for a good session and more frames."""
    hand = Hand()
    hand.say("client", PAYLOAD)
    flow = hand.close().flow()
    flow.frames += more
    return verify(Ask(flow.write(folder / "c"), hand.keylog, PAYLOAD, port=port))


def plain(port: int = 80) -> list[bytes]:
    """Frames of a connection that sends payload in the clear."""
    flow = Flow(("192.0.2.9", 41000), ("192.0.2.2", port))
    flow.send("client", b"GET " + PAYLOAD[500:600])
    return flow.frames


def test_a_clean_capture_has_no_leak(tmp_path: Path) -> None:
    """A good session leaks nothing, nor do frames with something else."""
    assert asked(tmp_path, [b"arp" * 20, bytes(100)])["leak"] is None


def test_a_frame_that_is_no_tcp(tmp_path: Path) -> None:
    """Payload in any other frame is a leak: frame, place, payload offset, how many."""
    frame = b"\0" * 40 + PAYLOAD[155:200]
    found = asked(tmp_path, [b"arp" * 20, frame, frame])
    first = len(found["connections"]) and found["capture"]["frames"] - 1
    assert found["leak"] == {
        "frame": first,
        "at": 45,
        "payload_offset": 160,
        "frames": 2,
        "of": "payload",
    }
    assert found["outcome"] == "different" and found["connections"][0]["outcome"] == "equal"


def test_a_connection_that_is_not_tls(tmp_path: Path) -> None:
    """Payload in a plain connection is a leak."""
    found = asked(tmp_path, plain())
    assert found["leak"]["payload_offset"] == 512 and found["leak"]["at"] == 54 + 4 + 12
    assert found["capture"]["not_tls"] == 1


def test_a_connection_that_the_port_leaves_out(tmp_path: Path) -> None:
    """A connection on another port is searched as a whole."""
    found = asked(tmp_path, plain(8443), 443)
    assert found["leak"]["payload_offset"] == 512 and found["capture"]["not_tls"] == 0


def test_a_trailer(tmp_path: Path) -> None:
    """What lies behind the IP packet is searched."""
    flow = Hand().flow()
    found = asked(tmp_path, [flow.frames[0] + PAYLOAD[:32]])
    assert found["leak"]["at"] == len(flow.frames[0]) and found["leak"]["payload_offset"] == 0


def test_needles_are_16_bytes_apart_and_the_first_counts() -> None:
    """Windows begin at multiples of 16; of equal ones the first offset is told."""
    found = needles(PAYLOAD[:32] * 2 + b"tail")
    assert found == {PAYLOAD[:16]: 0, PAYLOAD[16:32]: 16}
    assert needles(b"x" * 15) == {}


def test_few_different_bytes_are_no_needle(tmp_path: Path) -> None:
    """Zeros and the like prove nothing."""
    hand = Hand()
    text = bytes(64) + b"abcde" * 20
    hand.say("client", text)
    flow = hand.close().flow()
    flow.frames.append(text)
    assert verify(Ask(flow.write(tmp_path / "c"), hand.keylog, text))["leak"] is None
