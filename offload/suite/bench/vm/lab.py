"""The lab: a booted VM with a bench in it, to boot, attach to, ask and stop."""

from __future__ import annotations

import fcntl
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import TracebackType

from offload.cmd import Pace
from offload.debian.cache import read_json, write_json
from offload.debian.kernels import Kernel
from offload.debian.record import check
from offload.errors import ConfigError, RigError
from offload.host.base import Bench, Side
from offload.host.vm import VmHost
from offload.suite.bench.programs import unpacked
from offload.suite.bench.vm import boot, cards, made, own_driver, rundir, snapshot
from offload.suite.bench.vm import ssh as rack
from offload.suite.bench.vm.client import Client, connect
from offload.suite.bench.vm.console import Console
from offload.suite.bench.vm.qemu import PORTS
from offload.suite.bench.vm.recipe import Recipe, choose
from offload.suite.bench.vm.rig import versions
from offload.suite.bench.vm.topology import ADDRESSES, ENDS, MODULES, build_bench, enter_root, settle

Say = Callable[[str], None]
BOOT_LIMIT = 120.0  # seconds; a boot takes five on an idle machine
STATE = "lab.json"
CARD = "nicsim"  # the line of the rig that says how the simulated NIC was patched


class Lab:
    """A running lab; `boot` makes one and owns it, `attach` joins one that somebody else made."""

    def __init__(
        self, state: dict[str, str], folder: Path, client: Client, child: subprocess.Popen[bytes] | None
    ) -> None:
        Pace.factor = float(state.get("slow", "1"))
        self.name, self.kind, self.personality = state["name"], state["kind"], state["personality"]
        self.kernel, self.rig = state["kernel"], _part(state, "rig:")
        self.booted = _part(state, "booted:")  # of a lab that is kept: digests of what it booted (record.py)
        self.folder, self.out, self.vm_pid = folder, folder / "out", int(state.get("pid", "0"))
        self.client, self._child = client, child
        self._console = Console(folder / "console.log")
        self._run_dir: rundir.RunDir | None = None
        self._port_lock = -1
        self._cards: subprocess.Popen[str] | None = None  # of kind mlx5: the program that plays them
        self.root = VmHost(client, "lab")
        self.dut, self.wire, self.peer = (VmHost(client, n, n) for n in ("dut", "wire", "peer"))
        ends = ENDS[self.kind]
        self.bench = Bench(
            dut=Side(self.dut, ends.dut, *ADDRESSES["dut"]),
            peer=Side(self.peer, ends.peer, *ADDRESSES["peer"]),
            wire=self.wire,
            wire_ports=ends.wire,
            simulated=self.kind != "veth",
            rig=self.rig,
        )

    @classmethod
    def boot(
        cls,
        kernel: Kernel,
        kind: str = "nicsim",
        personality: str = "connectx-6-dx",
        name: str | None = None,
        say: Say = print,
        keep: bool = False,
        cpus: int | None = None,
        source: Path | None = None,
        ssh: bool = False,
    ) -> Lab:
        """Boot a lab and build the bench in it; see `start`."""
        return cls.start(kernel, kind, personality, name, say, keep, cpus, source, ssh).ready()

    @classmethod
    def start(
        cls,
        kernel: Kernel,
        kind: str = "nicsim",
        personality: str = "connectx-6-dx",
        name: str | None = None,
        say: Say = print,
        keep: bool = False,
        cpus: int | None = None,
        source: Path | None = None,
        ssh: bool = False,
        patched: str = "",
        driver: Path | None = None,
    ) -> Booting:
        """Start the VM of a lab, which boots while the caller goes on; `say` gets each phase and its seconds.

        `cpus`: vCPUs (default: LAB_CPUS, or 1). `source`: of the DUT's simulated NIC, and what reports say of
        it if it is `patched`; the peer's is a good one then. `driver`: your own mlx5_core. `ssh`: an sshd in
        each namespace; the lab file is ssh/lab.yaml (ssh.py). Call it from the main thread: unless `keep`,
        QEMU dies with the calling thread. A lab that outlives us (`keep`) notes for reports what it boots.
        ConfigError for a bench that does not exist; RigError if the VM does not come up.
        """
        rundir.check_name(name)
        about = check(kernel) if keep else None
        plan = choose(kernel, kind, personality, cpus, source, say, driver)
        parts, host_files = plan.made(), made.host_files()  # before anything of them is read
        files = {_name(kind): plan.module.read_bytes()} if plan.module else {}
        files |= {plan.peer.name: plan.peer.read_bytes()} if plan.peer else {}
        doors = rack.free_ports() if ssh else ()
        machine = plan.machine(rack.devices(doors))
        run_dir = rundir.create(name)
        model = None
        try:
            if kind == cards.KIND:
                machine = replace(machine, devices=machine.devices + cards.devices(run_dir.path, plan.memory))
                model = cards.start(run_dir.path, keep)
            modules = MODULES[kind] + (rack.MODULES if ssh else ())
            start = partial(boot.start, machine, run_dir, modules, files, keep, plan.pair)
            started = start()
        except BaseException:
            if model:
                model.kill()
            run_dir.release()
            raise
        state = {"name": run_dir.name, "kind": kind, "personality": personality, "kernel": kernel.release}
        state |= {"series": kernel.series, "pid": str(started.child.pid)}
        state |= _rig(kernel, kind, plan, patched, driver)
        if about:
            state |= {f"booted:{key}": value for key, value in about.described(kernel, plan.module).items()}
        return Booting(state, plan, parts, host_files, run_dir, started, start, doors, say, cards=model)

    @classmethod
    def attach(cls, name: str, timeout: float = 30.0, project: bool = False) -> Lab:
        """Join a running lab on a free line to its agent; ConfigError if there is none of that name.

        `project`: what is done there reads no host files but those of the checkout and the system; if the
        guest has seen them as they are, it keeps them, which saves a second.
        """
        state = described(name)
        folder = rundir.base() / name
        for number in [*range(1, PORTS), 0]:
            lock = _take_port(folder, number)
            if lock is not None:
                break
        else:
            raise RigError(f"all {PORTS} lines to lab {name} are taken", "stop one of its clients first")
        console = Console(folder / "console.log")
        client = Client(connect(folder / f"port{number}", timeout, lambda: True), console.tail, folder=folder)
        client.hello(timeout)
        lab = cls(state, folder, client, None)
        lab._port_lock = lock
        now = made.host_files()
        if not project or not made.seen_before(folder, now):
            lab.see_changes()
            made.seen(folder, now)
        return lab

    def see_changes(self) -> None:
        """Let the guest see host files as they are now: it keeps what it has read, but for the results."""
        self.root.write("/proc/sys/vm/drop_caches", b"3")

    def end_when_idle(self, seconds: float) -> None:
        """Let the VM switch itself off after this long without a request."""
        self.client.call("idle", seconds=seconds)

    def detach(self) -> None:
        """Leave the lab running; what this client started in it ends."""
        self.client.close()
        if self._port_lock >= 0:
            os.close(self._port_lock)
            self._port_lock = -1
        if self._run_dir:  # QEMU holds the same lock: the lab stays alive without us
            with suppress(OSError):
                os.close(self._run_dir.lock)
            self._run_dir = None

    def stop(self) -> None:
        """End the VM and remove every trace of it (attached: leave it running)."""
        run_dir, child = self._run_dir, self._child
        if child and run_dir:
            boot.stop(child, self._cards)
            self._run_dir = None
            self.detach()
            run_dir.release()
        else:
            self.detach()

    @property
    def pid(self) -> int:
        """Process id of QEMU, if this object booted it; 0 otherwise."""
        return self._child.pid if self._child else 0

    def alive(self) -> bool:
        """Say whether the VM still answers."""
        if self._child and self._child.poll() is not None:
            return False
        with suppress(RigError, OSError):
            self.root.read("/proc/uptime")
            return True
        return False

    def console_mark(self) -> int:
        """The end of the kernel's console so far."""
        return self._console.mark()

    def console_faults(self, since: int = 0) -> list[str]:
        """Return the signs of a broken rig: console lines since a mark (oops, lockdep, leak), cards that
        are gone."""
        gone = cards.dead(self.folder) if self.kind == cards.KIND else []
        return gone + self._console.faults(since)

    def console_text(self, since: int = 0) -> str:
        """Return what the kernel said since a mark, to keep as evidence."""
        return self._console.text(since)

    def __enter__(self) -> Lab:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


