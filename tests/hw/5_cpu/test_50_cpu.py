"""This NIC takes TLS off the host's cores: arm by arm, each proved to be what its name says."""

from __future__ import annotations

from typing import Any

import pytest

from offload.suite.measure.plan import FILES, Setting
from offload.suite.measure.table import grouped, ratios
from tests.lib.flow.cores import measured, sound
from tests.lib.rig.rig import Rig

pytestmark = [pytest.mark.promise("cpu.saving"), pytest.mark.requires("tls", "ktls-handoff", "stunnel")]
# by time: on a simulated bench the emulated cores do the card's work too, so that only the method is tested
LEAST = 25.0  # percent of software's cores per 100 Gbit/s, on a real bench; ConnectX-6 Dx, published: 39
ARMS = {"tx": ("user", "sw", "hw", "hw-zc", "plain"), "rx": ("sw", "hw", "plain")}
# throughput by streams and the break-even map, in a quarter of an hour; a lab takes the first of each
SWEEPS = {
    "iperf3": [Setting("iperf3", "tx", streams, None) for streams in (1, 8, 64)],
    "nginx": [Setting("nginx", "tx", n, size) for n in (1, 8, 64, 1024) for size in (FILES[1], *FILES)],
}


def pair(rig: Rig) -> tuple[str, ...]:
    """Return the arms that a saving needs; where none is worked out, the card's alone: it is quicker."""
    return ("hw",) if rig.bench.simulated else ("sw", "hw")


def saved(found: dict[str, Any], evidence: dict[str, Any]) -> None:
    """On a real bench, at the first setting: offload needs as many cores less as make it worth having."""
    by = {row["arm"]: row for row in grouped(found["rows"])[0]}
    if found["simulated"] or not {"sw", "hw"} <= by.keys():
        return
    ratio = next(ratio for ratio in ratios([by["sw"], by["hw"]]) if ratio.arm == "hw")
    evidence["saving_percent"] = round(100 * (1 - ratio.ratio), 1)
    assert ratio.differ and ratio.high < 1, ratio.say()
    assert evidence["saving_percent"] >= LEAST, f"{ratio.say()}; wanted {LEAST:g} %"


@pytest.mark.once
@pytest.mark.parametrize("direction", ["tx", "rx"])
def test_offload_saves_cores(rig: Rig, evidence: dict[str, Any], direction: str) -> None:
    """This NIC does the TLS of the offload arms and of no other, with fewer cores than software."""
    found = measured(rig, ARMS[direction], Setting("stream", direction, 1, None))
    evidence["cpu"] = found
    sound(found, ARMS[direction])
    saved(found, evidence)


@pytest.mark.once
def test_without_segmentation_offloads(rig: Rig, evidence: dict[str, Any]) -> None:
    """This NIC encrypts several connections at once without TSO, GSO and GRO too, which come back after."""
    found = measured(rig, pair(rig), Setting("stream", "tx", 2, 16384, segmentation=False))
    evidence["cpu"] = found
    sound(found, pair(rig))


@pytest.mark.once
@pytest.mark.parametrize("program", [pytest.param(name, marks=pytest.mark.requires(name)) for name in SWEEPS])
def test_programs_use_the_offload(rig: Rig, evidence: dict[str, Any], program: str) -> None:
    """This NIC encrypts for programs that people know: iperf3-tls, and nginx asked by wrk."""
    found = measured(rig, pair(rig), *dict.fromkeys(SWEEPS[program]))
    evidence["cpu"] = found
    sound(found, pair(rig))
    saved(found, evidence)
