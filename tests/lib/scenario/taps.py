"""The captures of a scenario: beyond the card, and at its host port where that says what TSO was given."""

from __future__ import annotations

import uuid
from contextlib import ExitStack
from pathlib import Path

from offload.host.base import Bench
from offload.traffic.tap import capturing
from tests.lib.scenario.space import Scenario


class Taps:
    """Captures that run until they are fetched."""

    def __init__(self, undo: ExitStack, bench: Bench, folder: Path, scenario: Scenario) -> None:
        assert bench.wire is not None
        places = {"wire": (bench.wire, bench.wire_ports[0])}
        if scenario["place"] == "hundreds-in-tso":
            places["host"] = (bench.dut.host, bench.dut.dev)
        self._folder, name = folder, f"/run/ktls-offload-{uuid.uuid4().hex[:8]}"
        self._taps = {
            place: undo.enter_context(capturing(host, dev, f"{name}-{place}.pcapng"))
            for place, (host, dev) in places.items()
        }

    def fetched(self) -> dict[str, Path]:
        """End them, with nothing lost: files by place."""
        for place, tap in self._taps.items():
            tap.fetch(self._folder / f"{place}.pcapng")
        return {place: self._folder / f"{place}.pcapng" for place in self._taps}
