"""The wire verifier beside libcrypto, tshark and its own oracle: ratios of one run, each beside its bar.

usage: python -m benchmarks.wire [--mib 60] [--big-gib 4] [--repeat 41]

Seal and verify take turns in one process (`ktls-wire bench`); the median of their ratios counts, by CPU
seconds. Two threads are compared with one by the clock: the machine must be idle for them. Two verifiers with
nothing in common, each with its own copy of the files, show what the machine allows: no program passes that.
Needs about twice the size of the biggest capture in TMPDIR.
"""

from __future__ import annotations

import argparse
import json
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.bulk import Bulk, make
from offload.suite.wire.ask import Ask
from offload.suite.wire.oracle import verify

ROOT = Path(__file__).parents[1]
CORE = ROOT / "build" / "ktls-wire"
MIB = 1 << 20
notes: list[str] = []  # what is said below the table
SEGMENTS = {"64 KiB packets": 65483, "1500-byte MTU": 1448}
BARS = {  # by who seals
    "intel-ipsec-mb": {"64 KiB packets": 0.95, "1500-byte MTU": 0.85},
    "libcrypto": {"64 KiB packets": 0.7, "1500-byte MTU": 0.55},
}
THREADS = 1.8  # what two threads are wanted to gain


def children() -> float:
    """CPU seconds of all children so far."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def core(bulk: Bulk, threads: int, repeat: int) -> dict[str, Any]:
    """What `ktls-wire bench` says of a capture; it has to find it equal."""
    argv = [
        str(CORE),
        "bench",
        str(bulk.capture),
        "--keylog",
        str(bulk.keylog),
        "--payload",
        str(bulk.payload),
    ]
    argv += ["--threads", str(threads), "--repeat", str(repeat)]
    found: dict[str, Any] = json.loads(subprocess.run(argv, check=True, capture_output=True).stdout)
    assert found["outcome"] == "equal", found
    return found


def tshark(bulk: Bulk) -> float:
    """CPU seconds that tshark takes to decrypt a capture: it has to show the alert at its end."""
    began = children()
    argv = ["tshark", "-r", str(bulk.capture), "-o", f"tls.keylog_file:{bulk.keylog}"]
    argv += ["-d", "tcp.port==4433,tls", "-Y", "tls.alert_message.desc == 0"]
    done = subprocess.run(argv, check=True, capture_output=True, text=True)
    assert "Close Notify" in done.stdout, (
        f"tshark decrypted nothing: {done.stdout[-200:]}{done.stderr[-500:]}"
    )
    return children() - began


def oracle(bulk: Bulk) -> float:
    """CPU seconds of the Python oracle."""
    before = resource.getrusage(resource.RUSAGE_SELF)
    found = verify(Ask(bulk.capture, bulk.keylog, bulk.payload))
    after = resource.getrusage(resource.RUSAGE_SELF)
    assert found["outcome"] == "equal", found
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def row(name: str, value: float, unit: str, wanted: str, word: str) -> None:
    """Print a figure with its unit, its bar and how it ended."""
    print(f"| {name:52} | {value:6.2f}{unit:4} | {wanted:15} | {word:12} |", flush=True)


def line(name: str, value: float, unit: str, bar: float, most: bool = False) -> bool:
    """Print a row: a figure beside its bar (a minimum, or the most that is allowed); whether it holds."""
    held = value <= bar if most else value >= bar
    row(name, value, unit, f"{'at most' if most else 'at least'} {bar:g}{unit}", "held" if held else "MISSED")
    return held


def threads(name: str, found: dict[str, Any]) -> list[bool]:
    """Print what two threads gain; the bar counts where two verifiers with nothing in common can pass it."""
    gain, limit = found["threads_to_one"], found["apart_to_one"]
    word = "held" if gain >= THREADS else "MISSED" if limit >= THREADS else "out of reach"
    row(f"{name}: verify, two threads to one", gain, "x", f"at least {THREADS:g}x", word)
    row(f"{name}: two verifiers with nothing in common", limit, "x", "", "the limit")
    one, both = (found[f"read_{what}"] / 1e9 for what in ("one", "all"))
    notes.append(
        f"{name}: two threads take {found['threads_cpu']:.2f} times the CPU seconds of one; "
        f"one thread reads {one:.1f} GB/s from memory, two read {both:.1f} GB/s together"
    )
    near = line(f"{name}: two threads, as part of that limit", found["threads_to_apart"], "x", 0.95)
    return [word != "MISSED", near]


def parts(name: str, found: dict[str, Any]) -> str:
    """Where the processor time of a verify goes: two parts are measured alone, the third is the rest."""
    seal, read = found["own_to_verify"], found["read_to_verify"]
    return (
        f"{name}: of a verify, {seal:.0%} is sealing by {found['sealed_by']}, "
        f"{read:.0%} frames, streams and records, "
        f"{1 - seal - read:.0%} comparing, searching and waiting for memory"
    )


def alone(name: str, bulk: Bulk, repeat: int) -> tuple[dict[str, Any], list[bool]]:
    """Print the ratios of the core to libcrypto and to itself with two threads."""
    found = core(bulk, 2, repeat)
    bar = BARS[found["sealed_by"]][name]
    cost = {what: found[f"{what}_seconds"] for what in ("seal_cpu", "verify_cpu", "first_verify")}
    seal, verify, first = (found["app_bytes"] / seconds / 1e9 for seconds in cost.values())
    notes.append(
        f"{name}: libcrypto seals {seal:.2f} GB/s; ktls-wire verifies {verify:.2f} GB/s, "
        f"the first time, when the files are not mapped yet, {first:.2f} GB/s"
    )
    notes.append(parts(name, found))
    held = line(f"{name}: verify, one thread, to seal", found["verify_to_seal"], "x", bar)
    return found, [held, *threads(name, found)]


def rates(folder: Path, mib: int, repeat: int) -> list[bool]:
    """Print the ratios on captures of two packet sizes; tshark and oracle read that of small packets."""
    held = []
    for name, segment in SEGMENTS.items():
        bulk = make(folder, name.split()[0].replace("-", ""), mib * MIB, segment)
        one, kept = alone(name, bulk, repeat)
        held += kept
    cost = one["verify_cpu_seconds"]
    held.append(line(f"{name}: CPU seconds, tshark to verify", tshark(bulk) / cost, "x", 15))
    held.append(line(f"{name}: CPU seconds, oracle to verify", oracle(bulk) / cost, "x", 4))
    return held


PEAK = """
import resource, subprocess, sys
said = subprocess.run(sys.argv[1:], check=True, capture_output=True).stdout
assert b'"outcome":"equal"' in said, said[:500]
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


