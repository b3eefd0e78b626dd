"""What the embedded lab costs: boot to agent, round trip of a command, memory; each beside its bar.

usage: python -m benchmarks.lab [--kernel 6.1] [--boots 3] [--rounds 5]

Times are of this machine and its load; memory is peak resident size in MiB (VmHWM).
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from offload.debian.kernels import fetch
from offload.errors import OffloadError
from offload.suite.bench.vm.lab import Lab

BARS = {"boot to agent, s": 8.0, "VM memory, MiB": 2048.0, "runner memory, MiB": 300.0}


def quiet(_: str) -> None:
    """Swallow progress lines."""


def spread(values: Sequence[float]) -> str:
    """Minimum, median and maximum as text."""
    return f"{min(values):8.2f} {statistics.median(values):8.2f} {max(values):8.2f}"


def peak_mib(pid: int) -> float:
    """Peak resident size of a process in MiB (VmHWM of /proc/PID/status)."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) / 1024
    return 0.0


def boot_once(series: str) -> tuple[float, float, float]:
    """Boot a lab with the bench in it: seconds to the agent, seconds to the bench, peak MiB of the VM."""
    lines: list[str] = []
    began = time.monotonic()
    with Lab.boot(fetch(series, quiet), say=lines.append) as lab:
        took = time.monotonic() - began
        agent = next(float(line.split(" after ")[1].split()[0]) for line in lines if "answers after" in line)
        return agent, took, peak_mib(lab.pid)


def round_trips(series: str, rounds: int) -> list[float]:
    """Milliseconds of `true` in the DUT namespace, one after the other."""
    with Lab.boot(fetch(series, quiet), say=quiet) as lab:
        return [lab.dut.run(["true"]).seconds * 1000 for _ in range(rounds * 10)]


def report(name: str, values: Sequence[float]) -> bool:
    """Print one figure with its bar, if it has one; say whether the median holds it."""
    bar = BARS.get(name)
    held = bar is None or statistics.median(values) <= bar
    verdict = "" if bar is None else f"bar {bar:g}: {'held' if held else 'MISSED'}"
    print(f"{name:24} {spread(values)}  {verdict}")
    return held


def main() -> int:
    """Run the arms; exit 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--boots", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    os.environ["LAB_SNAPSHOT"] = "off"  # what is timed is a boot
    try:
        boots = [boot_once(args.kernel) for _ in range(args.boots)]
        trips = round_trips(args.kernel, args.rounds)
    except OffloadError as exc:
        print(f"bench: error: {exc}", file=sys.stderr)
        return exc.exit_code
    print(f"kernel {args.kernel}, {args.boots} boots{'':8} min   median      max")
    held = [
        report("boot to agent, s", [b[0] for b in boots]),
        report("boot to bench, s", [b[1] for b in boots]),
        report("round trip of true, ms", trips),
        report("VM memory, MiB", [b[2] for b in boots]),
        report("runner memory, MiB", [resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024]),
    ]
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
