"""Is plain TCP as fast through iperf3-tls as through the stock iperf3? Counted, in a VM of its own.

usage: python -m benchmarks.iperf_cost [--kernel 6.1] [--rounds 6] [--mib 128] [--only reverse]

The clock of that VM is the count of its instructions (cost-mode.md), and one processor runs client,
server and TCP on loopback. So throughput there is work per byte and nothing else, whatever this machine does
meanwhile. A boot for each way to send; the programs take turns (A/B, B/A, ...) over the same libiperf. Pairs
still differ: the scheduler's tick falls into another place of each test. A bar is held or missed where the
whole interval lies on one side of it, else it is open: more rounds. System calls are counted in shorter tests
before those; the first pair of each sort is dropped.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from offload.debian.kernels import fetch
from offload.errors import OffloadError, RigError
from offload.suite.bench.vm.initramfs import Cpio, busybox
from offload.suite.bench.vm.qemu import find
from offload.suite.measure.cost.boot import NS_PER_INSTRUCTION, lines_of, said
from offload.suite.measure.cost.image import DONE, FOLDERS, libraries
from offload.suite.measure.cpu.pairs import paired

T = TypeVar("T")
MODES = {"one stream": "", "4 streams": "-P 4", "reverse": "-R", "sendfile": "-Z"}
STOCK, OURS = Path("/usr/bin/iperf3"), Path(__file__).parents[1] / "build" / "iperf3-tls"
NAMES = ("iperf3", "iperf3-tls")  # in the VM: the stock program, and ours
MARGIN = 0.02  # what the throughput may differ by: issue 5
COUNTED = 5  # pairs in which system calls are counted: slower by that, so they are in no other figure
CALLS = re.compile(r"id: sys_(?:read|write|sendfile64) [^;]*hitcount: +(\d+)")

INIT = """\
#!/busybox sh
b=/busybox
$b mount -t proc proc /proc
$b mount -t sysfs sysfs /sys
$b mount -t devtmpfs dev /dev
$b mount -t tracefs tracefs /sys/kernel/tracing
$b ifconfig lo 127.0.0.1 up
count=/sys/kernel/tracing/events/raw_syscalls/sys_enter
set -e
said=$($b mktemp -d)
trap '$b echo "%(done)s $?"; $b poweroff -f' EXIT
both() { # program MiB options: a server, and the client's answer
  program=$1 mib=$2
  shift 2
  /$program -s -1 >$said/server &
  $b sleep 1
  /$program -c 127.0.0.1 -n ${mib}M -J "$@" >$said/client
  wait
}
timed() {
  both "$@"
  $b echo "IPERF $1 $($b tr -d '\\n\\t' <$said/client)"
}
counted() {
  $b echo 'hist:keys=common_pid.execname,id.syscall' >$count/trigger
  both "$@"
  $b echo "CALLS $1 $($b grep -F "common_pid: $1 " $count/hist | $b tr '\\n' ';')"
  $b echo '!hist:keys=common_pid.execname,id.syscall' >$count/trigger
}
%(steps)s
"""


@dataclass(frozen=True)
class Run:
    """One test: bytes, bytes per second, instructions per byte of the client's process and the server's."""

    program: str
    bytes: int
    rate: float
    client: float
    server: float


def turns(rounds: int) -> list[str]:
    """Programs in their order: A, B, B, A, ...; a round more than counts."""
    return [name for turn in range(rounds + 1) for name in (NAMES if turn % 2 else NAMES[::-1])]


def script(mode: str, rounds: int, mib: int) -> str:
    """The guest's init: short tests whose system calls are counted, then those that give the figures."""
    steps = [f"counted {name} {mib // 4} {mode}" for name in turns(COUNTED)]
    steps += [f"timed {name} {mib} {mode}" for name in turns(rounds)]
    return INIT % {"done": DONE, "steps": "\n".join(steps)}


def image(programs: Mapping[str, Path], init: str) -> bytes:
    """A file system with both programs. RigError if they have not the same libiperf."""
    needs = {name: libraries(path) for name, path in programs.items()}
    used = {str(lib) for libs in needs.values() for lib in libs if lib.name.startswith("libiperf")}
    if len(used) != 1:
        raise RigError(f"one libiperf was wanted under both programs, found: {', '.join(sorted(used))}")
    cpio = Cpio()
    for folder in FOLDERS:
        cpio.folder(folder)
    cpio.console()
    cpio.file("busybox", busybox(), 0o755)
    for name, path in programs.items():
        cpio.file(name, path.read_bytes(), 0o755)
    for path in sorted({lib for libs in needs.values() for lib in libs}):
        cpio.file(str(path), path.read_bytes(), 0o755)
    cpio.file("init", init.encode(), 0o755)
    return cpio.done()


