"""Each class of a difference, on sessions by hand: what is told is what was done."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.unit.suite.wire.oracle.wire_hand import PAYLOAD, Hand, first, one, record

RECORD = 5  # of 13: the client's records of 300 bytes begin at number 3 (TLS 1.2) or 3 (1.3)
ALL = [("1.2", "gcm"), ("1.2", "chacha"), ("1.3", "gcm"), ("1.3", "chacha")]
Bend = Callable[[Hand, int], None]


def session(version: str = "1.2", cipher: str = "gcm") -> Hand:
    """A session in which the client sent PAYLOAD."""
    hand = Hand(version, cipher)
    hand.say("client", PAYLOAD)
    return hand.close()


def start(hand: Hand) -> int:
    """Where the ciphertext of record RECORD begins."""
    return hand.client.starts[RECORD] + 5 + (8 if hand.cipher != "chacha" and hand.version == "1.2" else 0)


def position() -> int:
    """The payload offset of record RECORD."""
    return (RECORD - 3) * 300


def bent(folder: Path, hand: Hand, payload: bytes | None = PAYLOAD) -> Any:
    """The first difference; the outcome has to be `different`."""
    found = hand.verify(folder, payload)
    assert found["outcome"] == "different"
    difference = first(found)
    assert difference["record"] == RECORD and difference["offset"] == hand.client.starts[RECORD]
    return difference


@pytest.mark.parametrize(("version", "cipher"), ALL)
def test_a_bit_of_the_ciphertext(tmp_path: Path, version: str, cipher: str) -> None:
    hand = session(version, cipher)
    hand.client.out[start(hand) + 77] ^= 8
    found = bent(tmp_path, hand)
    assert (found["class"], found["detail"], found["field"], found["at"]) == (
        "bit flip",
        "bit 3",
        "ciphertext",
        77,
    )
    got, expected = bytes.fromhex(found["got"]), bytes.fromhex(found["expected"])
    assert len(got) == len(expected) == 16 and got[0] ^ expected[0] == 8 and got[1:] == expected[1:]


def test_a_bit_of_the_tag(tmp_path: Path) -> None:
    hand = session()
    hand.client.out[start(hand) + 300 + 4] ^= 128
    found = bent(tmp_path, hand)
    assert (found["class"], found["detail"], found["field"], found["at"]) == ("bit flip", "bit 7", "tag", 4)


def test_a_tag_that_is_something_else(tmp_path: Path) -> None:
    """A wrong tag over the right ciphertext is a bad tag."""
    hand = session()
    hand.client.out[start(hand) + 300 : start(hand) + 316] = bytes(16)
    found = bent(tmp_path, hand)
    assert (found["class"], found["field"], found["got"]) == ("bad tag", "tag", "00" * 16)


@pytest.mark.parametrize("k", [1, -1, 2, 16, -2])
@pytest.mark.parametrize(("version", "cipher"), ALL)
def test_a_wrong_sequence(tmp_path: Path, version: str, cipher: str, k: int) -> None:
    """A record that is right for another sequence says how far off it is."""
    hand = Hand(version, cipher)
    hand.say("client", PAYLOAD[:600])
    hand.say("client", PAYLOAD[600:900], sequence=hand.client.sequence + k)
    hand.say("client", PAYLOAD[900:])
    hand.close()
    found = bent(tmp_path, hand)
    assert (found["class"], found["detail"]) == ("wrong sequence", f"{k:+d}")
    assert found["sequence"] == (3 if version == "1.2" else 2)


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_the_key_of_the_other_direction(tmp_path: Path, version: str) -> None:
    """A record under the server's key says so."""
    hand = Hand(version)
    hand.say("client", PAYLOAD[:600])
    hand.say("client", PAYLOAD[600:900], keys_of="server")
    hand.say("client", PAYLOAD[900:])
    found = bent(tmp_path, hand.close())
    assert (found["class"], found["detail"], found["field"]) == ("wrong key", "other direction", "ciphertext")


def test_the_key_of_another_epoch(tmp_path: Path) -> None:
    """A TLS 1.3 record under the handshake secret says so."""
    hand = Hand("1.3")
    hand.say("client", PAYLOAD[:600])
    hand.say("client", PAYLOAD[600:900], epoch=0)
    hand.say("client", PAYLOAD[900:])
    found = bent(tmp_path, hand.close())
    assert (found["class"], found["detail"]) == ("wrong key", "epoch 0")


