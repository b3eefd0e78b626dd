"""What watches a scenario: captures beyond the card (and above it), and the kernel's trace of its records."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from tests.lib.rig.needs import unmet
from tests.lib.rig.rig import Rig
from tests.lib.scenario.space import Scenario
from tests.lib.wire.above import HEADS
from tests.lib.wire.captures import HOST
from tests.lib.wire.records_trace import Share, Trace, instance

KEPT = "scenario_trace"  # where a rig has its trace


def trace_of(rig: Rig) -> Trace:
    """The kernel's trace on the DUT; made once."""
    kept = vars(rig)
    if KEPT not in kept:
        kept[KEPT] = rig.undo.enter_context(instance(rig.bench.dut.host))
    trace: Trace = kept[KEPT]
    return trace


class Taps:
    """Captures that run until they are fetched; each frame beyond the card must be explained.

    If the DUT sends, or ends speak of congestion: also above the card, what its kernel hands down.
    `decrypts`: the card is to decrypt, so the kernel's trace says of each record whether it did.
    """

    def __init__(
        self, undo: ExitStack, rig: Rig, folder: Path, scenario: Scenario, *, decrypts: bool
    ) -> None:
        bench = rig.bench
        assert bench.wire is not None
        places = {"wire": (bench.wire, bench.wire_ports[0])}
        if scenario["direction"] != "rx" or scenario["trouble"] == "ce-mark":
            places[HOST] = (bench.dut.host, bench.dut.dev)
        traced = decrypts and not unmet(rig, ["records-trace"])
        self._trace = undo.enter_context(trace_of(rig).taken()) if traced else None
        self._taken = undo.enter_context(rig.captures.taking(places, folder, heads=HEADS))

    def by_card(self) -> Share | None:
        """What the card decrypted so far, by the kernel's word; None if it has none."""
        return self._trace.share() if self._trace else None

    def fetched(self) -> dict[str, Path]:
        """End them, with nothing lost: files by place."""
        return self._taken.files()
