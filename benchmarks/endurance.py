"""A long connection under impairment, each way: whole, right on the wire, offloaded again, memory flat?

usage: python -m benchmarks.endurance [--kernel 6.1] [--nic connectx-6-dx] [--mib 64] [--loss 2]

In the lab, against the simulated NIC; the loss is netem's, on the way of the payload. Sent: the DUT sends
through its card, every record is verified with the native core. Received: from the peer's kernel TLS; shares
are of records (tls:tls_device_decrypted) before the loss, under it, and after it. Memory is that of the
guest, both ends and wire: what is available, counting what files in memory hold; what the kernel holds; slab.
Exit 0 if every bar is met, 1 if not.
"""

from __future__ import annotations

import argparse
import re
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from offload.card.profile import Cell, find
from offload.cmd import wait_until
from offload.debian.kernels import fetch
from offload.errors import OffloadError
from offload.host.base import Host
from offload.suite.bench.vm.lab import Lab
from offload.suite.traffic import handoff
from offload.suite.traffic.drive import Sending, Transfer, send, sending, take
from offload.suite.traffic.impair import Netem, netem
from offload.suite.traffic.keylog import keylog
from offload.suite.traffic.tap import capturing
from tests.lib.flow import proof
from tests.lib.flow.flow import Flow, Several, Traffic
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch
from tests.lib.wire.records_trace import Met, shares, tracing
from tests.lib.wire.wire import Watch

MIB = 1 << 20
PART = 4 * MIB  # so much at a time is in the memory of who sends it
RECORD = 16384
CALM = 2 * MIB
PATIENCE = 900.0  # seconds for one direction
SETTLED_KIB = 256  # in two seconds
PAGE_KIB = 4
TX, RX = Cell("tx", "1.2", "aes-gcm-128"), Cell("rx", "1.2", "aes-gcm-128")
# Bars. At the end the kernel holds what it held at the start: 4 MiB more were one frame in twenty of 64 MiB.
# While it runs it may hold what is under way in two sockets. Of the calm, one record may be missing.
LEFT_KIB, HELD_KIB, SHARE = 4096, 32768, 99.0


@dataclass(frozen=True)
class Memory:
    """KiB of the guest: available, counting files in memory; held by the kernel in all; slab alone."""

    free: int
    kernel: int
    slab: int

    @classmethod
    def of(cls, host: Host) -> Memory:
        """Read it now, without what is only kept in case it is read again."""
        host.run(["sh", "-c", "sync; echo 3 > /proc/sys/vm/drop_caches"])
        rows = (line.split() for line in host.run(["cat", "/proc/meminfo"]).text.splitlines())
        found = {row[0].rstrip(":"): int(row[1]) for row in rows}
        others = sum(found[name] for name in ("MemFree", "Buffers", "Cached", "SwapCached", "AnonPages"))
        # free pages that a CPU keeps at hand are not in MemFree: up to some 10 MiB
        kept = re.findall(rb"^ +count: +(\d+)$", host.run(["cat", "/proc/zoneinfo"]).stdout, re.M)
        others += sum(map(int, kept)) * PAGE_KIB
        return cls(found["MemAvailable"] + found["Shmem"], found["MemTotal"] - others, found["Slab"])


def settled(host: Host) -> Memory:
    """Read the memory when what is over has been given back: sockets are freed some time after."""
    found = [Memory.of(host)]

    def still() -> bool:
        found.append(Memory.of(host))
        return found[-2].kernel - found[-1].kernel < SETTLED_KIB

    wait_until(still, 60, "the memory to settle", every=2)
    return found[-1]


Line = tuple[str, str, bool]  # what, figure, whether its bar is met


@dataclass
class Long:
    """What one direction came to; memory at start, middle and end."""

    total: int
    seconds: float
    memory: list[Memory]
    lines: list[Line]