def memory(folder: Path, gib: float) -> bool:
    """Peak memory on a big capture, under a small parent: a child begins with the peak of its parent."""
    size = int(gib * 1024) * MIB
    free = shutil.disk_usage(folder).free
    if free < 2.2 * size:
        print(f"no room for a capture of {gib:g} GiB in {folder}: {free >> 30} GiB free; bar not measured")
        return False
    bulk = make(folder, "big", size, SEGMENTS["64 KiB packets"])
    argv = [
        str(CORE),
        "verify",
        str(bulk.capture),
        "--keylog",
        str(bulk.keylog),
        "--payload",
        str(bulk.payload),
    ]
    said = subprocess.run(
        [sys.executable, "-c", PEAK, *argv, "--threads", "2"], check=True, capture_output=True
    )
    peak = int(said.stdout) / 1024
    return line(f"{gib:g} GiB capture: peak memory, two threads", peak, " MiB", 256, most=True)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the arms; exit 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--mib", type=int, default=60, help="application data per capture; up to 60 stays mapped"
    )
    parser.add_argument("--big-gib", type=float, default=4, help="the capture of the memory bar; 0: none")
    parser.add_argument("--repeat", type=int, default=41)
    args = parser.parse_args(argv)
    folder = Path(tempfile.mkdtemp(prefix="ktls-wire-bench-"))
    steps: list[Callable[[], list[bool]]] = [lambda: rates(folder, args.mib, args.repeat)]
    if args.big_gib:
        steps.append(lambda: [memory(folder, args.big_gib)])
    print(f"| {'':52} | {'':10} | {'bar':15} | {'':12} |\n|{'-' * 54}|{'-' * 12}|{'-' * 17}|{'-' * 14}|")
    try:
        held = all([held for step in steps for held in step()])
        print("\n" + "\n".join(notes))
        return 0 if held else 1
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    sys.exit(main())
