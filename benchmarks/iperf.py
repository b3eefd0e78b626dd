"""What do the hooks of iperf3-tls cost a plain test? Beside the stock iperf3, each ratio beside its bar.

usage: python -m benchmarks.iperf [--rounds 60] [--mib 512] [--stock /usr/bin/iperf3] [--only reverse]

The two take turns over loopback (A/B, B/A, ...), client and server of the same program; the first pair is
dropped. What counts is the median of the paired ratios with a 95 % confidence interval by bootstrap: a bar
is held or missed where the whole interval lies on one side of it, else it is open: more rounds, or a machine
that does nothing else (benchmarks/iperf_cost.py counts, and needs none). Short tests of a fixed size, so that
what else runs here meets both alike; client and server have a core each (iperf3's -A), or else the
scheduler's choice is most of what is measured.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = ROOT / "build" / "iperf3-tls"
MODES: dict[str, tuple[str, ...]] = {"one stream": (), "4 streams, -Z": ("-P", "4", "-Z"), "reverse": ("-R",)}


PINNED = ("-A", "0,1") if len(os.sched_getaffinity(0)) > 1 else ()


def free_port() -> int:
    """A port on which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def run(program: str, mib: int, mode: Sequence[str]) -> tuple[float, float]:
    """One test: (bytes per second, CPU seconds of both ends per byte); it has to move data."""
    port = free_port()
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([program, "-s", "-1", "-p", str(port)], **quiet)
    argv = [program, "-c", "127.0.0.1", "-p", str(port), "-n", f"{mib}M", "-J", *PINNED, *mode]
    try:
        for _ in range(200):
            done = subprocess.run(argv, capture_output=True, text=True)
            found = json.loads(done.stdout)
            if "unable to connect" not in found.get("error", ""):
                break
            time.sleep(0.02)
        server.wait(20)
    finally:
        server.kill()
        server.wait()
    assert done.returncode == 0 and "error" not in found, found.get("error", done.stderr)
    got = found["end"]["sum_sent"]
    assert got["bytes"] > 1 << 20, got
    used = found["end"]["cpu_utilization_percent"]  # of one core while the test ran: no start, no end
    share = (used["host_total"] + used["remote_total"]) / 100
    return got["bits_per_second"] / 8, share * got["seconds"] / got["bytes"]


def interval(ratios: Sequence[float]) -> tuple[float, float, float]:
    """Median, and the 95 % interval of the median by bootstrap."""
    dice = random.Random(1)
    medians = sorted(statistics.median(dice.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[1949]


def line(name: str, ratios: Sequence[float], bar: float, most: bool) -> bool:
    """Print a row; False only where the bar is missed for certain."""
    middle, low, high = interval(ratios)
    inside = high <= bar if most else low >= bar
    missed = low > bar if most else high < bar
    word = "held" if inside else "MISSED" if missed else "open"
    wanted = f"{'at most' if most else 'at least'} {bar:g}"
    print(f"| {name:43} | {middle:6.4f} | {low:6.4f} ... {high:6.4f} | {wanted:13} | {word:6} |", flush=True)
    return not missed


def arm(name: str, mode: Sequence[str], args: argparse.Namespace) -> list[bool]:
    """Both programs by turns in one mode."""
    pairs = []
    for turn in range(args.rounds + 1):
        order = (str(OURS), args.stock) if turn % 2 else (args.stock, str(OURS))
        got = {program: run(program, args.mib, mode) for program in order}
        pairs.append((got[str(OURS)], got[args.stock]))
    speed, cost = ([ours[i] / stock[i] for ours, stock in pairs[1:]] for i in (0, 1))
    return [
        line(f"{name}: throughput, ours to stock", speed, 0.98, most=False),
        line(f"{name}: CPU per byte, ours to stock", cost, 1.02, most=True),
    ]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the modes; 1 if a bar is missed, 7 if a program is not there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=60, help="pairs that count, for each mode")
    parser.add_argument("--mib", type=int, default=512, help="what each stream of one test sends")
    parser.add_argument("--stock", default="/usr/bin/iperf3")
    parser.add_argument("--only", choices=MODES, nargs="+", default=list(MODES), help="these ways to send")
    args = parser.parse_args(argv)
    for program, how in ((str(OURS), "make -C native/iperf3"), (args.stock, "apt-get install iperf3")):
        if not Path(program).is_file():
            print(f"no {program}: {how}", file=sys.stderr)
            return 7
    print(f"| {'':43} | {'median':6} | {'95 % interval':17} | {'bar':13} | {'':6} |")
    print(f"|{'-' * 45}|{'-' * 8}|{'-' * 19}|{'-' * 15}|{'-' * 8}|")
    return 0 if all([held for name in args.only for held in arm(name, MODES[name], args)]) else 1


if __name__ == "__main__":
    sys.exit(main())
