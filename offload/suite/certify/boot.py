"""The labs of a certification run: booted, described among the events, and left when the run ends."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from offload.errors import RigError
from offload.suite.bench.vm.debugged import breaking
from offload.suite.certify.end import CONSOLES
from offload.suite.certify.labs import all_ready, start_all
from offload.suite.certify.log import Log
from offload.suite.certify.patch import RIG
from offload.suite.certify.plan import Plan

if TYPE_CHECKING:
    from offload.debian.kernels import Kernel
    from offload.suite.bench.vm.lab import Booting, Lab
    from offload.suite.certify.lab import Seen


def labs(stack: ExitStack, plan: Plan, kernel: Kernel | None, log: Log) -> list[Lab]:
    """Return the labs, as the plan has them; their consoles are kept and they are left when `stack` ends."""
    found = [join(stack, plan, log)] if plan.attach else boot(stack, plan, kernel, log)
    lab = found[0]
    several = {"labs": f"{len(found)} in parallel"} if len(found) > 1 else {}
    rig = {**lab.rig, **several, **identity(lab)}  # they are all alike
    log.event("rig", rig=rig, kernel=lab.kernel, profile=plan.profile.id, simulated=True)
    return found


def join(stack: ExitStack, plan: Plan, log: Log) -> Lab:
    """Attach to a lab that somebody else ends."""
    from offload.suite.bench.vm.lab import Lab

    lab = Lab.attach(plan.attach)
    stack.callback(lab.detach)
    if RIG in lab.rig:
        log.note(f"nicsim {lab.rig[RIG]}")
    if lab.booted:
        log.event("booted", **lab.booted)
    stack.callback(keep_console, plan.out, lab)
    return lab


def boot(stack: ExitStack, plan: Plan, kernel: Kernel | None, log: Log) -> list[Lab]:
    """Boot the labs; each is stopped when `stack` ends, unless it is to stay up."""
    from offload.suite.bench.cards.knobs import turn

    assert kernel is not None
    found = all_ready(start_all(plan.jobs, lambda: start(plan, kernel, log)))
    for number, lab in enumerate(found, 1):
        if plan.keep_lab:
            stack.callback(log.note, f"the lab stays up; end it with: ktls-offload lab down {lab.name}")
        stack.callback(lab.detach if plan.keep_lab else lab.stop)
        stack.callback(keep_console, plan.out, lab, number)
    for lab in found:
        if plan.replay and plan.replay.knobs:
            turn(lab.root, plan.replay.knobs)
    return found


def start(plan: Plan, kernel: Kernel, log: Log) -> Booting:
    """Start the VM of one lab."""
    from offload.suite.bench.vm.lab import Lab
    from offload.suite.bench.vm.own_driver import place

    return Lab.start(
        kernel,
        kind=plan.card,
        # the peer is always a card that offloads both ways: the interop tests need one
        personality=f"{plan.played},connectx-6-dx",
        say=log.note,
        keep=plan.keep_lab,
        cpus=plan.replay.cpus if plan.replay else None,
        source=plan.source,
        patched=plan.patch.words() if plan.patch else "",
        driver=place(plan.driver) if plan.driver else None,
    )


def keep_console(out: Path, lab: Lab | Seen, number: int = 1) -> None:
    """Keep what the kernel said: console.log, and console-2.log of a second lab."""
    with suppress(OSError, RigError):
        (out / CONSOLES[number - 1]).write_text(lab.console_text(), errors="backslashreplace")


def check_consoles(marked: Sequence[tuple[Lab, int]], known: Sequence[str]) -> None:
    """RigError if a kernel reported a fault since its mark: a lab may die behind the last of its tests.

    `known`: functions whose warnings the profile lists.
    """
    for lab, mark in marked:
        if found := breaking(lab.console_faults(mark), known, lab.kernel):
            raise RigError(f"the kernel log of lab {lab.name}: " + " | ".join(found[:5]))


def identity(lab: Lab) -> dict[str, str]:
    """Return what the DUT's driver says of itself, by `ethtool -i`; nothing if it says nothing."""
    lines = lab.dut.run(["ethtool", "-i", lab.bench.dut.dev], check=False).text.splitlines()
    said = dict(line.split(": ", 1) for line in lines if ": " in line)
    names = {
        "driver": "driver",
        "version": "driver version",
        "firmware-version": "firmware",
        "bus-info": "bus",
    }
    return {shown: said[name] for name, shown in names.items() if said.get(name)}