@dataclass
class Booting:
    """A lab whose VM has been started: `ready` waits for it and builds the bench, `stop` gives it up."""

    state: dict[str, str]
    plan: Recipe
    parts: dict[str, str]  # what the lab is made of (made.py)
    host_files: dict[str, str]
    run_dir: rundir.RunDir
    started: boot.Started
    start: Callable[[], boot.Started]  # once more, if the snapshot does not work
    doors: tuple[int, ...]
    say: Say
    began: float = field(default_factory=time.monotonic)
    stopped: bool = False
    cards: subprocess.Popen[str] | None = None  # the program that plays them, if it is not the guest's

    def ready(self) -> Lab:
        """Return the lab with its bench. RigError if the VM does not come up; nothing is left of it then."""
        try:
            lab, began = self._restored() or self._bench()
            unpacked.lend(lab.root)
            made.note(self.run_dir.path, self.parts)
            made.seen(self.run_dir.path, self.host_files)
            write_json(self.run_dir.path / STATE, self.state)  # who reads the next line may attach
            self.say(f"lab {lab.name}: {lab.kind} bench is up after another {time.monotonic() - began:.1f} s")
            if self.doors:
                card = lab.personality.split(",")[0]
                file = rack.serve(lab.root, lab.bench, self.doors, self.run_dir.path, card)
                self.say(f"lab {lab.name}: an sshd in each namespace; pytest --lab {file}")
            return lab
        except BaseException:
            self.stop()
            raise

    def _restored(self) -> tuple[Lab, float] | None:
        """The lab from its snapshot; None, with the VM booting instead, if there is none that works."""
        if not self.started.restored:
            return None
        try:
            return self._bench()
        except RigError as exc:
            snapshot.forget(self.started.kept)
            why = str(exc).splitlines()[0]
            self.say(f"lab {self.run_dir.name}: its snapshot does not work and was removed; booting ({why})")
            self._boot_again()
            return None

    def _boot_again(self) -> None:
        """Start the VM once more, in the same folder. RigError if the lab was given up meanwhile."""
        boot.stop(self.started.child)
        (self.run_dir.path / "console.log").unlink(missing_ok=True)
        if not self.stopped:
            self.began, self.started = time.monotonic(), boot.from_any_thread(self.start)
            self.state["pid"] = str(self.started.child.pid)
        if self.stopped:
            boot.stop(self.started.child)
            raise RigError(f"lab {self.run_dir.name} was abandoned")

    def _bench(self) -> tuple[Lab, float]:
        """The lab with its bench, once its agent answers, and when that was."""
        lab = self._answers()
        began = time.monotonic()
        try:
            if not self.started.restored:
                build_bench(lab.root, lab.kind, self.plan.pair, self.plan.cpus)
                self._keep()
            enter_root(lab.client, lab.root)
            settle(lab.kind, lab.dut, lab.wire, lab.peer)
        except BaseException:
            lab.detach()
            raise
        lab._run_dir = self.run_dir
        return lab, began

    def _keep(self) -> None:
        """Keep the VM as it is, with its bench and before it sees the host, for labs that are the same."""
        if name := self.started.kept:
            folder = self.run_dir.path
            snapshot.save(name, folder / "monitor", folder / "console.log", self.say)

    def _answers(self) -> Lab:
        """Return the lab once its agent answers."""
        client = boot.await_agent(
            self.started.child, self.run_dir, BOOT_LIMIT * float(self.state.get("slow", "1"))
        )
        took, kernel = time.monotonic() - self.began, self.state["kernel"]
        accel = self.state["rig:accelerator"].partition(" ")[0]
        how = ", from its snapshot" if self.started.restored else ""
        self.say(f"lab {self.run_dir.name}: {kernel} answers after {took:.1f} s ({accel}{how})")
        lab = Lab(self.state, self.run_dir.path, client, self.started.child)
        lock = _take_port(self.run_dir.path, 0)
        lab._cards = self.cards
        lab._port_lock = lock if lock is not None else -1
        return lab

    def stop(self) -> None:
        """End the VM; harmless twice."""
        self.stopped = True
        boot.stop(self.started.child, self.cards)
        self.run_dir.release()


