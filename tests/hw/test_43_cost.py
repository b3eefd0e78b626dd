"""This NIC takes the work off the host: a write costs the DUT less CPU time than where software encrypts."""

from __future__ import annotations

from statistics import quantiles
from typing import Any

import pytest

from offload.counters import Delta
from tests.lib.life import KIB, Life, arrived
from tests.lib.many import opened
from tests.lib.rig import Rig
from tests.lib.switch import Switch

# The time of an emulated processor goes on while its host does something else: on a busy host a good card has
# been seen at 1.13. A simulated card has to cost twice as much to fail; test_51 counts instructions, exactly.
SIMULATED = 2.0
WRITE, WRITES, ROUNDS = 8 * KIB, 15, 4  # a write fits into the first window: ten segments of 1448 bytes


def cost(life: Life, rig: Rig, name: str) -> tuple[list[int], Delta]:
    """Nanoseconds of each write on a connection of its own, with every byte whole; and what was counted."""
    before, size = rig.counters(), WRITE * WRITES
    with opened(life) as (pair,):
        sent = pair.near.begin("pace", seed=name, size=size, write=WRITE)
        arrived(pair.far.take(size), name, size)
        nanos = pair.near.crowd.end(sent)["nanos"]
    return nanos, rig.counters() - before


@pytest.mark.once
@pytest.mark.promise("cpu.write")
@pytest.mark.requires("tls")
def test_write_costs_less_than_software(
    life: Life, rig: Rig, offload: Switch, evidence: dict[str, Any]
) -> None:
    """This NIC takes the encryption off the host: a write costs its task less CPU than by software.

    The lower quartile of many short writes, in turns: what else runs on the machine only adds.
    """
    took: dict[str, list[int]] = {"hw": [], "sw": []}
    for turn in range(ROUNDS):
        for who, counter in (("hw", "TlsTxDevice"), ("sw", "TlsTxSw")):
            offload.set(tx=who == "hw")
            nanos, moved = cost(life, rig, f"cost {who} {turn}")
            assert moved[counter] == 1, (
                f"switched for {who}, and the connection is another: {moved.nonzero('Tls')}"
            )
            took[who] += nanos
    low = {who: round(quantiles(nanos, n=4)[0]) for who, nanos in took.items()}
    evidence.update(nanoseconds_per_write=low, write_bytes=WRITE, ratio=round(low["hw"] / low["sw"], 3))
    allowed = low["sw"] * (SIMULATED if rig.bench.simulated else 1.0)
    assert low["hw"] < allowed, (
        f"a write of {WRITE} bytes costs {low} ns: with this card more than by software"
    )
