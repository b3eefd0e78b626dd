"""The CPU meter against loads that are known: does x cores read x, and what does the meter itself cost?

usage: python -m benchmarks.meter [--seconds 20] [--loads 0.25 0.5 1 1.5] [--samples 20]

A load is one child per core or part of one; what it really ran is read from its own clock
(CLOCK_PROCESS_CPUTIME_ID), so a machine that cannot give it all of x is no error. What other work took
meanwhile is taken off the reading of /proc/stat where the kernel tells it exactly; else it is in the reading,
and the machine must be idle. Where a hypervisor steals time, ticks cannot tell who ran while it was stolen: a
row of /proc/stat that is off by no more than what was stolen is open, not missed.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from offload.errors import OffloadError
from offload.host.local import LocalHost
from offload.suite.measure.cpu.cycles import counting
from offload.suite.measure.cpu.meter import INTERVAL, Meter, Snapshot, Use
from offload.suite.measure.cpu.tasks import Tasks, tasks

CPUACCT = Path(
    "/sys/fs/cgroup/cpuacct/cpuacct.usage"
)  # control groups of version 1: ns of all tasks, also ended ones
SCHEDSTAT = Path("/proc/schedstat")  # where the kernel has CONFIG_SCHEDSTATS
TOLERANCE, COST = 1.0, 0.1  # %: of the load; of a core
# Runs ahead of its duty by at most 2 ms, then sleeps.
LOAD = """
import sys, time
duty, began = float(sys.argv[1]), time.monotonic() - 0.01
while True:
    while time.process_time() < duty * (time.monotonic() - began): pass
    time.sleep(0.002)
"""


@dataclass(frozen=True)
class Moment:
    """What is read at one end of a window; clocks in ns: what the load ran, what all tasks ran."""

    ran: float
    all: float | None
    shot: Snapshot
    ran_by_tasks: float
    tasks: Tasks


def clock(pid: int) -> int:
    """ns on a CPU by a process's own clock."""
    return time.clock_gettime_ns(((~pid) << 3) | 2)  # clock_getcpuclockid(3): CPUCLOCK_SCHED


def ran(pids: Sequence[int]) -> int:
    """ns that the load ran so far."""
    return sum(map(clock, pids))


def everything() -> int | None:
    """ns that all tasks of this machine ran so far, or None where the kernel does not tell."""
    if CPUACCT.exists():
        return int(CPUACCT.read_text())
    if SCHEDSTAT.exists():
        found = re.findall(r"^cpu\d+(?: \d+){6} (\d+)", SCHEDSTAT.read_text(), re.M)
        return sum(map(int, found)) or None
    return None


@contextlib.contextmanager
def load(cores: float) -> Iterator[list[int]]:
    """Children that burn so many cores together; yields their process numbers."""
    duties = [min(1.0, cores - at) for at in range(int(-(-cores // 1)))]
    argv = [sys.executable, "-I", "-S", "-c", LOAD]
    with contextlib.ExitStack() as stack:
        pids = []
        for duty in duties:
            child = subprocess.Popen([*argv, str(duty)])
            stack.callback(child.wait)
            stack.callback(child.kill)
            pids.append(child.pid)
        time.sleep(1)  # until Python has started and the duty is caught up
        yield pids


def moment(meter: Meter, pids: Sequence[int]) -> Moment:
    """Read the meter between two readings of its witnesses: the middle of both is its moment."""
    began, all_began = ran(pids), everything()
    shot = meter.snapshot()
    all_ended, ended = everything(), ran(pids)
    threads = tasks(meter.host, pids)
    everyone = None if all_began is None or all_ended is None else (all_began + all_ended) / 2
    return Moment((began + ended) / 2, everyone, shot, (ended + ran(pids)) / 2, threads)


def line(name: str, value: float, unit: str, bar: float, unsure: float = 0.0) -> bool:
    """Print a row: a figure beside the most that is allowed, above or below 0; False only if it is missed.

    `unsure`: how far the machine itself, not the meter, can have moved the figure.
    """
    held, missed = abs(value) <= bar, abs(value) > bar + unsure
    wanted = f"at most {bar:g}{unit}"
    verdict = "held" if held else "MISSED" if missed else "open"
    print(f"| {name:46} | {value:8.3f}{unit} | {wanted:15} | {verdict:6} |", flush=True)
    return not missed


def calibrate(meter: Meter, cores: float, seconds: float, notes: list[str]) -> list[bool]:
    """Both readings of one load; a smaller load gets a longer window, for clocks are rounded to 10 ms."""
    with load(cores) as pids:
        first = moment(meter, pids)
        time.sleep(seconds if cores >= 0.5 else seconds * 0.5 / cores)
        last = moment(meter, pids)
    use = last.shot - first.shot
    burned = (last.ran - first.ran) / 1e9 / use.seconds
    by_tasks = (last.tasks - first.tasks).total() / (last.ran_by_tasks - first.ran_by_tasks)
    others = None
    if first.all is not None and last.all is not None:
        others = (last.all - first.all) / 1e9 / use.seconds - burned
    notes.append(said(cores, burned, use, others))
    by_stat = (use.cores - (others or 0.0)) / burned
    stolen = 100 * use.steal / burned  # %: a hypervisor's; ticks in it are taken off what was busy
    return [
        line(f"{cores:g} cores by schedstat: off by", 100 * (by_tasks - 1), " %", TOLERANCE),
        line(f"{cores:g} cores by /proc/stat: off by", 100 * (by_stat - 1), " %", TOLERANCE, stolen),
    ]


def said(cores: float, burned: float, use: Use, others: float | None) -> str:
    """What the machine did meanwhile."""
    taken = "not known, not taken off" if others is None else f"{others:.3f} taken off"
    return f"{cores:g} cores: ran {burned:.4f} in {use.seconds:.2f} s; other work {taken}; {use.say()}"


def own_cost(meter: Meter, samples: int, notes: list[str]) -> bool:
    """CPU of this process and its children while it does nothing but take snapshots, INTERVAL apart."""
    meter.snapshot()
    began, times = time.monotonic(), os.times()
    spent = time.process_time()
    for _ in range(samples):
        time.sleep(INTERVAL)
        meter.snapshot()
    wall = time.monotonic() - began
    ended = os.times()
    children = ended.children_user + ended.children_system - times.children_user - times.children_system
    cost = time.process_time() - spent + children
    notes.append(f"a snapshot of {os.cpu_count()} CPUs costs {cost / samples * 1e6:.0f} us")
    return line(f"the meter itself, a snapshot every {INTERVAL:g} s", 100 * cost / wall, " %", COST)


def main(argv: Sequence[str] | None = None) -> int:
    """Run all; exit 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=20, help="window of a load")
    parser.add_argument("--loads", type=float, nargs="+", default=[0.25, 0.5, 1.0, 1.5])
    parser.add_argument("--samples", type=int, default=20)
    args = parser.parse_args(argv)
    notes: list[str] = []
    print(f"| {'':46} | {'':10} | {'bar':15} | {'':6} |\n|{'-' * 48}|{'-' * 12}|{'-' * 17}|{'-' * 8}|")
    try:
        meter = Meter(LocalHost())
        held = [ok for cores in args.loads for ok in calibrate(meter, cores, args.seconds, notes)]
        held.append(own_cost(meter, args.samples, notes))
        with counting(meter.host) as counter:
            notes.append(f"cycles: {counter.absent or 'counted'}")
    except OffloadError as exc:
        print(f"bench: error: {exc}", file=sys.stderr)
        return exc.exit_code
    print("\n" + "\n".join(notes))
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
