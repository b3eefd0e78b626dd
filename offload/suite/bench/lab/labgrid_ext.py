"""What labgrid knows of a bench, for your own tests.

In an environment file: `imports: [offload.suite.bench.lab.labgrid_ext]`.

Our own commands do not need it: an exporter passes classes through that it does not know, and
`certify --all-benches` reads them from the coordinator. labgrid 26; the extra `lab`.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import attr
from labgrid.driver import Driver, ExecutionError
from labgrid.factory import target_factory
from labgrid.protocol import CommandProtocol
from labgrid.resource import Resource
from labgrid.step import step
from labgrid.strategy import Strategy, StrategyError

LIMIT = 60.0  # seconds for one command on the host


def entries(given: str | list[str]) -> list[str]:
    """The entries of a text with commas: an exporter passes no lists on."""
    return [part.strip() for part in given.split(",")] if isinstance(given, str) else given


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

    hostkeys = attr.ib(factory=list, converter=entries, validator=attr.validators.instance_of(list))
    netns = attr.ib(default="", validator=attr.validators.instance_of(str))
    sudo = attr.ib(default=False, validator=attr.validators.instance_of(bool))


@target_factory.reg_resource
@attr.s(eq=False)
class OffloadWire(Resource):
    """The two ports of a wire box: towards the DUT, towards the peer."""

    ports = attr.ib(factory=list, converter=entries, validator=attr.validators.instance_of(list))


@target_factory.reg_resource
@attr.s(eq=False)
class OffloadVm(Resource):
    """A bench in a VM: the name of a lab that is up (`ktls-offload lab up --name NAME`), or a role of it."""

    lab = attr.ib(validator=attr.validators.instance_of(str))
    role = attr.ib(default="dut", validator=attr.validators.in_(("dut", "wire", "peer")))


@target_factory.reg_driver
@attr.s(eq=False)
class OffloadVmShell(Driver, CommandProtocol):
    """Commands in one role of a VM, by the lab's own agent: what an SSHDriver is for a real host.

    The guest sees this machine's programs at the same paths; ours are found without a path.
    """

    bindings = {"vm": "OffloadVm"}

    @Driver.check_active
    @step(args=["command"], result=True)
    def run(self, command: str, timeout: float | None = None) -> tuple[list[str], list[str], int]:
        """Run a shell command: lines of output and of errors, exit code. TimeoutExpired after `timeout` s."""
        path = f"{Path(sys.executable).parent}:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
        where = ["lab", "run", "--name", self.vm.lab, "--in", self.vm.role]
        argv = [sys.executable, "-m", "offload", *where, "--", "env", f"PATH={path}", "sh", "-c", command]
        done = subprocess.run(argv, stdin=subprocess.DEVNULL, capture_output=True, timeout=timeout or LIMIT)
        said = (out.decode("utf-8", "replace").splitlines() for out in (done.stdout, done.stderr))
        return next(said), next(said), done.returncode

    @Driver.check_active
    def run_check(self, command: str, timeout: float | None = None) -> list[str]:
        """The lines of output; ExecutionError if the command fails."""
        out, err, rc = self.run(command, timeout)
        if rc:
            raise ExecutionError(f"{command!r} in {self.vm.role} of {self.vm.lab}: exit {rc}", out, err)
        return out

    def get_status(self) -> int:
        """1: a lab that is up can be asked at once."""
        return 1

    def poll_until_success(
        self, command: str, *, expected: int = 0, tries: int | None = None, timeout: float = LIMIT, **_: Any
    ) -> bool:
        """Run it until it ends with the exit code `expected`; False after this many tries, or seconds."""
        end = time.monotonic() + timeout
        while tries is None or tries > 0:
            if self.run(command)[2] == expected:
                return True
            tries = None if tries is None else tries - 1
            if time.monotonic() > end:
                return False
        return False

    def wait_for(self, command: str, pattern: str, timeout: float = LIMIT, **_: Any) -> None:
        """Run it until a line of its output has a match. ExecutionError after `timeout` seconds."""
        end = time.monotonic() + timeout
        while not any(re.search(pattern, line) for line in self.run(command)[0]):
            if time.monotonic() > end:
                raise ExecutionError(f"{command!r}: no {pattern!r} after {timeout:g} s")


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
        """Return what `ktls-offload status --json` says of the port."""
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