def parts(name: str, mib: int) -> list[Sending]:
    """The payload, so much at a time."""
    return [sending(f"endurance {name} {number}", PART) for number in range(max(2, mib * MIB // PART))]


@contextmanager
def watching(traffic: Traffic) -> Iterator[Watch]:
    """Capture the wire on the DUT's side of the loss, with the keys of the peer's stunnel."""
    bench, peer = traffic.rig.bench, traffic.peer
    assert bench.wire is not None
    with ExitStack() as undo:
        folder = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="ktls-offload-")))
        keys = undo.enter_context(keylog(peer.side.host, peer.at.folder, "keys-endurance"))
        tap = undo.enter_context(capturing(bench.wire, bench.wire_ports[0], "/run/endurance.pcapng"))
        traffic.keys = keys
        undo.callback(setattr, traffic, "keys", None)
        yield Watch({"wire": tap}, keys, folder)


def sent(rig: Rig, mib: int, loss: float) -> Long:
    """Send under loss, with every record verified; the memory is looked at when half is sent."""
    traffic, made, memory, evidence = Traffic(rig), parts("tx", mib), [settled(rig.lab.root)], {}
    made[len(made) // 2] = replace(made[len(made) // 2], gate=0)
    plan, began = Several(tuple(made)), time.monotonic()
    with watching(traffic) as watch:
        before = rig.counters()
        with netem(rig.bench, rig.bench.wire_ports[1], Netem(loss=loss, seed=1)) as lossy:
            with traffic.behind_stunnel(take()) as (port, far):
                near = traffic.dut.pump.handoff(traffic.argv(TX, port), *(send(p) for p in plan.parts))
                near.at_gate(PATIENCE)
                memory.append(Memory.of(rig.lab.root))
                near.go()
                ends = near.report(PATIENCE), far.report(PATIENCE)
            lost = lossy.json()
        flow, seconds = Flow(*ends, rig.counters() - before), time.monotonic() - began
        proof.intact(flow.far, plan)
        proof.sent_by_card(flow, plan)
        watch.stop()
        memory.append(settled(rig.lab.root))
        seen = watch.proves(evidence, "client", plan.total, payload=plan.content())
    wire = evidence["wire"]
    return Long(
        plan.total,
        seconds,
        memory,
        [
            fell(lost),
            (
                "sent again",
                f"{seen['retransmissions']} segments, tx_tls_ooo {flow.moved['tx_tls_ooo']}",
                True,
            ),
            ("on the wire", f"{wire['records']} records {wire['outcome']} ({wire['engine']})", True),
        ],
    )


def received(rig: Rig, mib: int, loss: float) -> Long:
    """Receive a little without impairment, then under loss, and a calm after it, from the peer's kernel."""
    memory, began, before = [settled(rig.lab.root)], time.monotonic(), rig.counters()
    fair, lossy, calm = (
        sending("endurance fair", CALM),
        parts("rx", mib),
        sending("endurance calm", CALM, gate=0),
    )
    plan = Several((fair, *lossy, calm))
    with tracing(rig.bench.dut.host) as trace, ExitStack() as impairment:
        near, far = connected(rig, plan)
        near.at_gate(PATIENCE)
        storm = impairment.enter_context(netem(rig.bench, rig.bench.wire_ports[0], Netem(loss=loss, seed=1)))
        near.go()
        half = plan.total // RECORD // 2
        wait_until(lambda: len(trace.records()) > half, PATIENCE, "half of the records", every=2)
        memory.append(Memory.of(rig.lab.root))
        far.at_gate(PATIENCE)
        lost = storm.json()
        impairment.close()
        far.go()
        flow = Flow(near.report(PATIENCE), far.report(PATIENCE), rig.counters() - before)
        met = [record for record in trace.records() if record.size == RECORD]
    seconds = time.monotonic() - began
    memory.append(settled(rig.lab.root))
    proof.intact(flow.dut, plan)
    return Long(plan.total, seconds, memory, [fell(lost), *decrypted(met)])


def connected(rig: Rig, plan: Several) -> tuple[Transfer, Transfer]:
    """A connection from the DUT to a source of kernel TLS, with a gate before the loss and one after it."""
    traffic, peer, port, word = Traffic(rig), rig.end("peer"), rig.next_port(), Sending("go", (1,))
    fair, *lossy, calm = plan.parts
    size = sum(part.total for part in lossy)
    argv = handoff.accept(peer.side.v4, port, peer.at, version=RX.version, cipher=RX.cipher)
    asked = take(1)
    far = peer.pump.handoff(argv, asked, send(fair), asked, *(send(p) for p in lossy), asked, send(calm))
    far.listening()
    steps = [send(word), take(fair.total), send(replace(word, gate=0)), take(size), send(word), take()]
    return traffic.dut.pump.handoff(traffic.argv(RX, port, want="both"), *steps), far


def decrypted(met: Sequence[Met]) -> list[Line]:
    """The shares of records before, under and after the loss; the bar is for after, its first record free."""
    count = CALM // RECORD
    lines: list[Line] = []
    for when, some in (("before", met[:count]), ("under loss", met[count:-count]), ("after", met[-count:])):
        found = shares(some)
        words = ", ".join(
            f"{100 * found[share] / found['records']:.1f} % {share}" for share in ("full", "part", "none")
        )
        good = when != "after" or 100 * found["full"] >= SHARE * (found["records"] - 1)
        lines.append((f"records {when}", words, good and found["full"] > 0))
    return lines


def fell(lost: dict[str, Any]) -> Line:
    """How many frames netem took away."""
    return (
        "lost on the way",
        f"{lost['drops']} of {lost['packets'] + lost['drops']} frames",
        lost["drops"] > 0,
    )


def flat(memory: Sequence[Memory]) -> list[Line]:
    """Memory at start, middle and end, in MiB; the bars are for the kernel, where a driver lives."""
    lines: list[Line] = []
    for what in ("free", "kernel", "slab"):
        start, middle, end = (getattr(one, what) for one in memory)
        words = " / ".join(f"{kib / 1024:.1f}" for kib in (start, middle, end)) + " MiB"
        flat = what == "free" or (end - start <= LEFT_KIB and middle - start <= HELD_KIB)
        lines.append((f"memory {what}", words, flat))
    return lines


def report(name: str, found: Long) -> bool:
    """Print a table; whether every bar is met."""
    rate = (
        f"{found.total / MIB:.0f} MiB in {found.seconds:.0f} s, {found.total / found.seconds / 1e6:.2f} MB/s"
    )
    lines = [("intact", rate, True), *found.lines, *flat(found.memory)]
    for what, figure, good in lines:
        print(f"{name:9} {what:18} {figure:52} {'ok' if good else 'NOT MET'}")
    return all(good for *_, good in lines)


@contextmanager
def bench(kernel: str, nic: str) -> Iterator[Rig]:
    """A lab with the offload on, and everything used once."""
    with ExitStack() as undo:
        lab = undo.enter_context(Lab.boot(fetch(kernel, lambda _: None), personality=nic, say=lambda _: None))
        rig = Rig(lab, "nicsim", find(nic), undo)
        switch = Switch(rig.bench.dut)
        switch.set(tx=True, rx=True)
        undo.callback(switch.restore)
        Switch(rig.bench.peer).set(tx=False, rx=False)
        warm = sending("endurance warm", 2 * PART)
        proof.intact(Traffic(rig).sent(TX, warm).far, warm)
        proof.intact(Traffic(rig).received_as_written(RX, warm).dut, warm)
        yield rig


def main() -> int:
    """Run both directions; exit 0, 1 if a bar is missed, or that of the error."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--nic", default="connectx-6-dx")
    parser.add_argument("--mib", type=int, default=64)
    parser.add_argument("--loss", type=float, default=2.0)
    args = parser.parse_args()
    try:
        with bench(args.kernel, args.nic) as rig:
            print(
                f"{args.mib} MiB each way, {args.loss:g} % loss, {args.kernel}; memory: start / middle / end"
            )
            done = [
                report(name, go(rig, args.mib, args.loss))
                for name, go in (("sent", sent), ("received", received))
            ]
    except (OffloadError, AssertionError) as exc:
        print(f"endurance: {exc}", file=sys.stderr)
        return getattr(exc, "exit_code", 1)
    return 0 if all(done) else 1


if __name__ == "__main__":
    sys.exit(main())
