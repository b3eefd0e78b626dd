"""What a history of 10,000 results costs: from the SQLite file to the answer, in words, JSON and as a page.

usage: python -m benchmarks.history [--count 10000] [--benches 40] [--keep FILE]

The results are made up: every bench has its runs day by day, some promises break and are repaired, every
result has 12 figures with intervals. Each answer is by a fresh process of one thread that waits for nothing:
its processor time is what a person waits on an idle machine, so the bar is on that.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

from offload.suite.report.compare.history_store import Entry, add, open_store
from offload.suite.report.criteria import load

BAR = 1.0  # seconds
CARDS = ("NVIDIA ConnectX-6 Dx", "NVIDIA ConnectX-7", "Chelsio T6", "NVIDIA BlueField-3")
KERNELS = ("6.1.0-56-amd64", "6.12.117-amd64", "7.2.12-amd64")


def fill(path: Path, count: int, benches: int) -> None:
    """Write a history of so many results on so many benches, the same for the same arguments."""
    store, promises = open_store(path, change=True), list(load().promises)
    cursor = store.cursor()
    cursor.execute("BEGIN")
    for number in range(count):
        add(cursor, result(number, benches, promises), f"results/{number:06}", str(number))
    store.commit()
    store.close()


def result(number: int, benches: int, promises: list[str]) -> Entry:
    """The result of this number: SYNTHETIC, no card and no lab gave it."""
    random, bench = Random(number), number % benches
    card, kernel = CARDS[bench % len(CARDS)], KERNELS[bench // len(CARDS) % len(KERNELS)]
    day = datetime(2024, 1, 1, tzinfo=UTC) + timedelta(hours=2 * number)
    bad = [name for n, name in enumerate(promises) if (number // benches + 7 * n + bench) % 90 < n % 9 // 2]
    trouble = tuple((name, random.choice(("broken", "broken", "limited", "not proved"))) for name in bad)
    verdict = "failed" if any(state == "broken" for _, state in trouble) else "certified"
    firmware = f"22.{30 + bench // (len(CARDS) * len(KERNELS))}.1014"
    finished = day.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    row = (card, kernel, firmware, 0, finished, verdict, f"{card}: {verdict}")
    means = [random.gauss(0.6 + 0.02 * n, 0.01) for n in range(12)]
    figures = tuple(
        (f"cores, hw to sw: nginx Tx, {n + 1} connections", m, m - 0.01, m + 0.01)
        for n, m in enumerate(means)
    )
    return Entry(hashlib.sha256(str(number).encode()).hexdigest(), row, trouble, figures)


def measure(path: Path, words: list[str]) -> tuple[float, float]:
    """Seconds of processor time and by the clock from the command to its answer; the best of three."""
    argv = [sys.executable, "-m", "offload", "report", "history", str(path), *words]
    took = []
    for _ in range(3):
        began, used = time.monotonic(), os.times()
        subprocess.run(argv, check=True, stdout=subprocess.DEVNULL)
        now = os.times()
        spent = now.children_user - used.children_user + now.children_system - used.children_system
        took.append((spent, time.monotonic() - began))
    return min(took)


def main() -> int:
    """Measure and print; 1 if the bar is missed."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--benches", type=int, default=40)
    parser.add_argument("--keep", type=Path, metavar="FILE", help="write the history here, and leave it")
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        path = args.keep or Path(name) / "history.sqlite"
        fill(path, args.count, args.benches)
        sys.stdout.write(
            f"{args.count:,} results of {args.benches} benches, {path.stat().st_size >> 20} MiB\n"
        )
        queries = {
            "words": [],
            "--nic T6": ["--nic", "T6"],
            "--json": ["--json"],
            "--html": ["--html", f"{name}/page.html"],
        }
        worst = 0.0
        for what, words in queries.items():
            spent, took = measure(path, words)
            worst = max(worst, spent)
            word = "held" if spent < BAR else "MISSED"
            sys.stdout.write(
                f"  {what:<10} {spent:6.2f} s   bar {BAR:g} s   {word:<6} ({took:.1f} s by the clock)\n"
            )
    return int(worst >= BAR)


if __name__ == "__main__":
    sys.exit(main())
