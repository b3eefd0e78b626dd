"""Certifies simulated benches with `certify --lab`, over ssh as a lab would, and keeps a record of the runs.

usage: python -m tests.lib.catalogue.bench_run [--kernel K] [--sample WORD] [--times N] [--turn] [--write]
       BENCH ...

BENCH: DUT,PEER (chelsio-t6,plain): a rack of three hosts, which are namespaces of a VM with an sshd in each;
or one-host: two cabled cards of one server, and two more for the wire. --sample required runs as few tests
as the criteria ask of each required promise; such a report says incomplete, so what ran is judged by
itself. --turn: the benches take turns, one a day (in UTC). Exit 1 if a run is not certified. --write adds
each run to benchmarks/results/benches.md.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from offload.debian.kernels import fetch
from offload.suite.bench.lab.model import ONE_HOST, ONE_WIRE
from offload.suite.bench.vm.lab import Lab
from offload.suite.report import criteria, events, facts
from offload.suite.report.spent import cpu_of
from offload.suite.report.verdict import Verdict, judge
from tests.lib.rig.sampling import day_of

ROOT = Path(__file__).parents[3]
RECORD = ROOT / "benchmarks/results/benches.md"
SERVER = "one-host"
CARDS = ("nicsim0", "nicsim1", "nswire0", "nswire1")  # DUT's, peer's, and the wire between them
SLOW = 900  # seconds: Python in an emulated guest
GOOD = ("certified", "certified with limitations")


def say(line: str) -> None:
    """Tell a person, at once."""
    sys.stdout.write(f"bench: {line}\n")
    sys.stdout.flush()


@dataclass(frozen=True)
class Done:
    """What a run came to: its report, the verdict on the tests that ran, seconds, and processor seconds."""

    report: Mapping[str, Any]
    verdict: Verdict
    seconds: float
    runner: float
    guest: float

    def proved(self) -> tuple[int, int]:
        """How many of the required promises are proved, and how many are asked of the card."""
        asked = [p for p in self.verdict.promises if p.criterion.required and p.state != "not promised"]
        return sum(p.state in ("kept", "limited") for p in asked), len(asked)

    def wrong(self) -> list[str]:
        """Why the card is not certified: the word, and each required promise that is not kept."""
        bad = [] if self.verdict.word in GOOD else [f"{self.verdict.word}: {self.verdict.headline}"]
        for one in self.verdict.promises:
            if one.criterion.required and one.state not in ("kept", "limited", "not promised"):
                bad.append(f"{one.criterion.id}: {one.reason}")
        return bad

    def row(self, bench: str, kernel: str, sample: str) -> list[str]:
        """The cells of the record."""
        proved, asked = self.proved()
        counts = Counter(test["outcome"] for test in self.report["tests"])
        tests = ", ".join(f"{count} {word}" for word, count in sorted(counts.items()))
        when = f"{self.report['started'][:16]}Z"
        spent = [f"{value:.0f}" for value in (self.seconds, self.runner, self.guest)]
        word = self.verdict.word if self.verdict.word == self.report["verdict"] else f"{self.verdict.word} *"
        code = self.report["judged"]["commit"][:10] + "+" * (self.report["judged"]["dirty"])
        return [when, code, bench, kernel, sample or "whole", tests, f"{proved} of {asked}", word, *spent]


def of_what_ran(log: events.Log) -> Verdict:
    """The verdict on the tests that ran, as if the run had no others."""
    for event in log.events:
        if event["event"] == "plan":
            event["deselected"] = []
    profile = next(event for event in log.events if event["event"] == "profile")
    return judge(log, criteria.load(), facts.from_event(profile))


def certified(lab: Lab, file: Path, out: Path, sample: str) -> Done:
    """Run `certify --lab` on the bench of this file."""
    began, spent, guest = time.monotonic(), os.times(), cpu_of(lab.pid) or 0.0
    argv = [sys.executable, "-m", "offload", "certify", "--lab", str(file), "--out", str(out)]
    env = {**os.environ, "KTLS_OFFLOAD_STATE": str(out.parent / "state")}
    env |= {"PYTEST_ADDOPTS": f"--sample={sample}"} if sample else {}
    subprocess.run(argv, env=env, stdin=subprocess.DEVNULL)
    report, now = json.loads((out / "report.json").read_text()), os.times()
    runner = now.children_user + now.children_system - spent.children_user - spent.children_system
    verdict = of_what_ran(events.read(out / "events.jsonl"))
    took = time.monotonic() - began, runner, (cpu_of(lab.pid) or 0.0) - guest
    return Done(report, verdict, *took)


@contextmanager
def bench(name: str, kernel: str) -> Iterator[tuple[Lab, Path]]:
    """The bench of this name, up, and its lab file."""
    cards = "connectx-6-dx" if name == SERVER else name
    with Lab.boot(fetch(kernel), kind="nicsim", personality=cards, ssh=True) as lab:
        file = lab.folder / "ssh" / "lab.yaml"
        if name != SERVER:
            yield lab, file
            return
        cabled(lab)
        typed(lab, "lab", "init", "--one-host", *CARDS[:2], "--wire", *CARDS[2:])
        yield lab, as_server(file)
        typed(lab, "lab", "restore")


def cabled(lab: Lab) -> None:
    """Bring all cards to the host of the DUT, as in a server: nothing of the suite's own wiring stays."""
    lab.root.run(["ip", "-n", "wire", "link", "del", "br0"])
    for space, dev in zip(("peer", "wire", "wire"), CARDS[1:], strict=True):
        lab.root.run(["ip", "-n", space, "link", "set", "dev", dev, "netns", "dut"])
    for dev in CARDS:
        lab.root.run(["ip", "-n", "dut", "link", "set", "dev", dev, "up"])


