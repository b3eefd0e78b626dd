"""What does a byte cost below the real mlx5_core? Cost mode with cx6sim, whose work costs the guest nothing.

usage: python -m benchmarks.cost_mlx5 [--kernel 6.1] [--boots 3] [--write]

As `benchmarks/cost.py`, but the DUT's instructions are those of the unmodified driver. A write to the card's
registers waits until the card has done the work (x-no-posted-writes). What the card says that it encrypted
and decrypted is compared with what was to be offloaded. docs/reference/cost-mode.md has more.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import mean

from offload.debian.kernels import Kernel, fetch
from offload.errors import OffloadError, RigError
from offload.suite.bench.cards.silicon import Silicon
from offload.suite.bench.vm import cards, qemu_cards
from offload.suite.bench.vm.qemu import Qemu
from offload.suite.measure.cost.boot import MEMORY, NS_PER_INSTRUCTION, Moved, read, said
from offload.suite.measure.cost.figures import apart
from offload.suite.measure.cost.image import image
from offload.suite.measure.cost.plan import Plan, Row
from offload.suite.measure.cost.run import RECEIVER, SENDER, check_ends

# the offloaded row first: while the others run, the card is asked for what it did
ARMS = ("hw", "plain", "sw")
PLAN = Plan(tuple(Row(arm, "both") for arm in ARMS), kind=cards.KIND)
SIDES = ("sender", "receiver", "host")
POLL = f"napi/{cards.PORTS[0]}"
RECORD = Path(__file__).parent / "results/cost-mlx5.md"
HEAD = """\
# Cost mode below the real driver

`python -m benchmarks.cost_mlx5 --write` ([how it counts](../../docs/reference/cost-mode.md)); SIMULATED.
Instructions per byte of payload, one connection each way at once. The card is cx6sim, whose work costs the
guest nothing.
"""
# of the payload: none of it may be software's; the card counts headers, too, and perhaps a retransmission
LEAST, MOST = 0.99, 1.15
Truth = dict[str, int]
Figures = dict[str, float]


@contextmanager
def watched(folder: Path) -> Iterator[Truth]:
    """Ask the DUT's card again and again what it did: it ends with QEMU, so its last words count."""
    card, over = Silicon(folder / cards.CONTROL), threading.Event()
    truth: Truth = {}

    def look() -> None:
        while not over.wait(0.1):
            with suppress(RigError):
                truth.update(card.truth(0))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield truth
    finally:
        over.set()
        thread.join()


def devices(folder: Path) -> list[str]:
    """QEMU's options for the cards, whose register writes are not posted."""
    found = cards.devices(folder, MEMORY)
    return [word.replace('"rombar":0', '"rombar":0,"x-no-posted-writes":true') for word in found]


def boot(qemu: Qemu, kernel: Kernel, initrd: bytes) -> dict[str, Figures]:
    """One boot: instructions per byte, by arm and side."""
    with tempfile.TemporaryDirectory(prefix="ktls-cards-") as name:
        folder = Path(name)
        model = cards.start(folder, keep=False)
        try:
            with watched(folder) as truth:
                moved = read(said(qemu, kernel, initrd, devices(folder)), PLAN.rows)
        finally:
            model.kill()
            model.wait()
    check(moved, truth)
    return {row.row.arm: per_byte(row) for row in moved}


def check(moved: Sequence[Moved], truth: Truth) -> None:
    """RigError if an arm was not what it says, or the card did not do the offloaded bytes, or did others."""
    for row in moved:
        check_ends(row)
    whole = PLAN.bytes + PLAN.warm
    for name in ("tx_tls_bytes", "rx_tls_bytes"):
        if not LEAST * whole <= truth.get(name, 0) <= MOST * whole:
            raise RigError(f"{name} of the card is {truth.get(name, 0)}, and {whole} were to be offloaded")


def per_byte(moved: Moved) -> Figures:
    """Instructions per byte of payload: sender, receiver, and the host with the driver's poll."""

    def ran(*names: str) -> float:
        ns = sum(t for task, t in moved.tasks.items() if task.startswith(names))
        if not ns or not moved.bytes:
            raise RigError(f"{moved.row.name}: {' and '.join(names)} did not run, or moved no byte")
        return ns / NS_PER_INSTRUCTION / moved.bytes

    host = ran(SENDER, RECEIVER, POLL) / moved.row.streams
    return {"sender": ran(SENDER), "receiver": ran(RECEIVER), "host": host}


def lines(found: Sequence[dict[str, Figures]]) -> Iterator[str]:
    """The table: the mean of the boots, how far they lie apart, and what offload saves of software."""
    yield "| `both` | sender | receiver | host |\n|---|---|---|---|"
    means = {arm: {side: mean(boot[arm][side] for boot in found) for side in SIDES} for arm in ARMS}
    for arm in ("plain", "sw", "hw"):
        yield f"| {arm} | " + " | ".join(f"{means[arm][side]:.2f}" for side in SIDES) + " |"
    saved = (f"{100 * (1 - means['hw'][side] / means['sw'][side]):.0f} %" for side in SIDES)
    yield f"| offload saves | {' | '.join(saved)} |"
    wide = {side: max(apart([boot[arm][side] for boot in found]) for arm in ARMS) for side in SIDES}
    far = ", ".join(f"{side} {100 * wide[side]:.1f} %" for side in SIDES)
    yield f"\nBoots: {len(found)}; they differ by at most: {far}."


def measure(series: str, boots: int) -> Iterator[str]:
    """What is printed and recorded, line by line."""
    kernel, qemu = fetch(series), qemu_cards.find()
    initrd = image(kernel, cards.driver(kernel, print), PLAN)
    found = []
    for number in range(1, boots + 1):
        began = time.monotonic()
        found.append(boot(qemu, kernel, initrd))
        print(f"boot {number} of {boots}: {time.monotonic() - began:.0f} s", file=sys.stderr)
    yield f"mlx5_core of Debian's Linux {kernel.version}, unmodified; QEMU {qemu.version}.\n"
    yield from lines(found)


def main() -> int:
    """Run it; another exit code than 0 if an arm was not what it says."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1")
    parser.add_argument("--boots", type=int, default=3)
    parser.add_argument("--write", action="store_true", help=f"write {RECORD.name}")
    args = parser.parse_args()
    try:
        table = "\n".join(measure(args.kernel, args.boots)) + "\n"
    except OffloadError as exc:
        print(f"bench: error: {exc}", file=sys.stderr)
        return exc.exit_code
    print(table, end="")
    if args.write:
        RECORD.write_text(f"{HEAD}\n{table}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
