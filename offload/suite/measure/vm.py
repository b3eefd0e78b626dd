"""The simulated bench as a place to measure on: both ends and the card in one VM."""

from __future__ import annotations

from contextlib import ExitStack

from offload.card.nic import look, match
from offload.card.profile import load_all
from offload.errors import ConfigError
from offload.suite.bench.vm.lab import Lab
from offload.suite.measure.switch import keeping
from offload.suite.measure.testbed import Testbed, about


def testbed(lab: Lab, undo: ExitStack) -> Testbed:
    """The testbed of a lab that is up. ConfigError if it has no card at all."""
    dut, peer = lab.bench.dut, lab.bench.peer
    if lab.kind != "nicsim":
        raise ConfigError(f"lab {lab.name} is of kind {lab.kind}, and measure wants nicsim")
    nic = look(dut.host, dut.dev)
    found = match(nic, load_all())
    switches = undo.enter_context(keeping(dut.host, dut.dev))
    made = Testbed(
        dut, peer, peer.v4, found.profile, found.simulated, switches, undo, shared=True, emulated=True
    )
    made.about = about(dut.host, nic, {"vm": lab.rig.get("vm", ""), "qemu": lab.rig.get("qemu", "")})
    return made
