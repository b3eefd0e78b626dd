"""The simulated card goes away under a live connection and leaves nothing behind."""

from __future__ import annotations

import pytest

from offload.card.profile import Cell
from offload.suite.traffic.drive import send, sending, take
from tests.lib.flow.flow import Traffic
from tests.lib.rig.rig import Labs


def test_unload_under_a_live_connection(pytestconfig: pytest.Config, labs: Labs) -> None:
    """Without a warning or a leak the module is unloaded while a connection is offloaded both ways."""
    if pytestconfig.getoption("--attach"):
        pytest.skip("takes the card out of the lab: not in a lab that somebody else uses")
    rig = labs.get("nicsim")
    traffic, mark = Traffic(rig), rig.lab.console_mark()
    dut = rig.bench.dut
    dut.host.run(["ethtool", "-K", dut.dev, "tls-hw-tx-offload", "on", "tls-hw-rx-offload", "on"])
    plan = sending("unload", 1 << 20, 65536, gate=8)
    with traffic.behind_stunnel(take()) as (port, _):
        near = traffic.dut.pump.handoff(
            traffic.argv(Cell("tx", "1.2", "aes-gcm-128"), port, want="both"), send(plan)
        )
        line = near.opened()
        assert line is not None and (line.tx, line.rx) == ("hw", "hw"), "nothing was offloaded"
        near.at_gate()
        unload = rig.lab.root.run(["rmmod", "nicsim"], check=False, timeout=600)
        gone = dut.host.run(["test", "-e", f"/sys/class/net/{dut.dev}"], check=False).rc == 1
        near.give_up()
    faults = rig.lab.console_faults(mark)
    labs.close()  # the bench is gone; the next test boots its own
    assert unload.rc == 0, unload.stderr.decode()
    assert gone and faults == []
