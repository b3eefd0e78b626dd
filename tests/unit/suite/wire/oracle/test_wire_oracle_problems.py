"""Each problem of the contract, and what makes a verdict equal, different or inconclusive."""

from __future__ import annotations

import struct
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
    SUITES,
    Hand,
    codes,
    first,
    message,
    one,
    record,
)
from tests.unit.suite.wire.oracle.wire_make import RST, Flow, pcap

BOTH = pytest.mark.parametrize("version", ["1.2", "1.3"])


def session(version: str = "1.2") -> Hand:
    """A session in which the client sent PAYLOAD."""
    hand = Hand(version)
    hand.say("client", PAYLOAD)
    return hand.close()


def asked(folder: Path, flow: Flow, hand: Hand, payload: bytes | None = PAYLOAD, **more: Any) -> Any:
    """The document for frames that a test made."""
    return verify(Ask(flow.write(folder / "c.pcap"), hand.keylog, payload, **more))


@pytest.mark.parametrize(("version", "cipher"), SUITES)
def test_a_good_session_is_equal(tmp_path: Path, version: str, cipher: str) -> None:
    """A session of every version and cipher is equal, and counted right."""
    hand = Hand(version, cipher)
    hand.say("client", PAYLOAD)
    hand.say("server", b"answer")
    found = hand.close().verify(tmp_path, reply=b"answer")
    assert found["outcome"] == "equal" and codes(found) == []
    side = one(found)["from_client"]
    assert (side["proof"], side["payload_bytes"], side["app_records"]) == ("payload", len(PAYLOAD), 13)
    assert side["sizes"] == {"300": 12, "240": 1} and side["closed"] == "close_notify"
    assert side["epochs"] == (1 if version == "1.2" else 2)
    assert side["nonce_first"] == ("1122334455667788" if version == "1.2" and cipher != "chacha" else "")
    assert one(found)["from_server"]["payload_bytes"] == 6


def test_without_payload_the_tags_are_the_proof(tmp_path: Path) -> None:
    """A direction without a payload is authenticated, not compared."""
    found = session().verify(tmp_path, None)
    side = one(found)["from_client"]
    assert found["outcome"] == "equal" and side["proof"] == "tag"
    assert side["payload_bytes"] == 0 and side["authentic_bytes"] == len(PAYLOAD) + 16 + 2


def test_no_hello(tmp_path: Path) -> None:
    """A capture that began after the handshake proves nothing."""
    hand = session()
    del hand.client.out[: hand.client.starts[1]]
    hand.client.starts = [s - hand.client.starts[1] for s in hand.client.starts[1:]]
    found = hand.verify(tmp_path)
    assert found["outcome"] == "inconclusive" and codes(found)[0] == ("no-hello", "")
    assert one(found)["version"] == "" and one(found)["from_client"]["proof"] == "none"


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


@BOTH
def test_no_key(tmp_path: Path, version: str) -> None:
    """The keys of another connection do not help."""
    hand = session(version)
    other = hand.keylog.replace(RANDOMS["client"].hex().encode(), b"00" * 32)
    found = hand.verify(tmp_path, keylog=other)
    assert found["outcome"] == "inconclusive"
    assert codes(found) == [("no-key", ""), ("payload-not-covered", "client")]
    assert one(found)["version"] == version and one(found)["cipher"] == "aes-gcm-128"


def test_no_syn(tmp_path: Path) -> None:
    """A connection whose SYN was missed may lack its first bytes."""
    hand = session()
    flow = hand.flow()
    del flow.frames[:2]
    found = asked(tmp_path, flow, hand)
    assert found["outcome"] == "inconclusive" and codes(found) == [("no-syn", "client"), ("no-syn", "server")]


