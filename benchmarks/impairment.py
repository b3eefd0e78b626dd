"""What standing on the wire costs: a bridge, the bridge with netem, wirebox, and wirebox impairing.

usage: python -m benchmarks.impairment [--kernel 6.1] [--kind veth|nicsim] [--here] [--mib 8] [--rounds 3]

One plain TCP stream from DUT to peer, in rounds A/B/A/B; of each arm the median. Processor time is that of
sender, wire and receiver together: in the lab (the default) of the whole VM. --here: in namespaces of this
machine, with frames of 1500 bytes (TSO and GSO off); needs root; netem is left out if this kernel has none.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path

from offload.debian.kernels import fetch
from offload.errors import OffloadError, Refused
from offload.host.base import Bench, Side
from offload.host.local import LocalHost
from offload.suite.bench.vm.lab import Lab
from offload.suite.bench.vm.topology import ADDRESSES, batch, inside, links
from offload.suite.traffic.impair import Chosen, Netem, RandomImpairment, netem, wirebox

PORT = 7000
TICKS = os.sysconf("SC_CLK_TCK")
SINK = """
import socket, sys, time
s = socket.create_server(("", int(sys.argv[1])))
print("listening", flush=True)
c, n, began = s.accept()[0], 0, time.monotonic()
buffer = bytearray(1 << 18)
while part := c.recv_into(buffer): n += part
print(n, time.monotonic() - began, flush=True)
"""
SOURCE = """
import socket, sys
with socket.create_connection((sys.argv[1], int(sys.argv[2]))) as c:
    for _ in range(int(sys.argv[3]) * 16): c.sendall(bytes(1 << 16))
"""
RULES = [RandomImpairment(loss=0.1, seed=1), Chosen("offset", 1 << 20), Chosen("frame", 700, "delay")]
Arm = Callable[[Bench], AbstractContextManager[object]]
ARMS: dict[str, Arm] = {
    "bridge": lambda bench: contextlib.nullcontext(),
    "bridge + netem": lambda bench: netem(bench, bench.wire_ports[1], Netem(corrupt=0.00001)),
    "wirebox": lambda bench: wirebox(bench),
    "bridge + netem, 0.1 % loss": lambda bench: netem(bench, bench.wire_ports[1], Netem(loss=0.1)),
    "wirebox, 0.1 % loss, 2 rules": lambda bench: wirebox(bench, RULES),
}


def used(pid: int) -> float:
    """Processor seconds of a process; for 0 of all commands that have ended, ours."""
    if pid:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime


def stream(bench: Bench, mib: int, port: int) -> float:
    """Send so much from DUT to peer: MB/s."""
    python = ["/usr/bin/python3", "-I", "-S", "-c"]
    sink = bench.peer.host.start([*python, SINK, str(port)])
    while b"listening" not in sink.output()[0]:
        time.sleep(0.05)
    bench.dut.host.run([*python, SOURCE, bench.peer.v4, str(port), str(mib)], timeout=300)
    count, seconds = sink.wait(60).checked().stdout.split()[1:]
    assert int(count) == mib << 20
    return int(count) / float(seconds) / 1e6


def once(bench: Bench, arm: Arm, pid: int, mib: int, port: int) -> tuple[float, float]:
    """MB/s and processor seconds per GB; what it takes to set the arm up and down is not counted."""
    start = used(pid)
    with arm(bench):
        pass
    before = used(pid)
    with arm(bench):
        rate = stream(bench, mib, port)
    return rate, (used(pid) - before - (before - start)) / (mib * (1 << 20) / 1e9)


def rounds(bench: Bench, pid: int, mib: int, count: int) -> dict[str, list[tuple[float, float]]]:
    """The figures of each arm in every round."""
    found: dict[str, list[tuple[float, float]]] = {name: [] for name in ARMS}
    ports = itertools.count(PORT)
    stream(bench, 1, next(ports))  # warm: programs are read for the first time
    for _ in range(count):
        for name, arm in ARMS.items():
            with contextlib.suppress(Refused):
                found[name].append(once(bench, arm, pid, mib, next(ports)))
    return found


@contextlib.contextmanager
def local_bench() -> Iterator[Bench]:
    """The lab's veth bench in namespaces of this machine."""
    names = {name: f"impair-{os.getpid()}-{name}" for name in ("dut", "wire", "peer")}
    root = LocalHost()
    hosts = {name: LocalHost(space) for name, space in names.items()}
    try:
        lines = [_renamed(line, names) for line in links("veth")]
        root.run(["ip", "-batch", "-"], input=batch([line for line in lines if line != "link set lo up"]))
        for name, host in hosts.items():
            host.run(["ip", "-batch", "-"], input=batch(inside("veth", name)))
        for name, dev in (("dut", "veth0"), ("peer", "veth1")):
            hosts[name].run(["ethtool", "-K", dev, "tso", "off", "gso", "off", "gro", "off"])
        dut, peer = (Side(hosts[n], dev, *ADDRESSES[n]) for n, dev in (("dut", "veth0"), ("peer", "veth1")))
        yield Bench(dut, peer, hosts["wire"], ("vw0", "vw1"))
    finally:
        for space in names.values():
            root.run(["ip", "netns", "del", space], check=False)


def _renamed(line: str, names: dict[str, str]) -> str:
    """A line of `ip -batch` with the names of our namespaces."""
    words = line.split()
    if words[:2] == ["netns", "add"] or words[-2:-1] == ["netns"]:
        words[-1] = names[words[-1]]
    return " ".join(words)


def report(title: str, found: dict[str, list[tuple[float, float]]]) -> None:
    """Print the table."""
    print(f"{title:32} {'MB/s':>8} {'min':>7} {'max':>7} {'CPU s/GB':>9} {'min':>7} {'max':>7}")
    for name, rows in found.items():
        if rows:
            rates, costs = zip(*rows, strict=True)
            cells = (statistics.median(rates), min(rates), max(rates))
            more = (statistics.median(costs), min(costs), max(costs))
            print(f"{name:32} {cells[0]:8.1f} {cells[1]:7.1f} {cells[2]:7.1f}", end="")
            print(f" {more[0]:9.2f} {more[1]:7.2f} {more[2]:7.2f}")


def main() -> int:
    """Run the arms; exit 0, or that of the error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--kind", default="veth", choices=("veth", "nicsim"))
    parser.add_argument("--here", action="store_true")
    parser.add_argument("--mib", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    try:
        if args.here:
            with local_bench() as bench:
                report("this machine, 1500-byte frames", rounds(bench, 0, args.mib, args.rounds))
        else:
            with Lab.boot(fetch(args.kernel, lambda _: None), kind=args.kind, say=lambda _: None) as lab:
                report(f"lab {args.kernel} {args.kind}", rounds(lab.bench, lab.pid, args.mib, args.rounds))
    except OffloadError as exc:
        print(f"bench: error: {exc}", file=sys.stderr)
        return exc.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
