"""The oracle on real sessions of OpenSSL."""

from __future__ import annotations

import random
import ssl
from pathlib import Path

import pytest

from offload.suite.wire.ask import Ask
from offload.suite.wire.oracle import verify
from tests.unit.suite.wire.oracle.wire_make import Talk

PAYLOAD = random.Random(3).randbytes(100_000)
V12, V13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


@pytest.mark.parametrize(
    ("version", "ciphers", "cipher", "suite"),
    [
        (V12, "ECDHE-ECDSA-AES128-GCM-SHA256", "aes-gcm-128", "c02b"),
        (V12, "ECDHE-ECDSA-AES256-GCM-SHA384", "aes-gcm-256", "c02c"),
        (V12, "ECDHE-ECDSA-CHACHA20-POLY1305", "chacha20-poly1305", "cca9"),
        (V13, "", "aes-gcm-256", "1302"),
    ],
)
def test_a_real_session_is_equal(
    tmp_path: Path, version: ssl.TLSVersion, ciphers: str, cipher: str, suite: str
) -> None:
    """What OpenSSL sent is what a correct sender would have sent, both ways."""
    talk = Talk(tmp_path, version, ciphers)
    talk.say("client", PAYLOAD)
    talk.say("server", PAYLOAD[:5000])
    keylog = talk.close()
    capture = talk.flow.write(tmp_path / "c.pcap")
    found = verify(Ask(capture, keylog, PAYLOAD, PAYLOAD[:5000]))
    (one,) = found["connections"]
    assert found["outcome"] == one["outcome"] == "equal", found
    assert (one["cipher"], one["suite"], one["problems"]) == (cipher, suite, [])
    assert one["from_client"]["payload_bytes"] == len(PAYLOAD)
    assert one["from_client"]["closed"] == one["from_server"]["closed"] == "close_notify"
