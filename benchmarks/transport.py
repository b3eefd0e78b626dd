"""What does ssh cost the suite? The same hardware tests in one VM, by the lab's agent and over ssh, in turns.

usage: python -m benchmarks.transport [--kernel 6.1] [--attach NAME] [--rounds 2]
                                      [--every 10 | --whole | --only EXPR]

The VM is a rack (`lab up --ssh`): an sshd in each of three namespaces. Each run is a pytest of its own with
`--attach` or `--lab`. Three tests go first: they open the bench (over ssh: three log-ins and what is looked
up then) and read programs for the first time, which a suite does once. Then comes every tenth test of
tests/hw in pytest's order, from the fifth on: a sample that is the same in every run. What these take
stands for all of them. Left out is what the lab does in a VM of its own, and what only one of the two does.

Of the rounds each test's least counts, for what else runs only adds. Two shares are printed. By the clock:
what a person waits for, and what the bar means; but on a busy machine it tells what the others did. By the
processor, of the VM and of what runs the tests: what a suite waits for besides is the same in both ways and
not in it, so that share is the larger one. So it decides where anything else runs, and the clock where not.
Where so much runs that rounds of the same way differ in it, nothing is decided: run it alone.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from benchmarks.transport_meter import TICK, spent
from offload.cmd import run as command
from offload.debian.kernels import fetch
from offload.errors import CommandFailed, OffloadError, RigError
from offload.suite.bench.vm.lab import Lab, described

ROOT = Path(__file__).parents[1]
BAR = 0.20  # of the suite's time
EVERY = 10
# a payload test, one with a capture and its proof, one of connections that it holds: what a suite starts once
FIRST = (
    "tests/hw/2_bytes/test_20_wire.py::test_sends_to_stunnel[tx-12_aes_gcm_128-v4]",
    "tests/hw/2_bytes/test_21_records.py::test_records_it_sends[tx-12_aes_gcm_128-v4]",
    "tests/hw/4_lifetime/test_40_lifecycle.py::test_link_down_leaves_it_to_software",
)
# the lab counts instructions in a VM of its own there, or takes smaller files than a real bench
ELSEWHERE = ("test_51_", "test_63_", "test_64_", "test_66_")
LIMIT = 7200  # seconds
REST = 10.0  # seconds for which the VM is left alone
QUIET = 0.15  # cores that others may take on an idle machine
STEADY = BAR / 4  # how far rounds of the same way may lie apart for a share to mean anything


class Took(NamedTuple):
    """What a test took: its outcome, seconds by the clock and of processors, requests to agents."""

    outcome: str
    wall: float
    cpu: float
    requests: int

    def least(self, other: Took) -> Took:
        """The lesser of two times of the same test."""
        return Took(self.outcome, *(min(pair) for pair in zip(self[1:], other[1:], strict=True)))


class Whole(NamedTuple):
    """What a whole suite would take, by the clock and of processors; requests of a test."""

    wall: float
    cpu: float
    requests: float


Run = dict[str, Took]


def collected(only: str) -> list[str]:
    """The hardware tests in pytest's order."""
    argv = [sys.executable, "-m", "pytest", "-q", "--collect-only", "--no-header", "-p", "no:cacheprovider"]
    rc, out, err, _ = command([*argv, "-k", only, "tests/hw"], timeout=300, cwd=str(ROOT))
    if rc not in (0, 5):  # 5: no tests
        raise CommandFailed(argv, rc, out, err)
    return [line for line in out.decode().splitlines() if "::" in line]


def counted(names: Sequence[str]) -> list[str]:
    """Those that both ways do alike, without the first ones."""
    return [name for name in names if not any(word in name for word in ELSEWHERE) and name not in FIRST]


def sample(names: Sequence[str], every: int) -> list[str]:
    """Every so-many-th of them, beginning with the middle one of the first so many."""
    return [name for at, name in enumerate(names) if at % every == (every - 1) // 2]


def resting(lab: Lab) -> float:
    """Processor seconds that a VM takes in a second in which nobody asks it anything."""
    pid = described(lab.name)["pid"]
    began, since = spent(pid), time.monotonic()
    time.sleep(REST)
    return (spent(pid) - began) / (time.monotonic() - since)


def busy() -> float:
    """Processor seconds of this machine so far, whoever took them: user to steal without idle (proc(5))."""
    fields = [int(word) for word in Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]]
    return (sum(fields) - fields[3] - fields[4]) / TICK