def test_a_gap(tmp_path: Path) -> None:
    """A segment that was not captured leaves a gap, never an equal."""
    hand = session()
    flow = hand.flow()
    del flow.frames[6]
    found = asked(tmp_path, flow, hand)
    assert found["outcome"] == "inconclusive"
    assert [c for c, _ in codes(found)] == ["gap", "payload-not-covered"]
    assert one(found)["problems"][0]["at"] == one(found)["from_client"]["bytes"]


@pytest.mark.parametrize(("rst", "code"), [(True, "reset"), (False, "no-close")])
def test_an_end_without_fin(tmp_path: Path, rst: bool, code: str) -> None:
    """A direction without FIN may go on, unless its payload is proven to the end."""
    hand = session()
    flow = hand.flow(fin=False)
    if rst:
        flow.frame("client", flow.sent["client"], RST)
        flow.frame("server", flow.sent["server"], RST)
    assert codes(asked(tmp_path, flow, hand)) == [(code, "server")]
    assert codes(asked(tmp_path, flow, hand, None)) == [(code, "client"), (code, "server")]


def test_data_after_fin(tmp_path: Path) -> None:
    hand = session()
    flow = hand.flow()
    flow.send("client", b"more")
    found = asked(tmp_path, flow, hand)
    assert codes(found) == [("data-after-fin", "client")] and found["outcome"] == "inconclusive"
    assert one(found)["problems"][0]["at"] == one(found)["from_client"]["bytes"] - 4


def test_an_alert_in_clear(tmp_path: Path) -> None:
    """An alert before protection is told."""
    hand = Hand(finished=False)
    hand.add("server", record(21, b"\2\x28"))
    found = hand.verify(tmp_path, None)
    assert codes(found) == [("clear-alert", "server")] and found["outcome"] == "inconclusive"
    assert one(found)["problems"][0]["at"] == hand.server.starts[-1]


@pytest.mark.parametrize("kind", [1, 11])
def test_a_handshake_message_that_is_too_long(tmp_path: Path, kind: int) -> None:
    """A message of more than 128 KiB is not collected; a certificate only costs the verdict."""
    hand = Hand(finished=False)
    hand.add("client", record(22, bytes([kind, 2, 0, 0]) + bytes(100)))
    if kind == 1:
        hand.client.out[: hand.client.starts[1]] = b""
        hand.client.starts = [0, 104]
    found = hand.verify(tmp_path, None)
    assert ("handshake-too-long", "client") in codes(found) and found["outcome"] == "inconclusive"


def test_a_message_of_128_kib_is_collected(tmp_path: Path) -> None:
    """The longest message that is allowed is no problem, whatever its records."""
    hand = Hand(finished=False)
    text = message(11, bytes((128 << 10) - 4))
    for at in range(0, len(text), 16000):
        hand.add("server", record(22, text[at : at + 16000]))
    assert codes(hand.verify(tmp_path, None)) == []


def test_renegotiation(tmp_path: Path) -> None:
    """A second change of cipher ends what can be verified."""
    hand = Hand()
    hand.say("client", PAYLOAD[:600])
    hand.add("client", record(20, b"\1"))
    found = hand.verify(tmp_path)
    assert codes(found) == [("renegotiation", "client"), ("payload-not-covered", "client")]
    assert found["outcome"] == "inconclusive" and one(found)["from_client"]["payload_bytes"] == 600


def test_early_data(tmp_path: Path) -> None:
    """0-RTT data of the client are told, and not taken for damage."""
    hand = session("1.3")
    hand.client.out[hand.client.starts[2] + 9] ^= 1
    line = f"CLIENT_EARLY_TRAFFIC_SECRET {RANDOMS['client'].hex()} {'00' * 32}\n".encode()
    found = hand.verify(tmp_path, None, keylog=hand.keylog + line)
    assert codes(found) == [("early-data", "client")] and found["outcome"] == "inconclusive"
    assert hand.verify(tmp_path, None)["outcome"] == "different"


