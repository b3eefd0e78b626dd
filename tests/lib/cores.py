"""Arms in turns on a rig: a bed with the rig's own pumps, and what a measuring document has to be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from offload.host.base import Bench
from offload.measure_bed import Bed, about
from offload.measure_plan import Plan, Setting
from offload.measure_run import measure
from offload.measure_switch import keeping, steady
from offload.nic import look
from tests.lib.rig import Rig
from tests.lib.ways import in_lab


def played(bench: Bench) -> bool:
    """Say whether figures by time are of no card: in a lab, and on hosts whose card is a simulated one."""
    return bench.simulated or in_lab(bench)


@contextmanager
def bed_of(rig: Rig) -> Iterator[Bed]:
    """The rig as a place to measure on; features and governor come back."""
    dut, peer = rig.bench.dut, rig.bench.peer
    with ExitStack() as undo:
        switches = undo.enter_context(keeping(dut.host, dut.dev))
        lab = played(rig.bench)  # its figures are labelled
        bed = Bed(dut, peer, peer.v4, rig.profile, lab, switches, undo, shared=lab, emulated=lab)
        bed.port = rig.port + 1000
        bed.ends = {"dut": rig.end("dut"), "peer": rig.end("peer")}
        bed.about = about(dut.host, look(dut.host, dut.dev), {})
        bed.about["governor"], warning = undo.enter_context(steady(dut.host))
        bed.add(warning)
        if not lab:
            bed.count_cycles()
        yield bed


def measured(rig: Rig, arms: Sequence[str], *settings: Setting) -> dict[str, Any]:
    """The document of these arms: one short turn each where no card is, at the first setting; else pairs.

    Raises NoFigure if an arm was not what its name says, or payload was lost.
    """
    once = played(rig.bench)
    plan = Plan(tuple(arms), settings[:1], 0.4, 1, 0) if once else Plan(tuple(arms), settings, 3.0, 5, 1)
    with bed_of(rig) as bed:
        found = measure(bed, plan)
        rig.port = bed.port
    return found


def sound(found: Mapping[str, Any], arms: Sequence[str]) -> None:
    """Every arm has a row with traffic and CPU behind it; what was skipped has a reason."""
    skipped = {row["arm"] for row in found["skipped"]}
    assert all(row["reason"] for row in found["skipped"]), found["skipped"]
    assert {row["arm"] for row in found["rows"]} == set(arms) - skipped, (found["skipped"], arms)
    for row in found["rows"]:
        assert row["samples"], f"arm {row['arm']} has no sample"
        for sample in row["samples"]:
            assert sample["bytes"] > 0 and sample["seconds"] > 0 and sample["cores"] > 0, (row["arm"], sample)