def authentic(text: bytes) -> Hand:
    """A session whose record RECORD is sealed well, over another text."""
    hand = Hand("1.3")
    hand.say("client", PAYLOAD[:600])
    hand.seal("client", 23, text)
    hand.say("client", PAYLOAD[900:])
    return hand.close()


@pytest.mark.parametrize(
    ("text", "name", "detail"),
    [
        (PAYLOAD[:300], "replay", "payload offset 0"),
        (PAYLOAD[604:904], "shift", "+4"),
        (PAYLOAD[600:700] + PAYLOAD[650:850], "replay", "payload offset 650"),
        (bytes(300), "wrong payload", ""),
        (PAYLOAD[600:895] + b"other", "wrong payload", ""),
    ],
)
def test_an_authentic_record_with_other_data(tmp_path: Path, text: bytes, name: str, detail: str) -> None:
    """The wrong plaintext, sealed well, is looked up in the payload."""
    found = bent(tmp_path, authentic(text))
    assert (found["class"], found["detail"], found["field"]) == (name, detail, "ciphertext")
    at = found["at"]
    assert text[at] != PAYLOAD[600 + at] and text[:at] == PAYLOAD[600 : 600 + at]
    assert found["expected"] == PAYLOAD[600 + at : min(616 + at, 900)].hex()
    assert found["got"] == text[at : at + 16].hex()


def zeros(hand: Hand, at: int) -> None:
    hand.client.out[at + 40 : at + 90] = bytes(50)


def clear(hand: Hand, at: int) -> None:
    hand.client.out[at + 40 : at + 90] = PAYLOAD[position() + 40 : position() + 90]


def before(hand: Hand, at: int) -> None:
    hand.client.out[at + 40 : at + 90] = hand.client.out[100:150]


def moved(hand: Hand, at: int) -> None:
    hand.client.out[at + 40 : at + 90] = hand.client.out[at + 44 : at + 94]


def moved_back(hand: Hand, at: int) -> None:
    hand.client.out[at + 40 : at + 200] = hand.client.out[at + 41 : at + 201]


def noise(hand: Hand, at: int) -> None:
    hand.client.out[at + 40] ^= 0x55
    hand.client.out[at + 240] ^= 0x55


def turned(hand: Hand, at: int, by: int = 16) -> None:
    """The keystream of the next block: C xor P is that of `by` bytes on."""
    out, here = hand.client.out, position()
    stream = bytes(c ^ p for c, p in zip(out[at : at + 300], PAYLOAD[here : here + 300], strict=True))
    part = PAYLOAD[here + 48 : here + 96]
    out[at + 48 : at + 96] = bytes(k ^ p for k, p in zip(stream[48 + by : 96 + by], part, strict=True))


@pytest.mark.parametrize(
    ("bend", "name", "detail", "at"),
    [
        (zeros, "zero run", "50", 40),
        (clear, "plaintext", f"payload offset {(RECORD - 3) * 300 + 40}", 40),
        (before, "replay", "stream offset 100", 40),
        (moved, "shift", "+4", 40),
        (moved_back, "shift", "+1", 40),
        (noise, "garbage", "bytes 40 to 240", 40),
        (turned, "wrong keystream", "blocks +1", 48),
    ],
)
@pytest.mark.parametrize(("version", "cipher"), ALL)
def test_ciphertext_that_is_something_else(
    tmp_path: Path, version: str, cipher: str, bend: Bend, name: str, detail: str, at: int
) -> None:
    """Zeros, plaintext, bytes from elsewhere and noise in a record have their names."""
    hand = session(version, cipher)
    bend(hand, start(hand))
    found = bent(tmp_path, hand)
    assert (found["class"], found["detail"], found["field"], found["at"]) == (name, detail, "ciphertext", at)


def test_the_keystream_of_another_record(tmp_path: Path) -> None:
    """The right plaintext under the keystream of another sequence says which."""
    hand = session("1.3")
    wrong = hand.sealed("client", 23, PAYLOAD[600:900], sequence=4)
    at = start(hand)
    hand.client.out[at : at + 300] = wrong[5:305]
    found = bent(tmp_path, hand)
    assert (found["class"], found["detail"]) == ("wrong keystream", "sequence +2")


@pytest.mark.parametrize("payload", [None, PAYLOAD[:700]], ids=["none", "too short"])
def test_without_a_payload_a_difference_is_unauthentic(tmp_path: Path, payload: bytes | None) -> None:
    """A record that cannot be compared is judged by its tag."""
    hand = session()
    hand.client.out[start(hand) + 77] ^= 8
    found = bent(tmp_path, hand, payload)
    assert (found["class"], found["field"]) == ("unauthentic", "tag")
    assert found["got"] != found["expected"]