@BOTH
def test_an_incomplete_record_before_fin(tmp_path: Path, version: str) -> None:
    """A stream that ends inside a record is a truncation."""
    hand = session(version)
    del hand.client.out[-7:]
    found = hand.verify(tmp_path)
    assert (first(found)["class"], first(found)["field"]) == ("truncation", "length")
    assert first(found)["offset"] == hand.client.starts[-1]


@BOTH
def test_a_payload_that_is_longer(tmp_path: Path, version: str) -> None:
    """A closed stream that lacks payload is a truncation: where, and what should come."""
    found = session(version).verify(tmp_path, PAYLOAD + b"and more")
    assert (first(found)["class"], first(found)["field"]) == ("truncation", "payload")
    assert (first(found)["at"], first(found)["expected"]) == (len(PAYLOAD), b"and more".hex())


def test_a_payload_of_which_nothing_was_seen(tmp_path: Path) -> None:
    """A payload for a direction without a byte is not covered."""
    hand = session()
    flow = hand.flow()
    found = asked(tmp_path, flow, hand, reply=b"x")
    assert first(found, "from_server")["class"] == "truncation"
    flow.frames = [f for f in flow.frames if f[34:36] != struct.pack(">H", 443)]
    assert ("payload-not-covered", "server") in codes(asked(tmp_path, flow, hand, reply=b"x"))


@BOTH
def test_a_payload_that_is_shorter(tmp_path: Path, version: str) -> None:
    """Application data beyond the payload are an excess, in each record that has some."""
    found = session(version).verify(tmp_path, PAYLOAD[:3500])
    assert (first(found)["class"], first(found)["field"], first(found)["at"]) == ("excess", "payload", 3500)
    assert first(found)["got"] == PAYLOAD[3500:3516].hex()
    assert one(found)["from_client"]["different_records"] == 2


def test_a_key_update(tmp_path: Path) -> None:
    """A KeyUpdate in TLS 1.3 begins the next epoch, with sequence 0."""
    hand = Hand("1.3")
    hand.say("client", PAYLOAD[:600])
    hand.seal("client", 22, message(24, b"\0"))
    hand.client.epoch, hand.client.sequence = 2, 0
    hand.say("client", PAYLOAD[600:])
    found = hand.close().verify(tmp_path)
    assert found["outcome"] == "equal" and one(found)["from_client"]["epochs"] == 3


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


def test_a_finished_in_parts(tmp_path: Path) -> None:
    """The epoch changes with the record that ends Finished, not before."""
    hand = Hand("1.3", finished=False)
    text = message(11, bytes(20000)) + message(20, b"f" * 12)
    for at in range(0, len(text), 9000):
        hand.seal("client", 22, text[at : at + 9000])
    hand.client.epoch, hand.client.sequence = 1, 0
    hand.say("client", PAYLOAD)
    found = hand.close("client").verify(tmp_path)
    assert found["outcome"] == "equal" and one(found)["from_client"]["epochs"] == 2


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


def test_no_tls(tmp_path: Path) -> None:
    """A capture without TLS is inconclusive; a plain connection is counted."""
    flow = Flow()
    flow.send("client", b"GET / HTTP/1.0\r\n\r\n")
    found = asked(tmp_path, flow, Hand(), None)
    assert [p["code"] for p in found["problems"]] == ["no-tls"] and found["outcome"] == "inconclusive"
    assert found["connections"] == [] and found["capture"]["not_tls"] == 1


def test_a_damaged_capture(tmp_path: Path) -> None:
    """A file that ends inside a frame is told; what came before is used."""
    hand = session()
    (tmp_path / "c.pcap").write_bytes(pcap(hand.flow().frames)[:-3])
    found = verify(Ask(tmp_path / "c.pcap", hand.keylog, PAYLOAD))
    assert found["problems"] == [{"code": "capture-damaged", "direction": "", "at": len(hand.flow().frames)}]
    assert found["capture"]["frames"] == len(hand.flow().frames) - 1
    assert one(found)["from_client"]["payload_bytes"] == len(PAYLOAD)


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
