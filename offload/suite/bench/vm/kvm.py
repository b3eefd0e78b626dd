"""May the lab use KVM here? Only a boot of the very kernel can tell, and the question must never hang."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from pathlib import Path

from offload.cmd import run
from offload.debian.cache import cache_root, read_json, write_json
from offload.debian.kernels import Kernel
from offload.errors import ConfigError, RigError
from offload.suite.bench.vm.initramfs import Cpio, busybox
from offload.suite.bench.vm.qemu import Qemu

DEVICE = Path("/dev/kvm")
MARKER = b"LABPROBE-OK"
# a broken KVM spins in the host kernel: processor time ends it on a loaded machine, the wall comes last
CPU_LIMIT, WALL_LIMIT = 5, 15.0
INIT = f"#!/busybox sh\n/busybox echo {MARKER.decode()}\n/busybox poweroff -f\n"
Say = Callable[[str], None]


def accelerator(kernel: Kernel, qemu: Qemu, say: Say = print) -> tuple[str, str]:
    """("kvm" or "tcg", why). LAB_ACCEL=kvm|tcg decides without asking; ConfigError for another value."""
    wish = os.environ.get("LAB_ACCEL", "auto")
    if wish not in ("auto", "kvm", "tcg"):
        raise ConfigError(f"LAB_ACCEL={wish!r}", "kvm, tcg or auto")
    if wish != "auto":
        return wish, f"LAB_ACCEL={wish}"
    if not os.access(DEVICE, os.R_OK | os.W_OK):
        return "tcg", f"no access to {DEVICE}"
    path = cache_root() / "kvm.json"
    known, here = read_json(path) or {}, _here(qemu)
    key = f"{here} {kernel.release}"
    failed = next((why for k, why in known.items() if k.startswith(here) and why), "")
    if key not in known and not failed:  # where one kernel hangs, trying the next would cost seconds again
        say("trying KVM with this kernel")
        known[key] = probe(kernel.vmlinux, qemu)
        write_json(path, {k: v for k, v in known.items() if k.startswith(here.split()[0])})
    why = known.get(key, failed)
    return ("kvm", "the kernel boots in KVM") if not why else ("tcg", why)


def _here(qemu: Qemu) -> str:
    """An answer holds for this boot of the host and this QEMU (and one kernel)."""
    boot_id = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{boot_id} {qemu.version}"


def initramfs() -> bytes:
    """Two files: busybox, and an init that says the marker and switches off."""
    cpio = Cpio()
    cpio.folder("dev")
    cpio.console()
    cpio.file("busybox", busybox(), 0o755)
    cpio.file("init", INIT.encode(), 0o755)
    return cpio.done()


def probe(vmlinux: Path, qemu: Qemu, accel: str = "kvm", cpu: str = "host", wall: float = WALL_LIMIT) -> str:
    """Boot the kernel with an init that switches off: why it does not work, or an empty string if it does."""
    with tempfile.NamedTemporaryFile(prefix="labprobe-") as archive:
        archive.write(initramfs())
        archive.flush()
        argv = [
            "prlimit",
            f"--cpu={CPU_LIMIT}",
            "--core=0",
            "--",
            qemu.program,
            *qemu.options,
            "-M",
            "q35",
            "-accel",
            accel,
            "-cpu",
            cpu,
            "-smp",
            "1",
            "-m",
            "256M",
            "-nodefaults",
            "-no-user-config",
            "-display",
            "none",
            "-no-reboot",
            "-serial",
            "stdio",
            "-kernel",
            str(vmlinux),
            "-initrd",
            archive.name,
            "-append",
            "console=ttyS0 quiet panic=-1",
        ]
        try:
            rc, out, err, seconds = run(argv, timeout=wall, env=qemu.env)
        except RigError:
            return f"a kernel does not boot in KVM within {wall:g} s"
    if rc == 0 and MARKER in out:
        return ""
    if rc == 0:
        return "a kernel started in KVM but printed nothing"
    words = err.decode("utf-8", "replace").strip().splitlines()
    return f"KVM does not boot a kernel: exit {rc} after {seconds:.1f} s" + (
        f", {words[0][:160]}" if words else ""
    )