def test_one_bit_of_the_length(tmp_path: Path) -> None:
    """A record whose length lost a bit is authentic with it put back."""
    hand = session()
    hand.client.out[hand.client.starts[RECORD] + 4] ^= 4
    found = bent(tmp_path, hand)
    assert (found["class"], found["detail"], found["field"], found["at"]) == (
        "bit flip",
        "bit 2",
        "header",
        4,
    )
    assert (found["expected"], found["got"]) == (f"{324 & 255:02x}", f"{(324 & 255) ^ 4:02x}")


@pytest.mark.parametrize(
    ("version", "kind", "bit"), [("1.2", 21, 1), ("1.2", 22, 0), ("1.3", 21, 1), ("1.3", 22, 0)]
)
def test_one_bit_of_the_type(tmp_path: Path, version: str, kind: int, bit: int) -> None:
    """Application data with a type that is one bit off is a flip in the header."""
    hand = session(version)
    hand.client.out[hand.client.starts[RECORD]] = kind
    found = bent(tmp_path, hand)
    assert (found["class"], found["detail"], found["field"], found["at"]) == (
        "bit flip",
        f"bit {bit}",
        "header",
        0,
    )
    assert found["expected"][:2] == "17" and found["got"][:2] == f"{kind:02x}"


@pytest.mark.parametrize(
    ("version", "name", "detail"), [(0x0301, "bit flip", "bit 1"), (0x0300, "lost framing", "")]
)
def test_a_protected_record_with_another_version(
    tmp_path: Path, version: int, name: str, detail: str
) -> None:
    """The version of a protected record is compared though the tag does not cover it."""
    hand = session()
    hand.client.out[hand.client.starts[RECORD] + 2] = version & 255
    found = bent(tmp_path, hand)
    assert (found["class"], found["detail"], found["field"], found["at"]) == (name, detail, "header", 2)


def test_a_nonce_that_skips(tmp_path: Path) -> None:
    """TLS 1.2 nonces go up by one; a skip is told though the record is authentic."""
    hand = Hand()
    hand.say("client", PAYLOAD[:600])
    hand.client.nonce += 1
    hand.say("client", PAYLOAD[600:])
    found = bent(tmp_path, hand.close())
    assert (found["class"], found["field"], found["at"]) == ("nonce step", "nonce", 7)
    assert (found["expected"], found["got"]) == ("8b", "8c")
    assert one(hand.verify(tmp_path))["from_client"]["different_records"] == 1


def test_a_nonce_that_was_used_before(tmp_path: Path) -> None:
    """A nonce that comes again is named for what it is."""
    hand = Hand()
    hand.say("client", PAYLOAD[:600])
    hand.client.nonce -= 1
    hand.say("client", PAYLOAD[600:])
    found = bent(tmp_path, hand.close())
    assert (found["class"], found["field"]) == ("nonce reuse", "nonce")


@pytest.mark.parametrize("version", ["1.2", "1.3"])
def test_a_record_too_short_for_nonce_and_tag(tmp_path: Path, version: str) -> None:
    """A protected record of 10 bytes is malformed."""
    hand = Hand(version)
    hand.say("client", PAYLOAD[:600])
    hand.add("client", record(23, bytes(10)))
    hand.client.sequence += 1
    hand.say("client", PAYLOAD[600:])
    found = bent(tmp_path, hand.close())
    assert (found["class"], found["field"]) == ("malformed", "length")


def test_a_record_of_zeros(tmp_path: Path) -> None:
    """An authentic TLS 1.3 record without a type inside is malformed."""
    hand = Hand("1.3")
    hand.say("client", PAYLOAD[:600])
    hand.seal("client", 0, bytes(20))
    hand.say("client", PAYLOAD[600:])
    found = bent(tmp_path, hand.close())
    assert (found["class"], found["field"]) == ("malformed", "length")


def test_padding_is_no_difference(tmp_path: Path) -> None:
    """TLS 1.3 padding is the sender's choice: compared with, not counted as data."""
    hand = Hand("1.3")
    hand.say("client", PAYLOAD, pad=100)
    found = hand.close().verify(tmp_path)
    assert found["outcome"] == "equal" and one(found)["from_client"]["sizes"] == {"300": 12, "240": 1}
