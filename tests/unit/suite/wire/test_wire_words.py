"""The document of docs/reference/wire.md in words: what a person reads in a terminal and in a report."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from offload.suite.wire.phrases import CAUSES, PROBLEMS
from offload.suite.wire.words import first_sentence, text
from tests.lib.wire.wiredocs import AGAIN, DIFFERENCE, LEAK, different, equal, inconclusive

CONTRACT = (Path(__file__).parents[4] / "docs" / "reference" / "wire.md").read_text()


def test_equal_says_what_was_compared() -> None:
    """An equal capture is told with bytes, records and sizes; last the verdict."""
    said = text(equal(), 200).splitlines()
    assert said[2] == "192.0.2.1:40000 -> [2001:db8::2]:4433, TLS 1.2 aes-gcm-256 (c030)"
    assert said[3].split(None, 3)[3].startswith("EQUAL         1,048,576 bytes in 67 records re-encrypted")
    assert "    3 retransmitted segments (4,344 bytes), equal" in said
    assert "    record sizes: 64 x 16,384, 2 x 3,072, 1 x 10" in said
    assert said[7] == "  server -> client  AUTHENTIC     no application data"
    assert said[8] == "    2 records of handshake and alerts, every tag right"
    assert said[-1].startswith("verdict: EQUAL: 1 connection, 1,048,576 bytes of payload compared")
    assert first_sentence(equal()) == "equal: 67 application records, 1,048,576 bytes of payload compared"


def test_a_difference_is_reported_to_the_bit() -> None:
    """A difference is told with its place, field, byte, both sides and class."""
    sentence = (
        "at stream offset 123,456: record 12 (sequence 11), ciphertext byte 17: "
        f"expected {'ab' * 16}, got {'ac' + 'ab' * 15}: bit flip (bit 3)"
    )
    assert first_sentence(different()).endswith(f", client -> server: {sentence}")
    said = text(different())
    assert re.search(r"client -> server  DIFFERENT     at stream offset 123,456: record 12", said)
    assert "\n    expected abab" in said and "\n    got      acab" in said
    assert "3 of 71 records differ; 1,000,000 bytes of the others are right" in said
    assert said.splitlines()[-1] == "verdict: DIFFERENT: 1 of 1 connection"


def test_a_retransmission_that_differs_is_reported() -> None:
    """A retransmission with other bytes is a difference, alone and next to another one."""
    document = different()
    direction = document["connections"][0]["from_client"]
    direction["retransmission"] = dict(AGAIN)
    assert "\n    retransmitted with other bytes at stream offset 5,000 (frame 44): zero run\n" in text(
        document
    )
    direction["first_difference"] = None
    assert "client -> server: retransmitted with other bytes at stream offset 5,000" in first_sentence(
        document
    )
    assert "segments (4,344 bytes), equal" not in text(document)


def test_a_leak_is_the_verdict() -> None:
    """Payload in clear is told even where every record is right."""
    document = equal() | {"outcome": "different", "leak": dict(LEAK)}
    assert first_sentence(document).startswith(
        "different: payload in PLAINTEXT, outside TLS: frame 77, byte 66"
    )
    said = text(document, 200).splitlines()
    assert said[-2].endswith("(5 frames in total) has what is at payload offset 4,096")
    assert said[-1] == "verdict: DIFFERENT: plaintext payload"


def test_what_is_missing_is_reported_with_a_hint() -> None:
    """Each problem is a sentence with its place and what to do; it is never called a pass."""
    document = inconclusive(("gap", "server", 500000), ("no-key", "", 0))
    document["problems"] = [{"code": "capture-damaged", "direction": "", "at": 1234}]
    said = text(document, 200)
    assert (
        "! server -> client: bytes are missing from the capture (after stream offset 500,000) [gap]" in said
    )
    assert "! no secret for this connection in the keylog [no-key]\n    hint: did an end of this" in said
    assert "client -> server  INCONCLUSIVE  71 records, none of them decrypted" in said
    last = said.splitlines()[-1]
    assert last == "verdict: INCONCLUSIVE, which is not a pass: gap, no-key, capture-damaged"
    assert first_sentence(document).endswith("(after stream offset 500,000) [gap]")


def test_a_problem_belongs_to_its_direction() -> None:
    """A direction that is proven keeps its word when the other one has a gap."""
    document = equal()
    document["outcome"] = document["connections"][0]["outcome"] = "inconclusive"
    document["connections"][0]["problems"] = [{"code": "gap", "direction": "server", "at": 7}]
    said = text(document)
    assert "client -> server  EQUAL " in said and "server -> client  INCONCLUSIVE" in said


@pytest.mark.parametrize("document", [equal(), different(), inconclusive()])
@pytest.mark.parametrize("width", [60, 80, 200])
def test_lines_fit(document: dict[str, object], width: int) -> None:
    """Lines fit the terminal, whatever is in them; the verdict is one line."""
    lines = text(document, width).splitlines()
    assert all(len(line) <= width for line in lines[:-1])
    assert lines[-1].startswith("verdict: ") and len(lines[-1]) <= 110


def test_the_worst_connections_come_first_and_not_all() -> None:
    """Of many connections those that are not equal are shown, and the others counted."""
    document = different()
    document["connections"] = [equal()["connections"][0] for _ in range(30)] + document["connections"]
    said = text(document)
    assert said.index("DIFFERENT") < said.index("EQUAL") and "and 11 more connections" in said
    assert "at stream offset 123,456" in first_sentence(document)


def test_nothing_found_is_said() -> None:
    """A document without connections has a sentence too."""
    document = inconclusive() | {
        "connections": [],
        "problems": [{"code": "no-tls", "direction": "", "at": 0}],
    }
    assert first_sentence(document) == "inconclusive: the capture contains no TLS connection [no-tls]"
    assert text(document).endswith("which is not a pass: no-tls\n")
    document["problems"] = []
    assert first_sentence(document) == "inconclusive: nothing was proven"


def test_every_code_and_class_of_the_contract_has_words() -> None:
    """No code or class of docs/reference/wire.md goes without words, and none is invented."""
    quoted = set(re.findall(r"`([a-z]+(?:[- ][a-z]+)*)`", CONTRACT))
    rows = re.findall(r"^\| \d+ \| ([a-z ,]+?)(?: \(header\))? \|", CONTRACT, re.M)
    rules = {words for row in rows for words in row.split(", ")}
    assert {code for code in quoted if "-" in code} == {code for code in PROBLEMS if "-" in code}
    assert {code for code in PROBLEMS if "-" not in code} <= quoted
    assert len(rules) == 11 and rules | {"unauthentic", "nonce step", "nonce reuse", "differs"} <= set(CAUSES)
    assert set(CAUSES) <= rules | quoted


def test_an_unknown_code_or_class_is_shown_as_it_is() -> None:
    """A code that is newer than the words is no error."""
    assert "[new-code]" in text(inconclusive(("new-code", "client", 3)))
    document = different()
    document["connections"][0]["from_client"]["first_difference"] = DIFFERENCE | {
        "class": "odd",
        "detail": "",
    }
    assert first_sentence(document).endswith(": odd")
