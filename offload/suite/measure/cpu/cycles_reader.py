"""Runs on the host by `python3 -I -S -c`: counts the cycles of every online CPU, says them when asked.

First line: {"cpus": N}, or {"absent": why} and the end. Then for every line that comes in, one line:
{"CPU": [cycles, ns wanted, ns counted], ...}. Ends with its input.
"""

import ctypes
import errno
import json
import os
import platform
import struct
import sys

# __NR_perf_event_open
CALLS = {"x86_64": 298, "aarch64": 241, "riscv64": 241, "ppc64le": 319, "s390x": 331}
SIZE = 64  # PERF_ATTR_SIZE_VER0
TIMES = 1 | 2  # PERF_FORMAT_TOTAL_TIME_ENABLED, PERF_FORMAT_TOTAL_TIME_RUNNING
CLOEXEC = 8  # PERF_FLAG_FD_CLOEXEC
HARDWARE, CYCLES = 0, 0  # PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES
WHY = {
    errno.EACCES: "not permitted: run it as root, or lower kernel.perf_event_paranoid",
    errno.EPERM: "not permitted: run it as root, or lower kernel.perf_event_paranoid",
    errno.ENOENT: "this CPU has no cycle counter, like most virtual machines",
    errno.EOPNOTSUPP: "this CPU has no cycle counter, like most virtual machines",
    errno.ENODEV: "this CPU has no cycle counter, like most virtual machines",
    errno.ENOSYS: "this kernel has no perf_event_open",
}


def online() -> list[int]:
    """The CPUs that are online."""
    with open("/sys/devices/system/cpu/online") as file:  # noqa: PTH123 - runs without our package
        spans = [part.split("-") for part in file.read().strip().split(",")]
    return [cpu for span in spans for cpu in range(int(span[0]), int(span[-1]) + 1)]


def opened(cpu: int, kind: int = HARDWARE, config: int = CYCLES) -> int:
    """Return a descriptor that counts on one CPU, all tasks, user and kernel; OSError if it cannot."""
    attr = ctypes.create_string_buffer(struct.pack("=IIQQQQQ", kind, SIZE, config, 0, 0, TIMES, 0), SIZE)
    libc = ctypes.CDLL(None, use_errno=True)
    fd = libc.syscall(CALLS[platform.machine()], attr, -1, cpu, -1, CLOEXEC)
    if fd < 0:
        raise OSError(ctypes.get_errno(), "perf_event_open")
    return int(fd)


def say(what: object) -> None:
    """One line for who asked."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main() -> None:
    """Open, then answer."""
    try:
        counters = {cpu: opened(cpu) for cpu in online()}
    except KeyError:
        say({"absent": f"not supported on {platform.machine()}"})
        return
    except OSError as exc:
        why = WHY.get(exc.errno or 0, str(exc))
        say({"absent": why})
        return
    say({"cpus": len(counters)})
    for _ in sys.stdin:
        said = {cpu: struct.unpack("=QQQ", os.read(fd, 24)) for cpu, fd in counters.items()}
        say(said)


if __name__ == "__main__":
    main()
