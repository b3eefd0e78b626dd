"""One certification run, phase by phase: prepare, boot or reach the bench, test, report."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offload.cmd import run as run_command
from offload.errors import CommandFailed, ConfigError, RigError
from offload.paths import ROOT
from offload.suite.certify.boot import check_consoles, keep_console, labs
from offload.suite.certify.defaults import CARDS
from offload.suite.certify.forecast import lines as forecast
from offload.suite.certify.judged import judged, on_host
from offload.suite.certify.lab import Hosts, watched
from offload.suite.certify.log import PHASES, Log, Say
from offload.suite.certify.patch import build_patched
from offload.suite.certify.plan import Plan
from offload.suite.certify.tests import run_tests, uninterrupted
from offload.suite.certify.usage import Peak
from offload.suite.report import facts, files
from offload.suite.report.trust import manifest

if TYPE_CHECKING:
    from offload.debian.kernels import Kernel
    from offload.suite.bench.vm.lab import Lab


class Run:
    """The state of one run: its log, the kernel once there is one, whether its tests have begun."""

    def __init__(self, plan: Plan, say: Say) -> None:
        self.plan, self.tested = plan, False
        self._peak = Peak()
        self._kernel: Kernel | None = None
        self.log = Log(plan.out, say)
        self.log.event("profile", **facts.to_event(facts.of(plan.profile)))
        self.log.event("judged", **judged(plan.profile, ROOT))
        for line in opening(plan):
            say(f"{line}\n")

    def prepare(self) -> None:
        """Get the kernel, build the module for it and the helper. RigError or CommandFailed."""
        if self.plan.attach or self.plan.hosts:
            where = f"lab {self.plan.attach}" if self.plan.attach else "the bench"
            self.log.note(f"{where} determines the kernel and the card")
        else:
            self._kernel = simulated_card(self.plan, self.log)
        programs(self.plan, self.log)

    def test(self) -> None:
        """Boot the lab or reach the hosts, run tests/hw against them, and leave them."""
        with ExitStack() as stack:
            found: list[Lab] = []
            if self.plan.hosts:
                with self.log.phase("reach the hosts", 4):
                    name = reach(stack, self.plan, self.plan.hosts, self.log)
                    self._foresee(self.plan.hosts.bench)
            else:
                with self.log.phase("boot the lab", 4):
                    found = labs(stack, self.plan, self._kernel, self.log)
                    name = ",".join(lab.name for lab in found)
                    self._foresee(["--attach", found[0].name, "--kernel", self.plan.kernel])
            marked = [(lab, lab.console_mark()) for lab in found]
            with self.log.phase("tests", 5):
                self.tested = True
                with self.log.lent():
                    run_tests(self.plan, name)
                check_consoles(marked, self.plan.profile.warnings())

    def _foresee(self, bench: Sequence[str]) -> None:
        """Say what will stay unproved here, before the tests; a part of them never certifies anyway."""
        if self.plan.only or self.plan.replay:
            return
        try:
            found = forecast(bench, self.plan.profile, self.plan.given)
        except RigError as exc:
            found = [f"could not find out what this bench can prove: {exc.args[0].partition(chr(10))[0]}"]
        for line in found:
            self.log.note(line)

    def report(self) -> dict[str, Any]:
        """Write the report and the manifest; a second Ctrl-C does not leave half of them."""
        with uninterrupted():
            self.log.head("report", PHASES)  # not an event: the report follows from them
            self.log.close(self._peak.end())
            document = files.write(self.plan.out)
            for place in sorted(self.plan.out.rglob("*/"), reverse=True):
                with suppress(OSError):  # only what killed tests left empty: no manifest lists a folder
                    place.rmdir()
            try:
                manifest.write(self.plan.out)
            except ConfigError as exc:  # what cannot be listed costs no report
                self.log.say(f"no {manifest.NAME}, so the report cannot be verified: {exc}\n")
            return document


def opening(plan: Plan) -> list[str]:
    """Return the first lines of a run: what is certified, by which card, patched how, repeating what."""
    if plan.hosts:
        what = f"{plan.profile.title()} on the hosts of {plan.hosts.file.file}"
    elif plan.attach:
        what = f"the card of lab {plan.attach} as {plan.profile.title()}"
    elif plan.card != CARDS[0]:
        whose = (
            f"{plan.profile.driver} of {plan.driver}" if plan.driver else f"Debian's {plan.profile.driver}"
        )
        what = f"{whose} on a simulated {plan.profile.title()}, kernel {plan.kernel}"
    else:
        what = f"a simulated NIC as {plan.profile.title()} on kernel {plan.kernel}"
    lines = [f"certifying {what}; results go to {plan.out}"]
    lines += [f"nicsim {plan.patch.words()}"] if plan.patch else []
    return [*lines, *([plan.replay.words()] if plan.replay else [])]


def simulated_card(plan: Plan, log: Log) -> Kernel:
    """Get the kernel and what the card needs on it. RigError or CommandFailed."""
    from offload.debian.kernels import fetch
    from offload.debian.record import check

    with log.phase("kernel", 1):
        kernel = fetch(plan.kernel, log.note)
        log.note(f"{kernel.release} ({kernel.version})")
        about = check(kernel)
        log.note(f"the kernel is {about.checked}")
    with log.phase("simulated NIC" if plan.card == CARDS[0] else "driver", 2):
        log.event("booted", **about.described(kernel, module(plan, kernel, log)))
    return kernel


def module(plan: Plan, kernel: Kernel, log: Log) -> Path:
    """Return the module that the lab loads: the simulated NIC, patched or not, the real driver, or yours."""
    from offload.suite.bench.cards.module import build_nicsim

    if plan.driver:
        from offload.suite.bench.vm.own_driver import prepare

        return prepare(plan.driver, kernel, log.note)
    if plan.card != CARDS[0]:
        from offload.suite.bench.vm.cards import driver

        return driver(kernel, log.note)
    if plan.patch and plan.source:
        return build_patched(plan.patch, kernel, plan.source, log.note)
    return build_nicsim(kernel, log.note)


def programs(plan: Plan, log: Log) -> None:
    """Build the hand-off helper; what only measurements need may fail, and its need says so."""
    with log.phase("programs", 3):
        for folder, needed in (("native/ktls-handoff", True), ("native/iperf3", False)):
            argv = ["make", "-C", str(ROOT / folder)]
            rc, out, err, _ = run_command(argv, timeout=600)
            if rc != 0 and needed:
                raise CommandFailed(argv, rc, out, err)
        if not plan.hosts:
            fetch_programs(log)


def fetch_programs(log: Log) -> None:
    """Get nginx and wrk into the cache, for a machine that has none of its own."""
    from offload.suite.bench.programs.unpacked import find

    try:
        find(say=log.note)
    except RigError as exc:
        log.note(f"using this machine's own nginx and wrk: {exc.args[0]}")


def reach(stack: ExitStack, plan: Plan, hosts: Hosts, log: Log) -> str:
    """Open the bench of real hosts to look on while it is tested, and write what it is; its file."""
    bench = stack.enter_context(watched(hosts, log.note))
    log.event("booted", **on_host(bench.bench.bench.dut.host, plan.profile.driver))
    log.event("rig", **bench.rig(), profile=plan.profile.id)
    stack.callback(keep_console, plan.out, bench)
    return hosts.given
