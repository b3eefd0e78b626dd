"""iperf3-tls: its command by arm, and its JSON read as hostile."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

from offload.errors import RigError
from offload.host.base import Completed
from offload.host.local import LocalHost
from offload.suite.traffic.iperf3 import argv, parse, vacant, words


def stream(sender: bool, sent: int, taken: int, tls: dict[str, Any] | None) -> dict[str, Any]:
    """One stream of `end` as libiperf 3.12 prints it."""
    side = {"seconds": 2.0, "sender": sender}
    found: dict[str, Any] = {"sender": {**side, "bytes": sent}, "receiver": {**side, "bytes": taken}}
    return found | ({"tls": tls} if tls else {})


def answer(*rows: dict[str, Any], rc: int = 0, **more: Any) -> Completed:
    """What a client printed."""
    text = json.dumps({"end": {"streams": list(rows)}, **more})
    return Completed(("iperf3-tls",), rc, text.encode(), b"", 2.0, "dut")


def test_commands() -> None:
    """Each arm and direction has its options, plain TCP none of TLS."""
    hw = argv("192.0.2.2", 5300, "hw-zc", "both", 8, 2.4, size=65536)
    assert hw[1:] == [
        "-c",
        "192.0.2.2",
        "-p",
        "5300",
        "-J",
        "-t",
        "2",
        "-P",
        "8",
        "--bidir",
        "-l",
        "65536",
        "--tls=1.2",
        "--tls-ciphers=ECDHE-ECDSA-AES128-GCM-SHA256",
        "--ktls=both",
        "-Z",
    ]
    assert argv("192.0.2.2", 1, "user", "rx", 1, 0.2)[5:] == [
        "-J",
        "-t",
        "1",
        "-P",
        "1",
        "-R",
        "--tls=1.2",
        "--tls-ciphers=ECDHE-ECDSA-AES128-GCM-SHA256",
        "--ktls=off",
    ]
    assert not [
        word for word in argv("192.0.2.2", 1, "plain", "tx", 1, 5) if "tls" in word and "/" not in word
    ]


def test_both_directions() -> None:
    """Bytes count where they were received, by the direction of their stream."""
    tls = {"tx": "hw", "rx": "sw", "zerocopy_sendfile": True}
    found = parse(answer(stream(True, 1000, 900, tls), stream(False, 500, 400, {**tls, "tx": "sw"})))
    assert (found.sent, found.received, found.bytes, found.seconds) == (900, 400, 1300, 2.0)
    assert (found.tx, found.rx, found.zerocopy) == (("hw",), ("sw",), True) and words(found) == ["hw", "sw"]


def test_plain_has_no_tls() -> None:
    """A stream without a tls object is plain TCP."""
    found = parse(answer(stream(True, 10, 10, None)))
    assert (found.tx, found.rx, found.zerocopy) == (("none",), (), False)


@pytest.mark.parametrize(
    ("done", "why"),
    [
        (Completed(("x",), 3, b"", b"kTLS send refused\n", 0.1, "dut"), "exit 3 .dut.: kTLS send refused"),
        (answer(stream(True, 1, 1, None), error="unable to connect"), "unable to connect"),
        (Completed(("x",), 0, b"{", b"", 0.1), "iperf3-tls, exit 0"),
        (Completed(("x",), 0, b"[]", b"", 0.1), "iperf3-tls, exit 0"),
        (answer(), "a result without streams"),
        (answer({"sender": {}}), "JSON without the expected fields: KeyError"),
        (answer(stream(True, 1, -5, None)), "-5 is not a byte count"),
        (answer(stream(True, 1, True, None)), "True is not a byte count"),
        (answer({"sender": 3}), "TypeError"),
    ],
)
def test_hostile_answers(done: Completed, why: str) -> None:
    """An answer that failed, or makes no sense, is one line with the program's own words."""
    with pytest.raises(RigError, match=why):
        parse(done)


def test_a_port_of_others_is_no_server_of_ours() -> None:
    """A port on which another program listens is told; when it has ended the port is ours."""
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(RigError, match=rf"port {port} of .* to be free: `ss -tlnp sport = :{port}`"):
            vacant(LocalHost(), port, 0.1)
    vacant(LocalHost(), port)
