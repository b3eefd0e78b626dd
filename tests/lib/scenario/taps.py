"""The captures of a scenario: beyond the card, and at its host port where that says what TSO was given."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from tests.lib.captures import HOST
from tests.lib.rig import Rig
from tests.lib.scenario.space import Scenario


class Taps:
    """Captures that run until they are fetched; each frame beyond the card has to be explained."""

    def __init__(self, undo: ExitStack, rig: Rig, folder: Path, scenario: Scenario) -> None:
        bench = rig.bench
        assert bench.wire is not None
        places = {"wire": (bench.wire, bench.wire_ports[0])}
        if scenario["place"] == "hundreds-in-tso":
            places[HOST] = (bench.dut.host, bench.dut.dev)
        self._taken = undo.enter_context(rig.captures.taking(places, folder))

    def fetched(self) -> dict[str, Path]:
        """End them, with nothing lost: files by place."""
        return self._taken.files()
