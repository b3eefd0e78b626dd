"""Without a NIC that offloads, what is asked of every queue, context and frame is true of software."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from offload.host.base import Bench
from tests.lib.life.life import KIB, Life
from tests.lib.life.many import at_once, opened
from tests.lib.rig.rig import Rig
from tests.lib.wire import frames
from tests.lib.wire.wire import watched

pytestmark = pytest.mark.requires("tls", "wire", "wire-tap")
MANY, EACH = 40, 16 * KIB


@pytest.mark.promise("wire.frames")
def test_sends_each_byte_once(
    life: Life, bench: Bench, rig: Rig, evidence: dict[str, Any], tmp_path: Path
) -> None:
    """Without a NIC each byte that TCP sends is on the wire once, and no checksum is wrong."""
    assert bench.wire is not None
    with watched(rig, {"wire": (bench.wire, bench.wire_ports[0])}, tmp_path), opened(life) as (pair,):
        pair.sends("sw frames", 512 * KIB)
        tcp = frames.tcp_counters(bench.dut.host, pair.port)
    capture = (tmp_path / "wire.pcapng").read_bytes()
    seen = [frame for frame in frames.frames(capture) if frame.source == pair.port]
    evidence.update(bytes=512 * KIB, tcp=tcp, frames=len(seen))
    frames.left_once(seen, tcp["bytes_sent"])


@pytest.mark.promise("payload.many")
def test_keeps_many_connections_right(life: Life, bench: Bench, rig: Rig, evidence: dict[str, Any]) -> None:
    """Without a NIC every byte of many connections is right that live and move payload at once, both ways."""
    before = rig.counters()
    with opened(life, MANY // 2, (bench.peer.v4, bench.peer.v6)) as pairs:
        wrong = at_once(pairs, "sw many", EACH)
        moved = rig.counters() - before
    evidence.update(bytes=2 * MANY * EACH, connections=MANY)
    assert not wrong, (
        f"at least {len(wrong)} of {MANY} connections are wrong: {list(wrong)}: {next(iter(wrong.values()))}"
    )
    assert (moved["TlsTxSw"], moved["TlsRxSw"], moved["TlsTxDevice"]) == (MANY, MANY, 0)
