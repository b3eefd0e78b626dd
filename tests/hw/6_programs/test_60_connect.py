"""This NIC encrypts on a socket that a resident handed over, and the answer names it."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.profile import Cell
from offload.cmd import wait_until
from offload.suite.traffic import handoff
from offload.suite.traffic.drive import send, sending, take
from tests.lib.flow import proof
from tests.lib.flow.flow import Traffic
from tests.lib.rig.switch import Switch

TX = Cell("tx", "1.2", "aes-gcm-128")


@pytest.mark.once
@pytest.mark.promise("tools.honest")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel")
def test_encrypts_on_a_socket_of_a_resident(
    traffic: Traffic, offload: Switch, evidence: dict[str, Any]
) -> None:
    """This NIC encrypts what is written to a socket of a resident, whose answer says so by its name."""
    offload.on()
    plan, dut = sending("resident", 1 << 18), traffic.dut
    path = f"{dut.at.folder}/connect.sock"
    before, host = traffic.rig.counters(), dut.side.host
    home = host.start(handoff.serve(path, dut.at, version=TX.version, cipher=TX.cipher))
    try:
        wait_until(lambda: host.run(["test", "-S", path], check=False).rc == 0, 60, "the resident to listen")
        with traffic.behind_stunnel(take()) as (port, far):
            how = {"version": TX.version, "cipher": TX.cipher}
            asks = handoff.ask(path, dut.at, traffic.address(4), port, **how)
            near = dut.pump.handoff(asks, send(plan))
            flow = traffic.ended(near, far, before)
        proof.note(evidence, flow, plan, "hw")
        evidence["by"] = {"tx": flow.line.tx_by, "rx": flow.line.rx_by}
        proof.handed_over(flow, TX)
        proof.intact(flow.far, plan)
        proof.sent_by_card(flow, plan)
        assert flow.line.tx_by == dut.side.dev, f"the answer names {flow.line.tx_by!r}, not {dut.side.dev!r}"
        assert home.output() == (b"", b""), f"the resident said {home.output()}"
    finally:
        home.kill()
        home.wait(120)
