"""A scenario's connections on the wire: a capture that begins too late says nothing of the card."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from offload.errors import RigError
from tests.lib.life.life import End, Pair
from tests.lib.scenario.connections import Burst, Line, tracks
from tests.lib.scenario.space import cell_of
from tests.lib.scenario.verdict.blame import Unseen
from tests.lib.scenario.wire import proven, talked
from tests.unit.suite.wire.oracle.wire_make import ACK, SYN, Flow

CELL = cell_of("1.2-aes-gcm-128", "tx")
BURST = Burst("one record", (4000,))


def line_of(port: int) -> Line:
    """A connection on which the DUT sent one record, and the peer none."""
    end = End(None, 0)  # type: ignore[arg-type]
    line = Line(Pair(end, end, port), tracks("secret", port, CELL, 0), CELL)
    line.tracks["tx"].bursts = [BURST]
    return line


def record(line: Line, flip: int = 0) -> bytes:
    """That record as it is on the wire (RFC 5288 section 3), with a bit flipped or none."""
    key, nonce = line.tracks["tx"].key, bytes(8)
    head = struct.pack("!QBHH", 0, 23, 0x0303, BURST.total)
    body = AESGCM(key.key).encrypt(key.salt + nonce, BURST.content(), head)
    return struct.pack("!BHH", 23, 0x0303, 8 + len(body)) + nonce + body[:-1] + bytes([body[-1] ^ flip])


def judged(folder: Path, *, begins: bool, flip: int = 0) -> None:
    """Judge a capture that has the SYN of both sides, or of the DUT only."""
    flow = Flow(syn=False)
    line = line_of(flow.ends["client"][0][1])
    flow.frame("client", -1, SYN)
    if begins:
        flow.frame("server", -1, SYN | ACK)
    flow.send("client", record(line, flip))
    flow.frame("server", 0)
    proven(talked(flow.write(folder / "c.pcap"), {line.port}), line, ("tx", "rx"), old=False)


def test_a_whole_capture_is_proven(tmp_path: Path) -> None:
    """Each byte, and nothing is wrong."""
    judged(tmp_path, begins=True)


def test_a_missing_beginning_is_the_rigs(tmp_path: Path) -> None:
    """Who captured too late broke the rig; no assertion fails."""
    with pytest.raises(Unseen, match=r"port 40000: inconclusive.*\[no-syn\]") as ended:
        judged(tmp_path, begins=False)
    assert isinstance(ended.value, RigError)


def test_a_wrong_record_is_the_cards_without_a_beginning(tmp_path: Path) -> None:
    """What differs differs, wherever the capture begins."""
    with pytest.raises(AssertionError, match="different"):
        judged(tmp_path, begins=False, flip=1)


@pytest.mark.parametrize("there", [True, False])
def test_a_connection_that_nobody_made_is_named(there: bool, tmp_path: Path) -> None:
    """By its port: one that no connection has, or one that two have."""
    flows = [Flow(), Flow(("192.0.2.1", 40000 if there else 40001), ("192.0.2.2", 444))]
    for flow in flows:
        flow.send("client", b"data")
    flows[0].frames += flows[1].frames
    with pytest.raises(AssertionError, match=rf"nobody made: ports \[{40000 if there else 40001}\]"):
        talked(flows[0].write(tmp_path / "c.pcap"), {40000})
