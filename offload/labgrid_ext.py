"""What labgrid knows of a bench: `imports: [offload.labgrid_ext]` in an environment file, for your own tests.

Our own commands do not need it: an exporter passes classes through that it does not know, and
`certify --all-benches` reads them from the coordinator. labgrid 26; the extra `lab`.
"""

from __future__ import annotations

import json
import shlex
from typing import Any

import attr
from labgrid.driver import Driver
from labgrid.factory import target_factory
from labgrid.protocol import CommandProtocol
from labgrid.resource import Resource
from labgrid.step import step
from labgrid.strategy import Strategy, StrategyError

LIMIT = 60.0  # seconds for one command on the host


@target_factory.reg_resource
@attr.s(eq=False)
class OffloadNic(Resource):
    """A port under test; `pci`, `profile` may be ''; v4 and v6 with prefix length."""

    ifname = attr.ib(validator=attr.validators.instance_of(str))
    pci = attr.ib(default="", validator=attr.validators.instance_of(str))
    profile = attr.ib(default="", validator=attr.validators.instance_of(str))
    v4 = attr.ib(default="", validator=attr.validators.instance_of(str))
    v6 = attr.ib(default="", validator=attr.validators.instance_of(str))


@target_factory.reg_resource
@attr.s(eq=False)
class OffloadHost(Resource):
    """How a host identifies itself (public keys, as in /etc/ssh/*.pub), and where in it the port lives."""

    hostkeys = attr.ib(factory=list, validator=attr.validators.instance_of(list))
    netns = attr.ib(default="", validator=attr.validators.instance_of(str))
    sudo = attr.ib(default=False, validator=attr.validators.instance_of(bool))


@target_factory.reg_resource
@attr.s(eq=False)
class OffloadWire(Resource):
    """The two ports of a wire box: towards the DUT, towards the peer."""

    ports = attr.ib(factory=list, validator=attr.validators.instance_of(list))


@target_factory.reg_resource
@attr.s(eq=False)
class OffloadVm(Resource):
    """A bench in a VM: the name of a lab that is up (`ktls-offload lab up --name NAME`)."""

    lab = attr.ib(validator=attr.validators.instance_of(str))


@target_factory.reg_driver
@attr.s(eq=False)
class OffloadNicDriver(Driver):
    """ktls-offload on the host of a port, through any shell of labgrid. At the end it is as it was found."""

    bindings = {"nic": "OffloadNic", "shell": CommandProtocol}
    program = attr.ib(default="ktls-offload", validator=attr.validators.instance_of(str))
    _touched = attr.ib(default=False, init=False)

    def on_deactivate(self) -> None:
        """Put the switches back before the shell goes away."""
        if self._touched:
            self._run("restore")
            self._touched = False

    def _run(self, *words: str) -> str:
        argv = [self.program, *words, self.nic.ifname]
        return "\n".join(self.shell.run_check(shlex.join(argv), timeout=LIMIT))

    @Driver.check_active
    @step()
    def enable(self) -> None:
        """Switch offload on, by the card's profile. ExecutionError with the command's words if refused."""
        self._touched = True
        self._run("enable")

    @Driver.check_active
    @step()
    def disable(self) -> None:
        """Switch offload off."""
        self._touched = True
        self._run("disable")

    @Driver.check_active
    @step(result=True)
    def status(self) -> Any:
        """What `ktls-offload status --json` says of the port."""
        return json.loads(self._run("status", "--json"))


@target_factory.reg_driver
@attr.s(eq=False)
class OffloadStrategy(Strategy):
    """States of a port: `found` (as it was), `on`, `off`."""

    bindings = {"nic": "OffloadNicDriver"}
    status = attr.ib(default="found", init=False)

    @step(args=["status"])
    def transition(self, status: str, *, step: Any) -> None:
        """Go to a state. StrategyError for one that there is not."""
        if status not in ("found", "on", "off"):
            raise StrategyError(f"no state {status!r}: found, on or off")
        if status == self.status:
            step.skip("nothing to do")
            return
        self.target.activate(self.nic)
        if status == "found":
            self.target.deactivate(self.nic)
        else:
            (self.nic.enable if status == "on" else self.nic.disable)()
        self.status = status
