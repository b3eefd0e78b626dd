"""One certification run, phase by phase: each is announced, timed and written among the events."""

from __future__ import annotations

import shlex
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from offload.certify_forecast import lines as forecast
from offload.certify_judged import judged, on_host
from offload.certify_lab import Hosts, Seen, watched
from offload.certify_labs import MOST, all_ready, start_all
from offload.certify_patch import PATCH, RIG, build_patched
from offload.certify_plan import Plan
from offload.certify_tests import run_tests, uninterrupted
from offload.cmd import run as run_command
from offload.errors import CommandFailed, ConfigError, RigError
from offload.paths import ROOT
from offload.report import facts, files, manifest
from offload.report.events import Writer, resume
from offload.report.former import FAILED, command
from offload.report.saved import EVENTS
from offload.report.summary import files as paths
from offload.report.summary import text
from offload.usage import Peak

if TYPE_CHECKING:
    from offload.vm.kernels import Kernel
    from offload.vm.lab import Booting, Lab

PHASES = 6
NAMES = [
    "report.html",
    "report.json",
    "report.ktap",
    "summary.txt",
    "events.jsonl",
    "junit.xml",
    "timing.svg",
]
NAMES += ["console.log", *(f"console-{number}.log" for number in range(2, MOST + 1)), manifest.NAME]
Say = Callable[[str], None]


