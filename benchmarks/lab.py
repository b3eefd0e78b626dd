"""What the embedded lab costs: boot, round trip of a command, memory, throughput; each beside its bar.

usage: python -m benchmarks.lab [--kernel 6.1] [--kind nicsim|mlx5] [--boots 3] [--rounds 5]

Times are of this machine and its load; memory is peak resident size in MiB (VmHWM). Throughput is
payload of both directions together, two connections each way (`costload` in a VM of two vCPUs, two channels a
card where the driver has them): what 64 MiB each way take beyond 4 MiB, so that no start counts.
A host is faster in one hour than in another; "hw of plain" compares the two rows of each round.
The mlx5 lab carries each frame alone through its wire, for captures. Nothing captures here: its ports merge
frames (GRO) as Linux does by default, and the row "hw by frames" is the throughput without that.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from offload import paths
from offload.debian.kernels import fetch
from offload.errors import OffloadError, RigError
from offload.host.base import Process
from offload.host.vm import talk
from offload.suite.bench.vm import cards
from offload.suite.bench.vm.lab import Lab
from offload.suite.bench.vm.topology import ENDS

BARS = {"boot to agent, s": 8.0, "VM memory, MiB": 2048.0, "runner memory, MiB": 300.0}
OF_PLAIN = "hw of plain"  # throughput with TLS by the cards as a part of that without TLS, round by round
CARD_BARS = {
    "boot to bench, s": 10.0,
    "plain, MB/s": 50.0,
    "hw, MB/s": 50.0,
    OF_PLAIN: 0.75,
}  # mlx5, two cards
LOAD = paths.BUILD / "costload"
SIZES = (4 << 20, 64 << 20)  # bytes each way


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


def boot_once(series: str, kind: str) -> tuple[float, float, float]:
    """Boot a lab with the bench in it: seconds to the agent, seconds to the bench, peak MiB of the VM."""
    lines: list[str] = []
    began = time.monotonic()
    with Lab.boot(fetch(series, quiet), kind, say=lines.append) as lab:
        took = time.monotonic() - began
        agent = next(float(line.split(" after ")[1].split()[0]) for line in lines if "answers after" in line)
        return agent, took, peak_mib(lab.pid)


def round_trips(series: str, kind: str, rounds: int) -> dict[str, list[float]]:
    """Milliseconds in the DUT namespace: of `true`, and of a line to a program that says it again."""
    with Lab.boot(fetch(series, quiet), kind, say=quiet) as lab:
        return {
            "round trip of true, ms": [lab.dut.run(["true"]).seconds * 1000 for _ in range(rounds * 10)],
            "line by the agent, ms": echoes(lab.dut.start(["cat"]), rounds * 10),
            "line past it, ms": echoes(talk(lab.dut, ["cat"]), rounds * 10),
        }


def echoes(process: Process, count: int) -> list[float]:
    """Milliseconds from each line that a program gets until it has said it again; the first warms it up."""
    took = []
    for _ in range(1 + count):
        heard = len(process.news(0)[0])
        began = time.monotonic()
        process.stdin(b"line\n")
        while len(process.news(1)[0]) < heard + 5:
            pass
        took.append((time.monotonic() - began) * 1000)
    return took[1:]


def seconds(lab: Lab, arm: str, size: int) -> float:
    """How long the guest takes for `size` bytes each way, on two connections each way."""
    ends = [
        word for side in ("dut", "peer") for word in (f"--{side}", f"{side},{getattr(lab.bench, side).v4}")
    ]
    words = ["--warm", "65536", "--bytes", str(size), *ends, f"{arm}/both/2"]
    began = time.monotonic()
    done = lab.root.run([str(LOAD), *words], timeout=120)
    took = time.monotonic() - began
    by = {who for end in json.loads(done.stdout)["ends"].values() for who in end.values()}
    if by != {"hw" if arm == "hw" else "none"}:
        raise RigError(f"row {arm} was done by {', '.join(sorted(by))}")
    return took


def rate(lab: Lab, arm: str) -> float:
    """MB/s of payload, both ways together."""
    few, many = (seconds(lab, arm, size) for size in SIZES)
    return 2 * (SIZES[1] - SIZES[0]) / (many - few) / 1e6


def merge(lab: Lab, word: str) -> None:
    """Turn GRO of the wire's ports on or off (kind mlx5)."""
    for port in ENDS[cards.KIND].wire:
        lab.bench.wire.run(["ethtool", "-K", port, "gro", word])


def throughput(series: str, kind: str, rounds: int) -> dict[str, list[float]]:
    """MB/s: without TLS, with TLS by the cards, and the latter with no frame merged on the wire."""
    arms = ("plain", "hw", "hw by frames") if kind == cards.KIND else ("plain", "hw")
    found: dict[str, list[float]] = {arm: [] for arm in arms}
    with Lab.boot(fetch(series, quiet), kind, say=quiet, cpus=2) as lab:
        for side in (lab.bench.dut, lab.bench.peer):
            side.host.run(["ethtool", "-L", side.dev, "combined", "2"], check=False)
            side.host.run(["ethtool", "-K", side.dev, "tls-hw-tx-offload", "on", "tls-hw-rx-offload", "on"])
        for arm in ("plain", "hw"):
            seconds(lab, arm, SIZES[0])  # the first connections load modules and fill pools
        for _ in range(rounds):
            for name, values in found.items():
                if kind == cards.KIND:
                    merge(lab, "off" if name == "hw by frames" else "on")
                values.append(rate(lab, name.split()[0]))
    return found


def report(name: str, values: Sequence[float], bars: Mapping[str, float]) -> bool:
    """Print one figure with its bar, if it has one; say whether the median holds it."""
    bar = bars.get(name)
    middle = statistics.median(values)
    held = bar is None or (middle >= bar if name.endswith(("/s", OF_PLAIN)) else middle <= bar)
    verdict = "" if bar is None else f"bar {bar:g}: {'held' if held else 'MISSED'}"
    print(f"{name:24} {spread(values)}  {verdict}")
    return held


def main() -> int:
    """Run the arms; exit 1 if a bar is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--kind", choices=("nicsim", cards.KIND), default="nicsim")
    parser.add_argument("--boots", type=int, default=3)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    os.environ["LAB_SNAPSHOT"] = "off"  # what is timed is a boot
    try:
        boots = [boot_once(args.kernel, args.kind) for _ in range(args.boots)]
        trips = round_trips(args.kernel, args.kind, args.rounds)
        speeds = throughput(args.kernel, args.kind, args.rounds)
    except OffloadError as exc:
        print(f"bench: error: {exc}", file=sys.stderr)
        return exc.exit_code
    print(f"kernel {args.kernel}, {args.kind}, {args.boots} boots{'':8} min   median      max")
    runner = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    figures = {
        "boot to agent, s": [b[0] for b in boots],
        "boot to bench, s": [b[1] for b in boots],
        **trips,
        "VM memory, MiB": [b[2] for b in boots],
        "runner memory, MiB": [runner],
        OF_PLAIN: [hw / plain for hw, plain in zip(speeds["hw"], speeds["plain"], strict=True)],
    } | {f"{arm}, MB/s": values for arm, values in speeds.items()}
    bars = BARS if args.kind == "nicsim" else BARS | CARD_BARS
    return 0 if all([report(name, values, bars) for name, values in figures.items()]) else 1


if __name__ == "__main__":
    sys.exit(main())