def run(lab: Lab, how: list[str], names: Sequence[str], rest: float) -> tuple[Run, float]:
    """Run the tests: what each took, and how many cores somebody else took meanwhile."""
    pid = described(lab.name)["pid"]

    def ours() -> float:
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return spent(pid) + used.ru_utime + used.ru_stime

    with tempfile.TemporaryDirectory(prefix="ktls-transport-") as folder:
        began, all_, since = ours(), busy(), time.monotonic()
        took = timed(lab, how, names, rest, Path(folder))
        others = (busy() - all_ - (ours() - began)) / (time.monotonic() - since)
    return took, max(0.0, others)


def timed(lab: Lab, how: list[str], names: Sequence[str], rest: float, folder: Path) -> Run:
    """Run them, with what they leave in a folder. RigError for one that neither passes nor is skipped."""
    events, meter, log = (folder / name for name in ("events.jsonl", "meter.jsonl", "log"))
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--events", str(events), *how]
    argv += ["-p", "benchmarks.transport_meter", "--meter", str(meter)]
    argv += ["--meter-vm", str(described(lab.name)["pid"])]
    lab.see_changes()  # so does --attach by itself: the guest forgets what it has read
    with log.open("wb") as out:
        env = {**os.environ, "KTLS_OFFLOAD_STATE": str(folder / "state")}
        subprocess.run([*argv, *names], cwd=ROOT, env=env, stdout=out, stderr=out, timeout=LIMIT)
    words = {row["id"]: row["outcome"] for row in rows(events) if row["event"] == "test"}
    if set(words) != set(names) or not set(words.values()) <= {"pass", "skip", "xfail"}:
        wrong = {name: words.get(name, "not run") for name in names if words.get(name) != "pass"}
        raise RigError(f"{' '.join(how)}: {wrong}\n{log.read_text(errors='replace')[-2000:]}")
    return {row["id"]: taken(words[row["id"]], row, rest) for row in rows(meter)}


