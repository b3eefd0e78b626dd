"""A payload of many needles: threads of the native core share the search, the oracle searches it alone."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from random import Random

import pytest

from tests.lib.wiregen.engines import core, oracle
from tests.lib.wiregen.scene import Case
from tests.unit.suite.wire.oracle.wire_hand import Hand
from tests.unit.suite.wire.oracle.wire_make import pcap

BLOCK = Random(17).randbytes(400_000)  # 25000 needles: more than one span of 16384
PAYLOAD = BLOCK * 2 + bytes(range(64))


def case(leaked: bytes) -> Case:
    """A session that sends the begin of PAYLOAD, and a frame of no connection."""
    hand = Hand()
    hand.say("client", PAYLOAD[:2000])
    flow = hand.close().flow()
    flow.frames.append(bytes(40) + leaked)
    return Case(pcap(flow.frames), hand.keylog, PAYLOAD)


@pytest.mark.parametrize("at", [16, 399_968, 2 * len(BLOCK)])
def test_the_first_of_equal_needles_counts_with_any_number_of_threads(tmp_path: Path, at: int) -> None:
    """A needle in any span is found, and of equal ones the first is told."""
    asked = case(PAYLOAD[at : at + 32])
    wanted = oracle(asked, tmp_path / "oracle")
    assert wanted["leak"]["payload_offset"] == at and wanted["leak"]["at"] == 40
    for threads in (1, 4):
        assert core(replace(asked, threads=threads), tmp_path / "core") == wanted
