"""What does a live migration cost: by stunnel at both ends, by QEMU's own TLS, by kernel TLS?

usage: python -m benchmarks.migration [--rounds 3] [--mib 64] [--only stunnel qemu-tls] [--kernel 6.1]

Two real QEMUs and a guest that writes page after page at a set rate (native/dirty-guest). Without --kernel
both run on this machine over loopback, by the transports that need no kernel TLS; with it in the lab, the
source behind the simulated card, where `ktls-sw` and `ktls-hw` run too (emulated in an emulated machine:
minutes for each). Transports take turns; times, bytes and seconds of CPU (QEMU and stunnel of an end, all
their threads, no softirqs) are medians. A thrashing guest dirties faster than the stream carries: after 5
rounds a guest is stopped and the rest is copied, as Xen does (`x` next to the rounds). After every migration
the memory is equal at both ends and what the guest's seed says, or there is no figure. TLS 1.2, AES-256-GCM;
QEMU's limit of bandwidth is out of the way. Loopback or simulated: the method, and nothing of a card.
"""

from __future__ import annotations

import argparse
import signal
import statistics
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

from offload.debian.kernels import fetch
from offload.errors import OffloadError, RigError
from offload.host.base import Side
from offload.host.local import LocalHost
from offload.suite.bench.vm.lab import Lab
from offload.suite.report.render.migration_page import PUBLISHED
from offload.suite.traffic import certs
from tests.lib.flow import migration_cost
from tests.lib.flow.migration import Guest
from tests.lib.flow.migration_cost import Ran
from tests.lib.flow.migration_transports import ends
from tests.lib.rig.switch import Switch

# Pages a second: idle, medium, thrashing (more than the guest can, or than a stream carries): on one machine;
# in the lab, where a MB/s is much
RATES = {"here": (0, 2000, 200_000), "lab": (0, 20, 600)}
NAMES = ("idle", "medium", "thrashing")
NEED = {"here": ("plain", "stunnel", "qemu-tls", "multifd-1", "multifd-2", "multifd-4", "multifd-8")}
NEED["lab"] = ("plain", "stunnel", "qemu-tls", "ktls-sw", "ktls-hw")


@dataclass(frozen=True)
class Place:
    """Where it runs: both sides, certificates, ports, and what switches the sender's card."""

    near: Side
    far: Side
    pair: certs.Certs
    next_port: Callable[[], int]
    switch: Switch | None = None


@contextmanager
def here() -> Iterator[Place]:
    """This machine, over loopback."""
    side = Side(LocalHost(), "lo", "127.0.0.1", "::1")
    yield Place(side, side, certs.make(["127.0.0.1"]), count(24400).__next__)


@contextmanager
def lab(kernel: str) -> Iterator[Place]:
    """The simulated bench."""
    with Lab.boot(fetch(kernel), say=print) as up:
        sides = (up.bench.dut, up.bench.peer)
        switch = Switch(up.bench.dut)
        switch.set(tx=False, rx=False)
        pair = certs.make([address for side in sides for address in (side.v4, side.v6)])
        yield Place(*sides, pair, count(4500).__next__, switch)


def once(place: Place, transport: str, guest: Guest) -> Ran:
    """Migrate; OffloadError or AssertionError unless the same guest lives on at the far end, by it."""
    if transport.startswith("ktls") and place.switch is not None:
        place.switch.set(tx=transport == "ktls-hw")
    with ends(place.near, place.far, guest, place.pair) as (near, far, at):
        ran = migration_cost.once(transport, near, far, at, place.next_port)
    if transport.startswith("ktls") and ran.line["tx"] != transport[-2:]:
        raise RigError(f"{transport}: the kernel shows transmit as {ran.line['tx']}")
    return ran


def median(runs: Sequence[Ran], what: Callable[[Ran], float]) -> float:
    """The median of a figure."""
    return statistics.median(map(what, runs))


def row(*cells: str) -> None:
    """Print a line of the table."""
    print(
        "| {:10} | {:10} | {:>8} | {:>8} | {:>7} | {:>6} | {:>8} | {:>8} | {:>9} | {:>9} |".format(*cells),
        flush=True,
    )


def table(name: str, found: dict[str, list[Ran]]) -> None:
    """The rows of one guest; beside stunnel: how many times as long stunnel took."""
    base = median(found["stunnel"], lambda run: run.moved.total) if "stunnel" in found else 0
    for transport, runs in found.items():
        total = median(runs, lambda run: run.moved.total)
        ratio = f"{base / total:.2f}x" if base and transport != "stunnel" else ""
        row(
            name,
            transport,
            f"{total / 1000:.2f} s",
            f"{median(runs, lambda run: run.moved.downtime):.0f} ms",
            f"{median(runs, lambda run: run.moved.copied) / 1e6:.1f} MB",
            f"{median(runs, lambda run: run.moved.rounds):.0f}"
            + ("x" if any(run.moved.forced for run in runs) else ""),
            f"{median(runs, lambda run: run.spent[0]):.2f} s",
            f"{median(runs, lambda run: run.spent[1]):.2f} s",
            ratio,
            f"{PUBLISHED[name]:.2f}x" if transport == "ktls-sw" else "",
        )


def main(argv: Sequence[str] | None = None) -> int:
    """Run every guest by every transport; 1 if memory was not equal, 7 if something is not there."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="", help="in the lab, with this kernel")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--mib", type=int, default=0, help="the guest's memory (64; in the lab 6)")
    parser.add_argument("--only", nargs="+", default=[], help="these transports")
    parser.add_argument("--guests", nargs="+", choices=NAMES, default=list(NAMES))
    args = parser.parse_args(argv)
    where = "lab" if args.kernel else "here"
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # as after Ctrl-C: nothing is left running
    transports = args.only or NEED[where]
    if unknown := [transport for transport in transports if transport not in NEED[where]]:
        parser.error(f"no transport {unknown[0]!r} there: {', '.join(NEED[where])}")
    try:
        with lab(args.kernel) if args.kernel else here() as place:
            row(
                "guest",
                "transport",
                "time",
                "downtime",
                "copied",
                "rounds",
                "source",
                "dest.",
                "to stunn.",
                "published",
            )
            for name, rate in zip(NAMES, RATES[where], strict=True):
                if name in args.guests:
                    guest = Guest(args.mib or (6 if args.kernel else 64), rate)
                    found: dict[str, list[Ran]] = {transport: [] for transport in transports}
                    for _ in range(args.rounds):
                        for transport in transports:
                            found[transport].append(once(place, transport, guest))
                    table(name, found)
    except (OffloadError, AssertionError) as exc:
        print(f"bench: error: {exc}", file=sys.stderr)
        return getattr(exc, "exit_code", 1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