def parsed(line: str) -> Run:
    """A test's JSON behind its program's name; RigError if it moved nothing, or makes no sense."""
    program, _, text = line.removeprefix("IPERF ").partition(" ")
    try:
        found = json.loads(text)
        if found.get("error"):
            raise RigError(f"{program}: {found['error']}")
        sent, used = found["end"]["sum_sent"], found["end"]["cpu_utilization_percent"]
        # of one core while the test ran: no start, no end
        each = 1e9 / NS_PER_INSTRUCTION * sent["seconds"] / 100 / sent["bytes"]
        rate = float(sent["bytes"] / sent["seconds"])
        return Run(program, int(sent["bytes"]), rate, each * used["host_total"], each * used["remote_total"])
    except (ValueError, KeyError, TypeError, AttributeError, ZeroDivisionError) as exc:
        raise RigError(f"{program} said {text[:200]!r}") from exc


def read(text: str, rounds: int, mib: int) -> dict[str, list[Run]]:
    """Program -> its tests, without the first. RigError if one is missing, or fell short."""
    found: dict[str, list[Run]] = {name: [] for name in NAMES}
    for run in map(parsed, lines_of(text, "IPERF ")):
        if run.program not in found:
            raise RigError(f"the VM ran {run.program!r}, wanted {' and '.join(NAMES)}")
        if run.bytes < mib << 20:
            raise RigError(f"{run.program} moved {run.bytes} bytes, {mib} MiB were wanted")
        found[run.program].append(run)
    return counting(found, rounds)


def calls(text: str) -> dict[str, list[float]]:
    """Program -> system calls of both ends that move data, test by test, without the first."""
    found: dict[str, list[float]] = {name: [] for name in NAMES}
    for line in lines_of(text, "CALLS "):
        found[line.split(" ", 2)[1]].append(sum(map(float, CALLS.findall(line))))
    return counting(found, COUNTED)


def counting(found: Mapping[str, Sequence[T]], rounds: int) -> dict[str, list[T]]:
    """Without the first of each; RigError if it is not a round more than counts."""
    if {len(got) for got in found.values()} != {rounds + 1}:
        raise RigError(f"{rounds + 1} tests of each program were wanted: {[*map(len, found.values())]}")
    return {name: list(got[1:]) for name, got in found.items()}


def line(name: str, stock: Sequence[float], ours: Sequence[float], bar: bool = True) -> bool:
    """Print a row; False only where its bar is missed for certain."""
    ratio = paired((NAMES[0], stock), (NAMES[1], ours))
    missed = ratio.high < 1 - MARGIN or ratio.low > 1 + MARGIN
    word = "held" if ratio.within(MARGIN) else "MISSED" if missed else "open"
    words = (f"within {100 * MARGIN:g} %", word) if bar else ("", "")
    row(name, f"{ratio.ratio:6.4f}", f"{ratio.low:6.4f} ... {ratio.high:6.4f}", *words)
    return not (bar and missed)


def row(*cells: str) -> None:
    """Print a line of the table."""
    print("| {:42} | {:6} | {:17} | {:10} | {:6} |".format(*cells), flush=True)


def arm(name: str, text: str, args: argparse.Namespace) -> bool:
    """The rows of one way to send; False only where the bar is missed for certain.

    Throughput is both ends together. Which of them does TCP's work is the scheduler's choice: no bar there.
    """
    stock, ours = read(text, args.rounds, args.mib).values()
    held = line(f"{name}: throughput", [run.rate for run in stock], [run.rate for run in ours])
    for end in ("client", "server"):
        old, new = ([float(getattr(run, end)) for run in runs] for runs in (stock, ours))
        line(f"{name}: {end}'s instructions per byte", old, new, bar=False)
    old, new = calls(text).values()
    line(f"{name}: reads, writes and sendfiles", old, new, bar=False)
    return held


def main(argv: Sequence[str] | None = None) -> int:
    """Boot once for each way to send; 1 if a bar is missed, 7 if a program or the VM is not there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--rounds", type=int, default=6, help="pairs that count, for each way to send")
    parser.add_argument("--mib", type=int, default=128, help="what one test sends")
    parser.add_argument("--ours", type=Path, default=OURS)
    parser.add_argument("--stock", type=Path, default=STOCK)
    parser.add_argument("--only", choices=MODES, nargs="+", default=list(MODES), help="these ways to send")
    args = parser.parse_args(argv)
    programs = dict(zip(NAMES, (args.stock, args.ours), strict=True))
    for path, how in ((args.ours, "make iperf3"), (args.stock, "apt-get install iperf3")):
        if not path.is_file():
            print(f"no {path}: {how}", file=sys.stderr)
            return RigError.exit_code
    try:
        qemu, kernel = find(), fetch(args.kernel)
        print(f"{kernel.release}, one processor, {args.rounds} pairs of {args.mib} MiB, ours to stock:")
        row("", "ratio", "95 % interval", "bar", "")
        print(f"|{'-' * 44}|{'-' * 8}|{'-' * 19}|{'-' * 12}|{'-' * 8}|")
        held = []
        for name in args.only:
            text = said(qemu, kernel, image(programs, script(MODES[name], args.rounds, args.mib)))
            held.append(arm(name, text, args))
    except OffloadError as exc:
        print(f"bench: error: {exc}", file=sys.stderr)
        return exc.exit_code
    return 0 if all(held) else 1


if __name__ == "__main__":
    sys.exit(main())