def typed(lab: Lab, *words: str) -> None:
    """`ktls-offload WORDS`, typed on the server; RigError or CommandFailed if it fails."""
    env = {"PYTHONPATH": str(ROOT), "KTLS_OFFLOAD_STATE": "/run/one-host/state"}
    script = ["sh", "-ec", 'mkdir -p /run/one-host; cd /run/one-host; exec "$@"', "sh"]
    argv = [*script, sys.executable, "-m", "offload", *words]
    for line in lab.bench.dut.host.run(argv, env=env, timeout=SLOW).text.splitlines():
        say(line)


def as_server(rack: Path) -> Path:
    """The lab file of one host that is reached over ssh: the DUT's login for all, ports by namespace."""
    document = yaml.safe_load(rack.read_text())
    targets = document["targets"]
    near = targets["dut"]["resources"]
    for role, space in (("peer", ONE_HOST), ("wire", ONE_WIRE)):
        there = {"OffloadHost": {**near["OffloadHost"], "netns": space}}
        targets[role]["resources"] |= {"NetworkService": near["NetworkService"], **there}
    file = rack.with_name("one-host.yaml")
    file.write_text(json.dumps(document, indent=1))
    return file


def day(sample: str, later: int, every: int = 1) -> str:
    """The sample with its day, N days after today: each of several runs has other tests.

    A bench whose turn is every Nth day counts its turns, or it would never see the tests of other days.
    """
    date = datetime.date.fromordinal(day_of("today") // every + later)
    return f"{sample}:{date}" if sample else ""


def of_today(benches: Sequence[str]) -> str:
    """The bench whose turn it is: each has every Nth day, in UTC."""
    return benches[day_of("today") % len(benches)]


def record(row: Sequence[str]) -> None:
    """Add a row to the record."""
    with RECORD.open("a") as out:
        out.write(f"| {' | '.join(row)} |\n")


def runs(name: str, args: argparse.Namespace) -> list[str]:
    """Certify one bench N times, on another day's sample each; what is wrong with what it came to."""
    found: list[str] = []
    every = len(args.benches) if args.turn else 1
    with bench(name, args.kernel) as (lab, file), tempfile.TemporaryDirectory() as place:
        for number in range(args.times):
            done = certified(lab, file, Path(place) / f"run-{number}", day(args.sample, number, every))
            proved, asked = done.proved()
            say(f"{name}: {done.report['verdict']}: {done.report['headline']}")
            say(f"{name}: by what ran: {done.verdict.word}, {proved} of {asked} required promises proved")
            say(f"{name}: {done.seconds:.0f} s, CPU: runner {done.runner:.0f} s, VM {done.guest:.0f} s")
            found += [f"{name}: {line}" for line in done.wrong()]
            if args.write:
                record(done.row(name, args.kernel, args.sample))
    return found


def main() -> int:
    """Certify the benches; 1 if a run was not certified."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--sample", default="")
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--turn", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("benches", nargs="+", metavar="BENCH")
    args = parser.parse_args()
    benches = [of_today(args.benches)] if args.turn else args.benches
    found = [line for name in benches for line in runs(name, args)]
    for line in found or [f"{', '.join(benches)}: certified, {args.times} of {args.times} times"]:
        say(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
