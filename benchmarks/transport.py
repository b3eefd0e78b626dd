"""What does ssh cost the suite? The same hardware tests in one VM, by the lab's agent and over ssh, in turns.

usage: python -m benchmarks.transport [--kernel 6.1] [--attach NAME] [--rounds 2] [--only EXPR]

The VM is a rack (`lab up --ssh`): an sshd in each of three namespaces. Each run is a pytest of its own with
`--attach` or `--lab`. Its first test opens the bench (over ssh: three log-ins and what is looked up then) and
reads programs for the first time; it is counted apart, once over the time of a whole suite. The others are
set beside each other. The VM emulates one processor, and that is what a run waits for: the shares are those
of its processor time, because a busy machine stretches the seconds of either at will. Both are printed. What
it takes while nobody asks it anything is looked at first, and taken off: that grows with the seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from offload.cmd import wait_until
from offload.errors import OffloadError, RigError
from offload.vm.kernels import fetch
from offload.vm.lab import Lab, described

ROOT = Path(__file__).parents[1]
BAR = 0.20  # of the suite's time
SUITE = 660.0  # seconds of `make certify` on an idle machine, README.md
ONLY = "(sends_to_stunnel or receives_from_stunnel or records_it_sends) and 12_aes_gcm_128"
LIMIT = 3600  # seconds
REST = 10.0  # seconds for which the VM is left alone
TICK = os.sysconf("SC_CLK_TCK")


class Cost(NamedTuple):
    """A run: processor seconds of the VM up to the end of the first test; those and seconds of the others."""

    first: float
    cpu: float
    wall: float
    outcomes: dict[str, str]


def spent(lab: Lab) -> float:
    """Processor seconds of a VM so far."""
    fields = Path(f"/proc/{described(lab.name)['pid']}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def resting(lab: Lab) -> float:
    """Processor seconds that a VM takes in a second in which nobody asks it anything."""
    began, since = spent(lab), time.monotonic()
    time.sleep(REST)
    return (spent(lab) - began) / (time.monotonic() - since)


def outcomes(events: Path) -> dict[str, str]:
    """Each test's outcome so far, in order."""
    lines = events.read_text().split("\n")[:-1] if events.exists() else []
    return {e["id"]: e["outcome"] for e in map(json.loads, lines) if e["event"] == "test"}


def run(lab: Lab, how: list[str], only: str, rest: float) -> Cost:
    """Run the tests, and take off what the VM takes anyhow; RigError if one that counts does not pass."""
    with tempfile.TemporaryDirectory(prefix="ktls-transport-") as folder:
        cost = timed(lab, how, only, Path(folder))
    return cost._replace(cpu=cost.cpu - rest * cost.wall)


def timed(lab: Lab, how: list[str], only: str, folder: Path) -> Cost:
    """Run them, with what they leave in a folder."""
    events, env = folder / "events.jsonl", {**os.environ, "KTLS_OFFLOAD_STATE": str(folder / "state")}
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--events", str(events), *how]
    lab.see_changes()  # so does --attach by itself: the guest forgets what it has read
    began = spent(lab)
    with (folder / "log").open("wb") as log:
        child = subprocess.Popen([*argv, "-k", only, "tests/hw"], cwd=ROOT, env=env, stdout=log, stderr=log)
        wait_until(lambda: bool(outcomes(events)) or child.poll() is not None, LIMIT, "the first test", 0.2)
        first, since = spent(lab), time.monotonic()
        child.wait(LIMIT)
    cpu, wall = spent(lab) - first, time.monotonic() - since
    found = dict(list(outcomes(events).items())[1:])
    if set(found.values()) != {"pass"}:
        raise RigError(f"{' '.join(how)}: {found}\n{(folder / 'log').read_text()[-2000:]}")
    return Cost(first - began, cpu, wall, found)


def measure(lab: Lab, only: str, rounds: int) -> bool:
    """Run both in turns, print what they took; whether the bar is held."""
    ways = {"agent": ["--attach", lab.name], "ssh": ["--lab", str(lab.folder / "ssh" / "lab.yaml")]}
    costs: dict[str, list[Cost]] = {name: [] for name in ways}
    rest = resting(lab)
    print(f"  left alone the VM takes {rest:.3f} s in a second")
    for number in range(rounds):
        for name in list(ways)[:: -1 if number % 2 else 1]:  # there and back: what drifts, drifts for both
            cost = run(lab, ways[name], only, rest)
            costs[name].append(cost)
            others = f"{len(cost.outcomes)} others {cost.wall:7.1f} s, VM {cost.cpu:6.1f} s"
            print(f"  {name:<6} first test: VM {cost.first:6.1f} s; {others}", flush=True)
    if any(a.outcomes != b.outcomes for a, b in zip(*costs.values(), strict=True)):
        raise RigError("the transports do not say the same")
    return report(costs)


def report(costs: dict[str, list[Cost]]) -> bool:
    """Print the shares; whether the bar is held."""
    agent, ssh = (sum(cost.cpu for cost in costs[name]) for name in ("agent", "ssh"))
    seconds = [sum(cost.wall for cost in costs[name]) for name in ("agent", "ssh")]
    first = [statistics.mean(cost.first for cost in costs[name]) for name in ("agent", "ssh")]
    share, once = ssh / agent - 1, first[1] - first[0]
    whole = share + once / SUITE
    held = whole < BAR
    print(f"a test over ssh takes {share:+.1%} of the VM's time; to open the bench, {once:+.1f} s once")
    print(f"on the wall clock {seconds[1] / seconds[0] - 1:+.1%}")
    word = "held" if held else "MISSED"
    print(f"over a suite of {SUITE:.0f} s: {whole:+.1%}; bar: under {BAR:.0%}: {word}")
    print(f"load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    return held


def main() -> int:
    """Measure in a lab of its own, or one that is up."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--attach", default="", metavar="NAME", help="a lab of `lab up --ssh`")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--only", default=ONLY, metavar="EXPR")
    args = parser.parse_args()
    try:
        if args.attach:
            with Lab.attach(args.attach) as lab:
                return 0 if measure(lab, args.only, args.rounds) else 1
        with Lab.boot(fetch(args.kernel), say=lambda line: None, ssh=True) as lab:
            return 0 if measure(lab, args.only, args.rounds) else 1
    except OffloadError as exc:
        print(exc, file=sys.stderr)
        return exc.exit_code


if __name__ == "__main__":
    sys.exit(main())
