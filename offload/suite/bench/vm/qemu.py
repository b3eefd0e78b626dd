"""Which QEMU runs the lab, and its command line: QEMU 10 of the backports does crypto at half the cost."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from offload.cmd import run
from offload.debian.cache import kept, new_folder
from offload.debian.kernels import Kernel, codename
from offload.debian.packages import Package, depends, download, index, installed, newest, refresh
from offload.errors import RigError

PROGRAM = "qemu-system-x86_64"
GOOD = (8, 1)  # from here on TCG uses the host's own AES and carry-less multiplication
PORTS = 4  # clients at once: a test run, and people who look at it
DIRECT = 16  # programs at once whose words go past the agent
Say = Callable[[str], None]


@dataclass(frozen=True)
class Qemu:
    """A QEMU that runs here: the program, its version, and what it must be told to find its parts."""

    program: str
    version: str
    options: tuple[str, ...] = ()
    env: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Machine:
    """What to boot, and on what: `memory` in MiB."""

    kernel: Kernel
    qemu: Qemu
    accel: str
    cpus: int = 2
    memory: int = 1024
    devices: tuple[str, ...] = ()  # more of QEMU's options
    spare: int = 0  # more vCPUs, which rest: mlx5_core made queues for them


def version_of(program: str, env: dict[str, str] | None = None, options: tuple[str, ...] = ()) -> str:
    """ "10.0.2", or an empty string if it does not run; `options` come first."""
    rc, out, _, _ = run([program, *options, "--version"], env=env, timeout=30)
    match = re.search(rb"version (\d+\.\d+\.\d+)", out)
    return match[1].decode() if rc == 0 and match else ""


def find(say: Say = print) -> Qemu:
    """The installed QEMU if it is recent, else that of the backports, else any installed one; or RigError."""
    own = version_of(PROGRAM) if shutil.which(PROGRAM) else ""
    if own and tuple(int(part) for part in own.split(".")[:2]) >= GOOD:
        return Qemu(PROGRAM, own)
    try:
        return _unpacked(say)
    except RigError as exc:
        if not own:
            raise RigError(f"no QEMU: {exc}", "apt-get install qemu-system-x86") from exc
        say(f"using QEMU {own}, so crypto will be slow: {str(exc).splitlines()[0]}")
        return Qemu(PROGRAM, own)


def _unpacked(say: Say) -> Qemu:
    """The backported QEMU in the cache, fetched first if need be."""
    folder = kept("qemu", lambda root: _fetch(root, say), say)
    library = f"{folder}/usr/lib/x86_64-linux-gnu"
    env = {"LD_LIBRARY_PATH": library}
    program = f"{folder}/usr/bin/{PROGRAM}"
    version = version_of(program, env)
    if not version:
        raise RigError(f"the QEMU in {folder} does not run here")
    return Qemu(
        program, version, ("-L", f"{folder}/usr/share/qemu", "-L", f"{folder}/usr/share/seabios"), env
    )


def _fetch(root: Path, say: Say) -> Path:
    refresh()
    parts = choose(index(), codename(), installed())
    if not parts:
        raise RigError(f"no newer QEMU in {codename()}-backports")
    say(f"fetching QEMU {parts[0].version}: {sum(p.size for p in parts) >> 20} MiB")
    folder = root / parts[0].version.replace(":", "_")
    with new_folder(folder) as temp:
        download(parts, temp)
    index.cache_clear()
    return folder


def choose(packages: tuple[Package, ...], release: str, present: set[str]) -> list[Package]:
    """QEMU of a release's backports with its own parts, and those libraries that are not installed."""
    best = newest(packages, (release, f"{release}-security", f"{release}-backports"))
    top = best.get("qemu-system-x86")
    if top is None or not top.suite.endswith("-backports"):
        return []
    chosen, names = [top], depends(top)
    own = re.compile(r"qemu-system-(?:common|data)$|seabios$")
    while names:
        name = names.pop()
        part = best.get(name)
        if not part or part in chosen or (name in present and not own.match(name)):
            continue
        chosen.append(part)
        names += depends(part)
    return chosen


