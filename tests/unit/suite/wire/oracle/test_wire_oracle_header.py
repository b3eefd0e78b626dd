"""Headers that no record can begin with, and bytes that were sent again differently: their classes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.unit.suite.wire.oracle.wire_hand import PAYLOAD, Hand, first, one

RECORD = 5


def session(version: str = "1.2") -> Hand:
    """A session in which the client sent PAYLOAD."""
    hand = Hand(version)
    hand.say("client", PAYLOAD)
    return hand.close()


def broken(folder: Path, head: bytes, hand: Hand | None = None) -> Any:
    """The first difference where these bytes stand for the header of a record."""
    hand = hand or session()
    at = hand.client.starts[RECORD]
    hand.client.out[at : at + len(head)] = head
    found = hand.verify(folder)
    assert found["outcome"] == "different" and one(found)["from_client"]["records"] == RECORD
    difference = first(found)
    assert (difference["record"], difference["field"], difference["offset"]) == (RECORD, "header", at)
    return difference


@pytest.mark.parametrize(
    ("head", "name", "detail", "at"),
    [
        (PAYLOAD[608:640], "plaintext", "payload offset 608", 0),
        (bytes(5), "zero run", "5", 0),
        (b"\x97\3\3", "bit flip", "bit 7", 0),
        (b"\x17\3\7", "bit flip", "bit 2", 2),
        (b"\x17\3\3\x81\x44", "bit flip", "bit 7", 3),
        (b"\x55\x66\x77\x88\x99", "lost framing", "", 0),
    ],
)
def test_a_header_that_cannot_be(tmp_path: Path, head: bytes, name: str, detail: str, at: int) -> None:
    """An implausible header is named after what stands there."""
    found = broken(tmp_path, head)
    assert (found["class"], found["detail"], found["at"]) == (name, detail, at)


def test_bytes_of_the_stream_for_a_header(tmp_path: Path) -> None:
    """16 bytes that were in the stream before are a replay."""
    hand = session()
    found = broken(tmp_path, bytes(hand.client.out[300:330]), hand)
    assert (found["class"], found["detail"]) == ("replay", "stream offset 300")


def test_bytes_put_in_before_a_header(tmp_path: Path) -> None:
    """A header that begins some bytes later is a shift."""
    hand = session()
    at = hand.client.starts[RECORD]
    hand.client.out[at:at] = b"\x99" * 7
    found = broken(tmp_path, b"\x99" * 7, hand)
    assert (found["class"], found["detail"]) == ("shift", "+7")


def sent_again(folder: Path, bend: Any) -> Any:
    """The retransmission finding: a segment of 200 bytes comes again, bent."""
    hand = session()
    flow = hand.flow(fin=False)
    again = bytearray(hand.client.out[400:600])
    bend(again)
    flow.frame("client", 400, data=bytes(again))
    flow.fin()
    frames = len(flow.frames) - 2
    hand.flow = lambda fin=True: flow  # type: ignore[method-assign]
    found = hand.verify(folder)
    side = one(found)["from_client"]
    assert found["outcome"] == "different" and side["retransmissions"] == 1
    assert side["retransmitted_bytes"] == 200 and side["first_difference"] is None
    assert side["retransmission"]["frame"] == frames
    return side["retransmission"]


def bit(data: bytearray) -> None:
    data[50] ^= 16


def zeros(data: bytearray) -> None:
    data[50:80] = bytes(30)


def clear(data: bytearray) -> None:
    data[50:80] = PAYLOAD[1000:1030]


def noise(data: bytearray) -> None:
    data[50] ^= 255
    data[150] ^= 255


@pytest.mark.parametrize(
    ("bend", "name"), [(bit, "bit flip"), (zeros, "zero run"), (clear, "plaintext"), (noise, "differs")]
)
def test_a_retransmission_that_differs(tmp_path: Path, bend: Any, name: str) -> None:
    """Bytes that come again have to be the same; the first that is not is told."""
    found = sent_again(tmp_path, bend)
    assert (found["class"], found["offset"]) == (name, 450)
    assert len(found["got"]) == len(found["expected"]) == 32 and found["got"] != found["expected"]
