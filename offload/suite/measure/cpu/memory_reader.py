"""Runs on the host by `python3 -I -S -c`: says the bytes that went to and from memory, when asked.

First line: {"source": words}, or {"absent": why} and the end. Then for every line that comes in, one line:
{"COUNTER": bytes so far, ...}. Memory controllers (perf, uncore) are asked first, as they see what devices
move too; then resctrl. The folder of /sys is the first argument, "/sys" without one. Ends with its input.
"""

import ctypes
import glob
import json
import os
import platform
import re
import struct
import sys
from collections.abc import Callable

CALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}  # perf_event_open
SIZE, TIMES, CLOEXEC = 64, 1 | 2, 8  # PERF_ATTR_SIZE_VER0, PERF_FORMAT_TOTAL_TIME_*, PERF_FLAG_FD_CLOEXEC
# Intel's servers, clients, and the free-running counters of both: Documentation/ABI of event_source devices
EVENTS = ("cas_count_read", "cas_count_write", "data_reads", "data_writes", "data_read", "data_write")
UNITS = {"MiB": 1 << 20, "KiB": 1 << 10, "Bytes": 1, "": 1}
MBM = "mon_data/mon_L3_*/mbm_total_bytes"  # Documentation/arch/x86/resctrl.rst


def text(path: str) -> str | None:
    """A file's content without its end, or None."""
    try:
        with open(path) as file:  # noqa: PTH123 - runs without our package
            return file.read().strip()
    except OSError:
        return None


def config(pmu: str, event: str) -> int:
    """The number that the kernel wants for `event=0x04,umask=0x03`, by the PMU's own format files."""
    number = 0
    for word in event.split(","):
        name, _, value = word.partition("=")
        span = re.fullmatch(r"config:(\d+)(-\d+)?", text(f"{pmu}/format/{name}") or "")
        if not span:
            raise ValueError(f"{pmu}: no place for {name}")
        number |= int(value or "1", 0) << int(span[1])
    return number


def controllers(root: str) -> list[tuple[str, int, int, int, float]]:
    """Return what to open: (name, PMU's type, config, CPU, bytes of a count)."""
    found = []
    for pmu in sorted(glob.glob(f"{root}/bus/event_source/devices/uncore_imc*")):  # noqa: PTH207
        for event in EVENTS:
            said = text(f"{pmu}/events/{event}")
            scale = float(text(f"{pmu}/events/{event}.scale") or 64)
            unit = text(f"{pmu}/events/{event}.unit") or ""
            if said is None or unit not in UNITS:
                continue
            kind, number = int(text(f"{pmu}/type") or ""), config(pmu, said)
            for cpu in (text(f"{pmu}/cpumask") or "0").split(","):
                name = f"{os.path.basename(pmu)} {event} cpu{cpu}"  # noqa: PTH119
                found.append((name, kind, number, int(cpu.split("-")[0]), scale * UNITS[unit]))
    return found


def opened(kind: int, number: int, cpu: int) -> int:
    """A descriptor that counts; OSError if it cannot."""
    attr = ctypes.create_string_buffer(struct.pack("=IIQQQQQ", kind, SIZE, number, 0, 0, TIMES, 0), SIZE)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(CALLS[platform.machine()], attr, -1, cpu, -1, CLOEXEC)
    if fd < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(fd)


def counted(fds: dict[str, tuple[int, float]]) -> dict[str, int]:
    """Bytes of each open counter; one that shared its place is scaled up."""
    said = {}
    for name, (fd, each) in fds.items():
        value, wanted, had = struct.unpack("=QQQ", os.read(fd, 24))
        said[name] = round(value * each * (wanted / had if had else 1))
    return said


def groups(root: str) -> list[str]:
    """Every file of resctrl that counts; a group's has what its monitoring groups have."""
    at = f"{root}/fs/resctrl"
    return sorted(glob.glob(f"{at}/{MBM}") + glob.glob(f"{at}/*/{MBM}"))  # noqa: PTH207


def bandwidth(files: list[str]) -> dict[str, int]:
    """Bytes by file; ValueError with the kernel's word where there is no number."""
    said = {}
    for path in files:
        value = text(path)
        if value is None or not value.isdecimal():
            raise ValueError(f"resctrl says {value or 'nothing'} of {path.split('resctrl/')[1]}")
        said[path.split("resctrl/")[1]] = int(value)
    return said


def absent(root: str, why: str) -> str:
    """Why neither can tell."""
    at = f"{root}/fs/resctrl"
    if not os.path.isdir(at):  # noqa: PTH112
        second = "and this kernel has no resctrl, or its CPU no memory bandwidth monitoring"
    elif not os.listdir(at):  # noqa: PTH208
        second = "and resctrl is not mounted (mount -t resctrl resctrl /sys/fs/resctrl)"
    else:
        second = "and resctrl here does not count memory traffic (mbm_total_bytes)"
    return f"{why}, {second}"


def source(root: str) -> tuple[str, Callable[[], dict[str, int]]]:
    """The way to ask: (words, function). ValueError with the reason if there is none."""
    why = "no memory controller has counters (uncore_imc), as in most virtual machines"
    try:
        fds = {name: (opened(kind, number, cpu), each) for name, kind, number, cpu, each in controllers(root)}
    except (OSError, KeyError) as exc:
        fds, why = {}, f"the memory controllers' counters cannot be opened ({exc})"
    if fds:
        return f"memory controllers, {len(fds)} counters", lambda: counted(fds)
    files = groups(root)
    if not files:
        raise ValueError(absent(root, why))
    bandwidth(files)
    return "resctrl, without what devices move (DMA)", lambda: bandwidth(files)


def say(what: object) -> None:
    """One line for who asked."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(root: str = "/sys") -> None:
    """Find the way, then answer."""
    try:
        words, ask = source(root)
    except ValueError as exc:
        say({"absent": str(exc)})
        return
    say({"source": words})
    for _ in sys.stdin:
        try:
            say(ask())
        except ValueError as exc:
            sys.exit(str(exc))


if __name__ == "__main__":
    main(*sys.argv[1:2])