def tsc_khz() -> str:
    """The host's time-stamp clock for the guest, whose own measurement goes wrong on a loaded host.

    Only where /proc/cpuinfo shows it: with frequency scaling "cpu MHz" is something else.
    """
    if Path("/sys/devices/system/cpu/cpu0/cpufreq").exists():
        return ""
    match = re.search(r"^cpu MHz\s*: (\d+)\.(\d{3})", Path("/proc/cpuinfo").read_text(), re.M)
    return f" tsc_early_khz={match[1]}{match[2]}" if match else ""


def command(machine: Machine, folder: Path) -> list[str]:
    """The command line of a functional lab: initrd, sockets and logs are in `folder`."""
    qemu, accel, vcpus = machine.qemu, machine.accel, machine.cpus + machine.spare
    cpu = "host" if accel == "kvm" else "max,-erms,-fsrm"  # TCG runs `rep movsb` one byte at a time
    threads = "single" if machine.cpus < vcpus else "multi"  # then none of them needs to lock what it writes
    accelerator = "kvm" if accel == "kvm" else f"tcg,thread={threads}"
    # loglevel=5: WARN() speaks at "warning", which "quiet" would keep off the console.
    # no watchdogs: on a loaded host a vCPU may stand still for tens of seconds, no fault of the kernel.
    # tsc=reliable: TCG shows one clock to all vCPUs but cannot say so, and reading the HPET instead is slow.
    # hpet=off: QEMU lets it run, 250 times a second for nothing, when the kernel goes over to another timer.
    # no_timer_check: on a loaded host the boot's timer test fails by chance and panics (seen on 7.2)
    kernel = (
        "console=ttyS0 no_timer_check loglevel=5 panic=-1 cryptomgr.notests=1 nokaslr nowatchdog audit=0 "
        "rcupdate.rcu_cpu_stall_timeout=120 random.trust_cpu=on"
    ) + (f" tsc=reliable{tsc_khz()}" if accel == "tcg" else "")
    argv = [qemu.program, *qemu.options, "-name", folder.name, "-M", "q35,hpet=off", "-accel", accelerator]
    argv += ["-cpu", cpu, "-smp", str(vcpus), "-m", f"{machine.memory}M", "-nodefaults", "-no-user-config"]
    argv += ["-kernel", str(machine.kernel.vmlinux), "-initrd", str(folder / "initrd"), "-append", kernel]
    # vmgenid: a guest that begins at a snapshot makes new random numbers
    argv += ["-display", "none", "-no-reboot", "-device", "vmgenid,guid=auto"]
    return argv + _channels(folder)


def _channels(folder: Path) -> list[str]:
    """Return the ways out of the guest: its console, two shared folders, and the ports of its agents."""
    argv = ["-chardev", f"file,id=console,path={folder}/console.log,append=on", "-serial", "chardev:console"]
    argv += ["-fsdev", "local,id=root,path=/,security_model=none,readonly=on,multidevs=remap"]
    argv += ["-device", "virtio-9p-pci,fsdev=root,mount_tag=root"]
    argv += ["-fsdev", f"local,id=out,path={folder}/out,security_model=none"]
    argv += ["-device", "virtio-9p-pci,fsdev=out,mount_tag=out", "-device", "virtio-serial-pci"]
    ports = {f"lab{number}": f"port{number}" for number in range(PORTS)}
    ports |= {name: name for name in (f"own{number:02}" for number in range(DIRECT))}
    for name, socket in ports.items():
        argv += ["-chardev", f"socket,id={name},path={folder}/{socket},server=on,wait=off"]
        argv += ["-device", f"virtserialport,chardev={name},name={name}"]
    return argv
