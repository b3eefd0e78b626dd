"""What no kind of damage in tests/lib/wiregen says: hellos that lead nowhere, limits, two connections."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from offload.errors import ConfigError
from offload.suite.wire import streams
from offload.suite.wire.ask import Ask
from offload.suite.wire.oracle import verify
from tests.unit.suite.wire.oracle.wire_hand import (
    PAYLOAD,
    RANDOMS,
    Hand,
    codes,
    message,
    one,
    record,
)
from tests.unit.suite.wire.oracle.wire_make import Flow


def session() -> Hand:
    """A session in which the client sent PAYLOAD."""
    hand = Hand()
    hand.say("client", PAYLOAD)
    return hand.close()


def asked(folder: Path, flow: Flow, hand: Hand, payload: bytes | None = PAYLOAD, **more: Any) -> Any:
    """The document for frames that a test made."""
    return verify(Ask(flow.write(folder / "c.pcap"), hand.keylog, payload, **more))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"\3\2" + RANDOMS["server"] + b"\0\xc0\x2f\0", "version"),
        (b"\3\3" + RANDOMS["server"] + b"\0\xc0\x2f\0\0\6\0\x2b\0\2\x7f\x1c", "version"),
        (b"\3\3" + RANDOMS["server"] + b"\0\x00\x2f\0", "cipher"),
        (b"\3\3" + RANDOMS["server"] + b"\0\x13\x01\0", "cipher"),
        (b"\3\3" + RANDOMS["server"] + b"\0\xc0\x2f\0\0\6\0\x2b", "no-hello"),
        (b"\3\3" + RANDOMS["server"] + b"\x40\xc0\x2f\0", "no-hello"),
    ],
)
def test_a_server_hello_that_leads_nowhere(tmp_path: Path, body: bytes, code: str) -> None:
    """Another version, an unknown suite and a malformed hello are told apart."""
    hand = session()
    size = hand.server.starts[1]
    hand.server.out[:size] = record(22, message(2, body))
    found = hand.verify(tmp_path)
    assert found["outcome"] == "inconclusive" and codes(found)[0] == (code, "")


def test_a_message_of_128_kib_is_collected(tmp_path: Path) -> None:
    """The longest message that is allowed is no problem, whatever its records."""
    hand = Hand(finished=False)
    text = message(11, bytes((128 << 10) - 4))
    for at in range(0, len(text), 16000):
        hand.add("server", record(22, text[at : at + 16000]))
    assert codes(hand.verify(tmp_path, None)) == []


def test_a_hello_retry_request_is_passed_over(tmp_path: Path) -> None:
    """The second ServerHello counts if the first asks to try again."""
    hand = Hand("1.3", finished=False)
    retry = bytes.fromhex("cf21ad74e59a6111be1d8c021e65b891c2a211167abb8c5e079e09e2c8a8339c")
    hello = bytes(hand.server.out)
    hand.server.out[:] = hello.replace(RANDOMS["server"], retry) + record(20, b"\1") + hello
    hand.add("client", bytes(hand.client.out))
    hand.seal("client", 22, message(20, b"f" * 12))
    hand.seal("server", 22, message(20, b"f" * 12))
    found = hand.verify(tmp_path, None)
    assert found["outcome"] == "equal" and one(found)["from_server"]["protected"] == 1


def test_two_connections_and_one_payload(tmp_path: Path) -> None:
    """A payload with two TLS connections is not used; a port chooses."""
    hand, other = session(), session()
    flow = hand.flow()
    second = Flow(("192.0.2.9", 41000), ("192.0.2.2", 8443))
    second.send("client", bytes(other.client.out))
    second.send("server", bytes(other.server.out))
    second.fin()
    flow.frames += second.frames
    found = asked(tmp_path, flow, hand)
    assert [p["code"] for p in found["problems"]] == ["ambiguous-payload"]
    assert found["outcome"] == "inconclusive"
    assert [c["from_client"]["proof"] for c in found["connections"]] == ["tag", "tag"]
    assert asked(tmp_path, flow, hand, port=443)["outcome"] == "equal"
    assert asked(tmp_path, flow, hand, port=41000)["connections"][0]["server"] == "192.0.2.2:8443"


def test_caps_are_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """More connections or payload than is held is said, not guessed."""
    hand = session()
    flow = hand.flow()
    flow.frames += Flow(("192.0.2.9", 41000)).frames
    monkeypatch.setattr(streams, "MAX_CONNECTIONS", 1)
    found = asked(tmp_path, flow, hand)
    assert found["problems"] == [
        {"code": "too-many-connections", "direction": "", "at": len(flow.frames) - 1}
    ]
    monkeypatch.setattr(streams, "MAX_HELD", 1000)
    with pytest.raises(ConfigError, match="native core"):
        asked(tmp_path, flow, hand)
