"""From a kernel in the cache to a VM whose agent answers; what went wrong, if it does not."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from offload.cmd import kill_group
from offload.debian.cache import cache_root, write_json
from offload.errors import RigError
from offload.paths import ROOT
from offload.suite.bench.vm import snapshot
from offload.suite.bench.vm.client import Client, connect
from offload.suite.bench.vm.console import Console
from offload.suite.bench.vm.initramfs import SHARES, build, early_init, module_order, shares_script
from offload.suite.bench.vm.qemu import Machine, command
from offload.suite.bench.vm.rundir import RunDir
from offload.suite.bench.vm.userland import agent

BASIC = ("virtio_pci", "virtio_console", "overlay", "9pnet_virtio", "9p")
LOGS_KEPT = 10
_PARKED = ThreadPoolExecutor(1, "lab-starter")


@dataclass(frozen=True)
class Started:
    """A VM that has been started: `kept` names the snapshot that it began at, or is to become (or is '')."""

    child: subprocess.Popen[bytes]
    kept: str
    restored: bool


def interpreter() -> str:
    """The distribution's Python, which the guest has at the same path."""
    base = Path(sys.base_prefix) / "bin/python3"
    return "/usr/bin/python3" if Path("/usr/bin/python3").exists() else str(base)


def visible() -> list[Path]:
    """Folders that the guest must see at their own paths, wherever they lie."""
    return [ROOT, Path(sys.prefix), Path(sys.base_prefix), cache_root(), Path.cwd()]


def start(
    machine: Machine,
    run_dir: RunDir,
    modules: tuple[str, ...],
    files: Mapping[str, bytes],
    keep: bool,
    pair: str,
) -> Started:
    """Start QEMU. Unless `keep`, it dies with the thread that called this, whatever kills that.

    `pair`: the cards that the bench will have; a VM that has been kept with just this one begins there.
    """
    kernel, folder = machine.kernel, run_dir.path
    order = module_order(kernel.modules, [*BASIC, *modules])
    shares = shares_script(kernel.modules, visible()).encode()
    more = {**agent(interpreter()), SHARES: shares}
    initrd = build(order, files, early_init(interpreter()), more)
    (folder / "out").mkdir(exist_ok=True)
    (folder / "initrd").write_bytes(initrd)
    argv = command(machine, folder) + list(machine.devices)
    kept = ""
    if snapshot.possible(machine.qemu, machine.accel) and not machine.devices:
        kept = snapshot.key(machine.qemu, argv, folder, kernel.vmlinux, initrd, pair)
    begin = snapshot.begin(kept, folder / "console.log") if kept else []
    more_argv = begin or (["-qmp", f"unix:{folder}/monitor,server=on,wait=off"] if kept else [])
    return Started(_started([*argv, *more_argv], machine, run_dir, keep), kept, bool(begin))


def from_any_thread(start: Callable[[], Started]) -> Started:
    """Start a VM from a thread that lives as long as this process: QEMU dies with the one that started it."""
    return _PARKED.submit(start).result()


def _started(argv: list[str], machine: Machine, run_dir: RunDir, keep: bool) -> subprocess.Popen[bytes]:
    """Run QEMU, and note its process."""
    folder = run_dir.path
    guard = [] if keep else ["setpriv", "--pdeathsig", "KILL"]
    try:
        with (folder / "qemu.log").open("wb") as log:
            child = subprocess.Popen(
                [*guard, *argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **machine.qemu.env},
                pass_fds=[run_dir.lock],
                start_new_session=True,
            )
    except OSError as exc:
        raise RigError(f"cannot start {argv[0]}: {exc.strerror}") from exc
    write_json(folder / "pid.json", {"pid": str(child.pid)})
    return child


def await_agent(child: subprocess.Popen[bytes], run_dir: RunDir, timeout: float) -> Client:
    """Return the client once the agent answered; RigError with the last console lines if it never does."""
    console = Console(run_dir.path / "console.log")
    deadline = time.monotonic() + timeout

    def booting() -> bool:
        return child.poll() is None

    client = None
    try:
        sock = connect(run_dir.path / "port0", timeout, booting)
        client = Client(sock, console.tail, folder=run_dir.path)
        client.hello(max(1.0, deadline - time.monotonic()))
        return client
    except RigError as exc:
        if client:
            client.close()
        raise RigError(_obituary(child, run_dir, exc), _keep_logs(run_dir)) from exc


def _obituary(child: subprocess.Popen[bytes], run_dir: RunDir, cause: RigError) -> str:
    """Why the VM did not come up, with what QEMU and the kernel said last."""
    with suppress(subprocess.TimeoutExpired):
        child.wait(1)  # a VM that ended closes its sockets a moment before it is gone
    rc, console = child.poll(), Console(run_dir.path / "console.log")
    how = "does not answer" if rc is None else f"QEMU ended with {rc}"
    said = (run_dir.path / "qemu.log").read_text(errors="replace").strip()[-600:]
    fault = next(iter(console.faults()), str(cause).splitlines()[0].removesuffix("; the console says:"))
    return "\n".join(w for w in (f"the lab VM did not boot ({how}): {fault}", said, console.tail()) if w)


def _keep_logs(run_dir: RunDir) -> str:
    """Copy the logs out of the run directory, which is about to vanish; say where they are."""
    kept = cache_root() / "logs"
    kept.mkdir(exist_ok=True)
    target = kept / f"{time.strftime('%Y%m%d-%H%M%S')}-{run_dir.name}"
    target.mkdir(exist_ok=True)
    for name in ("console.log", "qemu.log"):
        if (run_dir.path / name).is_file():
            shutil.copyfile(run_dir.path / name, target / name)
    for old in sorted(kept.iterdir())[:-LOGS_KEPT]:
        shutil.rmtree(old, ignore_errors=True)
    return f"the logs are in {target}"


def stop(child: subprocess.Popen[bytes], program: subprocess.Popen[str] | None = None) -> None:
    """End QEMU, and wait for the `program` that ends with it; nothing in the guest is worth keeping."""
    if child.poll() is None:
        kill_group(child.pid, signal.SIGKILL)
    child.wait()
    if program:
        program.wait()