def rows(path: Path) -> list[dict[str, object]]:
    """The lines of a file of JSON lines that may not be there."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def taken(outcome: str, row: dict[str, object], rest: float) -> Took:
    """A line of the meter, without what the VM takes anyhow."""
    wall, vm, own, requests = (float(str(row[name])) for name in ("wall", "vm", "own", "requests"))
    return Took(outcome, wall, vm + own - rest * wall, int(requests))


def least(runs: Iterable[Run]) -> Run:
    """Of each test the least that it took."""
    found: Run = {}
    for took in runs:
        found |= {name: one.least(found.get(name, one)) for name, one in took.items()}
    return found


def alike(agent: Run, ssh: Run) -> tuple[list[str], list[str]]:
    """The tests whose outcome both ways say, and those that one leaves out. RigError for anything else."""
    out = [name for name in agent if "skip" in (agent[name].outcome, ssh[name].outcome)]
    same = [name for name in agent if name not in out]
    if wrong := [name for name in same if agent[name].outcome != ssh[name].outcome]:
        raise RigError(f"the transports do not say the same: {', '.join(wrong)}")
    return same, out


def whole(took: Run, names: Sequence[str], of: int) -> Whole:
    """What a suite of so many tests takes: the first ones once, and the others as these do."""
    first, others = ([took[name] for name in names if (name in FIRST) == once] for once in (True, False))
    wall, cpu = (
        sum(one[at] for one in first) + sum(one[at] for one in others) * of / len(others) for at in (1, 2)
    )
    return Whole(wall, cpu, sum(one.requests for one in others) / len(others))


def measure(lab: Lab, names: Sequence[str], of: int, rounds: int) -> bool:
    """Run both in turns, print what they took; whether the bar is held."""
    transports = {"agent": ["--attach", lab.name], "ssh": ["--lab", str(lab.folder / "ssh" / "lab.yaml")]}
    runs: dict[str, list[Run]] = {name: [] for name in transports}
    rest, most = resting(lab), 0.0
    print(f"  left alone the VM takes {rest:.3f} s in a second")
    for number in range(rounds):
        for transport in list(transports)[
            :: -1 if number % 2 else 1
        ]:  # there and back: what drifts, drifts for both
            took, others = run(lab, transports[transport], [*FIRST, *names], rest)
            runs[transport].append(took)
            most = max(most, others)
            print(f"  {transport:<6} {line(took)}; others took {others:.2f} cores", flush=True)
    apart = max(between(own, [*FIRST, *names]) for own in runs.values())
    return report(least(runs["agent"]), least(runs["ssh"]), of, most, apart)


def between(rounds: Sequence[Run], names: Sequence[str]) -> float:
    """How far the rounds of one way lie apart: what a share can be wrong by."""
    totals = [sum(took[name].cpu for name in names) for took in rounds]
    return max(totals) / min(totals) - 1


def line(took: Run) -> str:
    """What a run took."""
    first, others = (
        [sum(one[at] for name, one in took.items() if (name in FIRST) == once) for at in (1, 2)]
        for once in (True, False)
    )
    return (
        f"first: {first[0]:6.1f} s, processors {first[1]:5.1f} s; "
        f"others: {others[0]:6.1f} s, processors {others[1]:6.1f} s"
    )


def report(agent: Run, ssh: Run, of: int, others: float, apart: float) -> bool:
    """Print the shares; whether the bar is held. RigError if they do not say.

    `others`: the most cores that somebody else took; `apart`: how far rounds of the same way differ.
    """
    same, out = alike(agent, ssh)
    a, s = whole(agent, same, of), whole(ssh, same, of)
    if out:
        print(f"left out, because one way skips it: {', '.join(name.rpartition('::')[2] for name in out)}")
    print(f"requests of a test: {a.requests:.0f} and {s.requests:.0f}")
    print(f"a suite of {of} tests, agent and ssh: {a.wall:.0f} and {s.wall:.0f} s by the clock,")
    print(f"  {a.cpu:.0f} and {s.cpu:.0f} s of processors")
    shares = {"clock": s.wall / a.wall - 1, "processor": s.cpu / a.cpu - 1}
    print(", ".join(f"by the {name} ssh costs {share:+.1%}" for name, share in shares.items()))
    print(f"rounds of the same way differ by up to {apart:.0%} of processor time")
    print(f"load: {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    by, why = deciding(others, apart)
    held = shares[by] < BAR
    print(f"the {by} decides: {why}")
    print(f"bar: under {BAR:.0%} of the suite's time: {shares[by]:+.1%}, {'held' if held else 'MISSED'}")
    return held


def deciding(others: float, apart: float) -> tuple[str, str]:
    """By which share the bar is held or missed, and why. RigError if by neither."""
    if others < QUIET:
        return "clock", f"others took at most {others:.2f} cores, so it is what the suite's time is"
    taken_by = f"others took up to {others:.2f} cores"
    if apart > STEADY:
        raise RigError(
            f"not decided: {taken_by}, and rounds of the same way differ by {apart:.0%}", "run it alone"
        )
    why = "what both ways only wait for is not in it, so it is no less than the clock's on an idle machine"
    return "processor", f"{taken_by}, which stretches the clock; {why}"


def asked() -> argparse.Namespace:
    """The command line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--attach", default="", metavar="NAME", help="a lab of `lab up --ssh`")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--every", type=int, default=EVERY, metavar="N", help=f"every Nth test ({EVERY})")
    parser.add_argument("--whole", action="store_true", help="every test: half an hour")
    parser.add_argument("--only", default="", metavar="EXPR", help="all tests that pytest's -k finds")
    return parser.parse_args()


def main() -> int:
    """Measure in a lab of its own, or one that is up."""
    args = asked()
    try:
        names = counted(collected(args.only))
        chosen = sample(names, 1 if args.whole or args.only else args.every)
        if not chosen:
            raise RigError("no test is left to measure")
        files = len({name.partition("::")[0] for name in chosen})
        print(f"{len(chosen)} of {len(names)} tests, from {files} files, after {len(FIRST)} first ones")
        if args.attach:
            with Lab.attach(args.attach) as lab:
                return 0 if measure(lab, chosen, len(names), args.rounds) else 1
        with Lab.boot(fetch(args.kernel), say=lambda line: None, ssh=True) as lab:
            return 0 if measure(lab, chosen, len(names), args.rounds) else 1
    except OffloadError as exc:
        print(exc, file=sys.stderr)
        return exc.exit_code


if __name__ == "__main__":
    sys.exit(main())