class Run:
    """The state of one run: its folder, the lab while it is up, how far it came."""

    def __init__(self, plan: Plan, say: Say) -> None:
        self.plan, self._say = plan, say
        self.tested = False
        self._began, self._peak = time.monotonic(), Peak()
        self._kernel: Kernel | None = None
        self._events = Writer(plan.out / EVENTS)
        self._events.write("profile", **facts.to_event(facts.of(plan.profile)))
        self._events.write("judged", **judged(plan.profile, ROOT))
        say(f"certifying {self._what()}; results go to {plan.out}\n")
        if not plan.hosts and not plan.attach and plan.played != plan.profile.id:
            say(f"the simulated NIC does not play {plan.profile.id}: it is {plan.played}, which can all\n")
        if plan.patch:
            say(f"nicsim {plan.patch.words()}\n")
        if plan.replay:
            say(f"{plan.replay.words()}\n")

    def _what(self) -> str:
        """Return what is certified, for the first line."""
        if self.plan.hosts:
            return f"{self.plan.profile.title()} on the hosts of {self.plan.hosts.file.file}"
        if self.plan.attach:
            return f"the card of lab {self.plan.attach} as {self.plan.profile.title()}"
        return f"a simulated NIC as {self.plan.profile.title()} on kernel {self.plan.kernel}"

    @contextmanager
    def phase(self, name: str, number: int) -> Iterator[None]:
        """Announce a phase, time it, and write it among the events however it ends."""
        began = time.monotonic()
        self._say(f"[{number}/{PHASES}] {name}\n")
        try:
            yield
        finally:
            took = time.monotonic() - began
            self._events.write("phase", name=name, seconds=round(took, 3))
            self._note(f"{name}: {took:.1f} s (in all {self._since():.0f} s)")

    def _since(self) -> float:
        return time.monotonic() - self._began

    def _note(self, line: str) -> None:
        self._say(f"      {line}\n")

    def prepare(self) -> None:
        """Get the kernel, build the module for it and the helper. RigError or CommandFailed."""
        from offload.vm.kernels import fetch
        from offload.vm.module import build_nicsim
        from offload.vm.record import check

        if self.plan.attach or self.plan.hosts:
            where = f"lab {self.plan.attach}" if self.plan.attach else "the bench"
            self._note(f"the kernel and the card are those of {where}")
            self._programs()
            return
        with self.phase("kernel", 1):
            self._kernel = fetch(self.plan.kernel, self._note)
            self._note(f"{self._kernel.release} ({self._kernel.version})")
            about = check(self._kernel)
            self._note(f"image and modules {about.checked}")
        with self.phase("simulated NIC", 2):
            if self.plan.patch and self.plan.source:
                module = build_patched(self.plan.patch, self._kernel, self.plan.source, self._note)
            else:
                module = build_nicsim(self._kernel, self._note)
            self._events.write("booted", **about.told(self._kernel, module))
        self._programs()

    def _programs(self) -> None:
        """Build the hand-off helper; what only measurements need may fail, and its need says so."""
        with self.phase("programs", 3):
            for folder, needed in (("native/ktls-handoff", True), ("native/iperf3", False)):
                argv = ["make", "-C", str(ROOT / folder)]
                rc, out, err, _ = run_command(argv, timeout=600)
                if rc != 0 and needed:
                    raise CommandFailed(argv, rc, out, err)
            if not self.plan.hosts:
                self._fetch_programs()

    def _fetch_programs(self) -> None:
        """Get nginx and wrk into the cache, for a machine that has none of its own."""
        from offload.vm.programs import find

        try:
            find(say=self._note)
        except RigError as exc:
            self._note(f"no nginx and wrk but this machine's own: {exc.args[0]}")

    def test(self) -> None:
        """Boot the lab or reach the hosts, run tests/hw against them, and leave them."""
        with ExitStack() as stack:
            seen: list[tuple[Lab, int]] = []
            if self.plan.hosts:
                with self.phase("reach the hosts", 4):
                    name = self._reach(stack, self.plan.hosts)
                    self._foresee(self.plan.hosts.bench)
            else:
                with self.phase("boot the lab", 4):
                    labs = self._boot(stack)
                    name = self._stand(labs)
                    seen = [(lab, lab.console_mark()) for lab in labs]
                    self._foresee(["--attach", name.partition(",")[0], "--kernel", self.plan.kernel])
            with self.phase("tests", 5):
                self.tested = True
                self._events.close()
                try:
                    run_tests(self.plan, name)
                finally:
                    with uninterrupted():  # what ends the run has to be written, too
                        self._events = resume(self.plan.out / EVENTS)
                check_consoles(seen)

    def _foresee(self, bench: Sequence[str]) -> None:
        """Say what will stay unproved here, before the tests; a part of them never certifies anyway."""
        if self.plan.only or self.plan.replay:
            return
        try:
            found = forecast(bench, self.plan.profile, self.plan.given)
        except RigError as exc:
            found = [f"what this bench can prove could not be asked: {exc.args[0].partition(chr(10))[0]}"]
        for line in found:
            self._note(line)

    def _stand(self, labs: Sequence[Lab]) -> str:
        """Write what the labs are among the events: all alike; their names."""
        lab = labs[0]
        several = {"labs": f"{len(labs)} side by side"} if len(labs) > 1 else {}
        rig = {**lab.rig, **several, **identity(lab)}
        self._events.write("rig", rig=rig, kernel=lab.kernel, profile=self.plan.profile.id, simulated=True)
        return ",".join(one.name for one in labs)

    def _reach(self, stack: ExitStack, hosts: Hosts) -> str:
        """Open the bench of real hosts to look on while it is tested, and write what it is; its file."""
        bench = stack.enter_context(watched(hosts, self._note))
        self._events.write("booted", **on_host(bench.bench.bench.dut.host, self.plan.profile.driver))
        self._events.write("rig", **bench.rig(), profile=self.plan.profile.id)
        stack.callback(self._keep_console, bench)
        return hosts.given

    def _boot(self, stack: ExitStack) -> list[Lab]:
        """Boot the labs; their consoles are kept and they are stopped when `stack` ends, unless kept up."""
        from offload.vm.knobs import turn
        from offload.vm.lab import Lab

        if self.plan.attach:
            lab = Lab.attach(self.plan.attach)
            stack.callback(lab.detach)
            if RIG in lab.rig:
                self._note(f"nicsim {lab.rig[RIG]}")
            if lab.booted:
                self._events.write("booted", **lab.booted)
            stack.callback(self._keep_console, lab)
            return [lab]
        labs, keep = all_ready(start_all(self.plan.jobs, self._start)), self.plan.keep_lab
        for number, lab in enumerate(labs, 1):
            if keep:
                stack.callback(self._note, f"the lab stays up; end it with: ktls-offload lab down {lab.name}")
            stack.callback(lab.detach if keep else lab.stop)
            stack.callback(self._keep_console, lab, number)
        for lab in labs:
            if self.plan.replay and self.plan.replay.knobs:
                turn(lab.root, self.plan.replay.knobs)
        return labs

    def _start(self) -> Booting:
        """Start the VM of one lab."""
        from offload.vm.lab import Lab

        assert self._kernel is not None
        # the peer is always a card that offloads both ways: the interop tests need one
        pair, again = f"{self.plan.played},connectx-6-dx", self.plan.replay
        return Lab.start(
            self._kernel,
            personality=pair,
            say=self._note,
            keep=self.plan.keep_lab,
            cpus=again.cpus if again else None,
            source=self.plan.source,
            patched=self.plan.patch.words() if self.plan.patch else "",
        )

    def _keep_console(self, lab: Lab | Seen, number: int = 1) -> None:
        """Keep what the kernel said: console.log, and console-2.log of a second lab."""
        name = "console.log" if number == 1 else f"console-{number}.log"
        with suppress(OSError, RigError):
            (self.plan.out / name).write_text(lab.console_text(), errors="backslashreplace")

    def aborted(self, exc: BaseException) -> None:
        """Write down why the run ended early."""
        reason = "interrupted" if isinstance(exc, KeyboardInterrupt) else str(exc).partition("\n")[0]
        with suppress(RigError):  # a full disk is the reason itself
            self._events.write("abort", reason=reason or type(exc).__name__)

    def report(self) -> dict[str, Any]:
        """Write the report; a second Ctrl-C does not leave half of it."""
        with uninterrupted():
            self._say(f"[{PHASES}/{PHASES}] report\n")  # not an event: the report follows from them
            with suppress(RigError):  # on a full disk the report says so
                self._events.write("memory", peak=self._peak.end())
            self._events.close()
            document = files.write(self.plan.out)
            self._list_files()
            return document

    def _list_files(self) -> None:
        """Write the manifest, the last file of a run; what cannot be listed costs no report."""
        for place in sorted(self.plan.out.rglob("*/"), reverse=True):
            with suppress(OSError):  # only what tests that were killed left empty: no manifest lists a folder
                place.rmdir()
        try:
            manifest.write(self.plan.out)
        except ConfigError as exc:
            self._say(f"no {manifest.NAME}, so the report cannot be verified: {exc}\n")

    def summary(self, document: dict[str, Any]) -> str:
        """Return the summary for the terminal."""
        return text(document, width=max(60, shutil.get_terminal_size((100, 24)).columns))

    def again(self, document: dict[str, Any]) -> str:
        """Return how to repeat what failed; empty if nothing did."""
        failed = sum(document["counts"][word] for word in FAILED)
        here = Path.cwd()
        folder = self.plan.out.relative_to(here) if self.plan.out.is_relative_to(here) else self.plan.out
        patched = f" --nicsim-patch {shlex.quote(str(folder / PATCH))}" if self.plan.patch else ""
        again = f"repeat what failed ({failed}): {command(str(folder))}{patched}\n"
        return again if failed and not self.plan.hosts else ""  # a bench of hosts is no lab that we boot

    def files(self) -> str:
        """Return the paths of what the run left."""
        return paths(self.plan.out, NAMES)


def check_consoles(labs: Sequence[tuple[Lab, int]]) -> None:
    """RigError if a kernel reported a fault since its mark: a lab may die behind the last of its tests."""
    for lab, mark in labs:
        if found := lab.console_faults(mark):
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
