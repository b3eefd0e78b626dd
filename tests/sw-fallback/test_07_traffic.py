"""Without a NIC that offloads `lab traffic` makes connections, by software, and their payload arrives."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from offload.cmd import wait_until
from offload.suite.bench.lab.traffic import Flow, Wish
from tests.lib.rig.rig import Rig

LONG = 120  # seconds: an emulated guest with much to do


@pytest.mark.requires("tls", "ktls-handoff", "stunnel")
def test_connections_in_both_directions(rig: Rig) -> None:
    """Without a NIC that offloads a connection each way is made, goes by software, and stays."""
    with ExitStack() as undo:
        flow = Flow(rig.lab, undo)
        assert [flow.open(side) for side in Wish("both", 1, 0).sides()] == ["sw", "sw"]
        wait_until(lambda: all(taken > 0 for _, taken in flow.moved().values()), LONG, "payload each way")
        assert set(flow.moved()) == {"tx", "rx"} and flow.lost() == []
