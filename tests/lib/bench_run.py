"""Certifies a rack of simulated hosts over ssh, as a lab would: every test, and each required promise proved.

usage: python -m tests.lib.bench_run [--kernel SERIES] [--cards DUT,PEER] [--times N]

A VM with an sshd in each namespace stands for DUT, wire box and peer. The peer has an ordinary card, unless
told otherwise. Exit 1 if a run is not certified.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from offload.debian.kernels import fetch
from offload.suite.bench.vm.lab import Lab


def say(line: str) -> None:
    """Tell a person, at once."""
    sys.stdout.write(f"bench: {line}\n")
    sys.stdout.flush()


def wrong(report: dict[str, Any]) -> list[str]:
    """Why a report is none of a certified card: its word, and each required promise that is not kept."""
    word = str(report["verdict"])
    bad = [] if word in ("certified", "certified with limitations") else [f"{word}: {report['headline']}"]
    asked = [p for p in report["promises"] if p["blocker"] and p["state"] != "not promised"]
    return bad + [f"{p['id']}: {p['reason']}" for p in asked if p["state"] not in ("kept", "limited")]


def certified(file: Path, out: Path, state: Path) -> list[str]:
    """Run `certify --lab` on the bench of this file; what is wrong with what it came to."""
    began, spent = time.monotonic(), os.times()
    argv = [sys.executable, "-m", "offload", "certify", "--lab", str(file), "--out", str(out)]
    subprocess.run(argv, env={**os.environ, "KTLS_OFFLOAD_STATE": str(state)}, stdin=subprocess.DEVNULL)
    report = json.loads((out / "report.json").read_text())
    now = os.times()
    cpu = now.children_user + now.children_system - spent.children_user - spent.children_system
    took = f"{time.monotonic() - began:.0f} s ({cpu:.0f} s of the runner's CPU)"
    say(f"{report['verdict']} after {took}: {report['headline']}")
    return wrong(report)


def main() -> int:
    """Boot the rack, certify it so many times; 1 if a run was not certified."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--cards", default="connectx-6-dx,plain")
    parser.add_argument("--times", type=int, default=1)
    args = parser.parse_args()
    found: list[str] = []
    lab = Lab.boot(fetch(args.kernel), kind="nicsim", personality=args.cards, ssh=True)
    with lab, tempfile.TemporaryDirectory() as place:
        for number in range(args.times):
            out = Path(place) / f"run-{number}"
            found += certified(lab.folder / "ssh" / "lab.yaml", out, Path(place) / "state")
    for line in found or [f"{args.cards}: certified {args.times} times"]:
        say(line)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