def described(name: str) -> dict[str, str]:
    """Return what a running lab is, without joining it; ConfigError if there is none of that name."""
    folder = rundir.alive(name)
    state = read_json(folder / STATE) if folder else None
    if state is None:
        running = ", ".join(rundir.names()) or "none"
        raise ConfigError(f"no lab named {name!r} is up (running: {running})", "ktls-offload lab up")
    return state


def _rig(kernel: Kernel, kind: str, plan: Recipe, patched: str, driver: Path | None) -> dict[str, str]:
    """Return the versions that reports name, as the lab's notes have them, and how slow the kernel is."""
    size = f"{plan.cpus} vCPU{f' and {plan.spare} offline' if plan.spare else ''}, {plan.memory} MiB"
    rig = versions(kernel, plan.qemu.version, f"{plan.accel} ({plan.why})", size)
    rig |= {CARD: patched} if patched else {}
    own = own_driver.words(driver, kernel) if driver else ""
    rig |= cards.about(kernel, own) if kind == cards.KIND else {}
    return {f"rig:{key}": value for key, value in rig.items()} | {"slow": str(plan.slow)}


def _name(kind: str) -> str:
    """Return what the module of a bench is called in the guest."""
    return cards.MODULE if kind == cards.KIND else "nicsim.ko"


def _part(state: dict[str, str], prefix: str) -> dict[str, str]:
    return {key.removeprefix(prefix): value for key, value in state.items() if key.startswith(prefix)}


def _take_port(folder: Path, number: int) -> int | None:
    """A descriptor that keeps others off one line to the agent, or None if it is taken."""
    fd = os.open(folder / f"port{number}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(fd)
        return None
    return fd
