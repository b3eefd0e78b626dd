"""What a test stands on: the lab of a kind, and on each side a pump and certificates."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import pytest

from offload.card.counters import Snapshot, snapshot
from offload.card.profile import Profile
from offload.errors import RigError
from offload.host.base import Bench, Side
from offload.host.vm import VmHost
from offload.suite.bench.cards import knobs
from offload.suite.bench.vm.debugged import breaking
from offload.suite.report.record.plugin import set_rig
from offload.suite.report.record.testinfo import GUEST
from offload.suite.traffic import certs, drive
from offload.suite.traffic.certs import Placed
from offload.suite.traffic.stunnel_resident import Resident
from tests.lib.flow.stand_ins import StandIns
from tests.lib.rig import rig_choice
from tests.lib.wire.captures import Captures

UP: pytest.StashKey[Any] = pytest.StashKey()  # the rig whose lab is up


@dataclass
class End:
    """One side of the bench with what moves payload there."""

    side: Side
    pump: drive.Pump
    at: Placed
    stunnel: Resident


def in_lab(bench: Bench) -> bool:
    """Say whether the bench is in a VM of ours, where a namespace is called as its host."""
    return isinstance(bench.dut.host, VmHost)


@dataclass
class Rig:
    """A lab that is up, with both ends ready for traffic."""

    lab: Any
    kind: str
    profile: Profile
    undo: ExitStack
    port: int = 4433
    log_read: Any = None  # the mark up to which the kernel's console has been looked through
    probed: dict[str, str] = field(default_factory=dict)
    pace: float = 0.0  # bytes per second in a first look; 0: nobody has looked (cores.py)
    captures: Captures = field(default_factory=Captures)
    _ends: dict[str, End] = field(default_factory=dict)

    @cached_property
    def _stand_ins(self) -> StandIns:
        return StandIns(self.profile)

    @property
    def bench(self) -> Bench:
        """DUT, peer and wire."""
        bench: Bench = self.lab.bench
        return bench

    def end(self, which: str) -> End:
        """`dut` or `peer`, with a pump that runs and certificates in place; made when first asked for."""
        if not self._ends:
            self._make_ends()
        return self._ends[which]

    def _make_ends(self) -> None:
        """Make both at once: while Python starts in the guest, keys are made here."""
        pumps: dict[str, tuple[Side, str, drive.Pump]] = {}
        for which, side in (("dut", self.bench.dut), ("peer", self.bench.peer)):
            folder = f"/run/ktls-offload-{uuid.uuid4().hex[:8]}-{which}"
            self.undo.callback(side.host.run, ["rm", "-rf", folder], check=False)
            pump = self.undo.enter_context(drive.running(side.host, folder, wait=False))
            pumps[which] = (side, folder, pump)
        keys = self.certs()
        for which, (side, folder, pump) in pumps.items():
            at = self.undo.enter_context(certs.placed(keys, side.host, folder))
            pump.ready()
            resident = Resident(side.host, at)
            self.undo.callback(resident.stop)
            self._ends[which] = End(side, pump, at, resident)

    def certs(self) -> certs.Certs:
        """One CA and one certificate for both ends."""
        if not hasattr(self, "_certs"):
            sides = (self.bench.dut, self.bench.peer)
            self._certs = certs.make([address for side in sides for address in (side.v4, side.v6)])
        return self._certs

    def next_port(self) -> int:
        """A TCP port that nothing of this run has used: no test waits for a port to become free."""
        self.port += 1
        return self.port

    def counters(self) -> Snapshot:
        """The counters of the DUT now, with what stands in for those that its driver does not have."""
        dut = self.bench.dut
        return self._stand_ins.add(dut.host, snapshot(dut.host, dut.dev, self.profile))


class Labs:
    """The labs of a pytest run: at most one is up, a test of another kind ends it."""

    def __init__(self, config: pytest.Config, say: Callable[[str], None]) -> None:
        self._config, self._say = config, say
        self._rig: Rig | None = None

    def get(self, kind: str) -> Rig:
        """Return the lab of a kind (nicsim or veth), booted or attached when first asked for."""
        if self._rig is not None and self._rig.kind != kind:
            self.close()
        if self._rig is None:
            with ExitStack() as undo:
                lab = undo.enter_context(self._open(kind))
                if kind == "veth":
                    rig_choice.without_offload(lab.bench.dut)
                self._rig = Rig(lab, kind, rig_choice.profile_of(self._config), undo.pop_all())
            self._tell()
        return self._rig

    def _open(self, kind: str) -> Any:
        from offload.debian.kernels import fetch
        from offload.suite.bench.vm import warm
        from offload.suite.bench.vm.lab import Lab

        if self._config.getoption("--lab"):
            return rig_choice.real(self._config, self._say)
        names = self._config.getoption("--attach")
        if names:
            return Lab.attach(own(self._config, names.split(",")), project=True)
        # the peer is always a card that offloads both ways: the interop tests need one
        series = self._config.getoption("--kernel")
        personality = f"{self._config.getoption('--profile')},connectx-6-dx"
        if self._config.getoption("--warm"):
            return warm.lab(series, kind, personality, self._say)
        kernel = fetch(series, say=self._say)
        return Lab.boot(kernel, kind=kind, personality=personality, say=self._say)

    def _tell(self) -> None:
        """Say what the run stands on, for the header and the report."""
        assert self._rig is not None
        self._config.stash[UP] = self._rig
        rig = dict(self._rig.lab.rig)
        self._config.stash[GUEST] = getattr(self._rig.lab, "vm_pid", 0)
        if self._rig.kind == "nicsim" and (found := knobs.turned(self._rig.lab.root)):
            rig["knobs"] = found
        kernel = str(rig.get("kernel") or self._config.getoption("--kernel"))
        set_rig(
            self._config,
            rig,
            profile=self._rig.profile.id,
            kernel=kernel,
            simulated=self._rig.bench.simulated,
        )

    def close(self) -> None:
        """End the lab that is up. RigError if its kernel log has a fault that no test has seen."""
        if self._rig is not None:
            rig, self._rig = self._rig, None
            self._config.stash[UP] = None
            with rig.undo:
                check_log(rig)


def begin_log(rig: Any) -> None:
    """Mark where the kernel's console stood before the first test."""
    rig.log_read = rig.lab.console_mark() if rig.log_read is None else rig.log_read


def check_log(rig: Any) -> None:
    """Raise RigError if the console shows a fault since it was last looked through, between tests too.

    A warning that the profile lists breaks no rig, nor does a report of a debug kernel's tools: the test of
    the kernel's log names it.
    """
    mark, rig.log_read = rig.log_read, rig.lab.console_mark()
    if mark is None:
        return
    release = getattr(rig.lab, "kernel", "")
    if faults := breaking(rig.lab.console_faults(mark), rig.profile.warnings(), release):
        raise RigError("the kernel log: " + " | ".join(faults[:5]))


def own(config: pytest.Config, names: Sequence[str]) -> str:
    """Which of these labs is this process's: each worker of a parallel run has one of its own."""
    worker = getattr(config, "workerinput", {}).get("workerid", "gw0")
    return names[int(worker.removeprefix("gw"))]
