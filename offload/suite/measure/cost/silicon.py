"""A boot of a cost VM with the real mlx5_core: the cards are cx6sim's, whose work costs the guest nothing."""

from __future__ import annotations

import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from offload.debian.kernels import Kernel
from offload.errors import RigError
from offload.suite.bench.cards.silicon import Silicon
from offload.suite.bench.vm import cards
from offload.suite.bench.vm.qemu import Qemu
from offload.suite.measure.cost.boot import MEMORY, Moved, read, said
from offload.suite.measure.cost.plan import Plan

# of the payload: none of it may be software's; the card counts headers, too, and perhaps a retransmission
LEAST, MOST = 0.99, 1.15
Truth = dict[str, int]


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
    """QEMU's options for the cards: a write to their registers waits until the card has done its work."""
    found = cards.devices(folder, MEMORY)
    return [word.replace('"rombar":0', '"rombar":0,"x-no-posted-writes":true') for word in found]


def boot(qemu: Qemu, kernel: Kernel, initrd: bytes, plan: Plan) -> list[Moved]:
    """Boot, run every row, switch off: what was moved. RigError if the card did other bytes."""
    with tempfile.TemporaryDirectory(prefix="ktls-cards-") as name:
        folder = Path(name)
        model = cards.start(folder, keep=False)
        try:
            with watched(folder) as truth:
                moved = read(said(qemu, kernel, initrd, devices(folder)), plan.rows)
        finally:
            model.kill()
            model.wait()
    check(plan, moved, truth)
    return moved


def check(plan: Plan, moved: Sequence[Moved], truth: Truth) -> None:
    """RigError unless the card encrypted and decrypted what was to be offloaded, and nothing else."""
    for direction in ("tx", "rx"):
        rows = [m for m in moved if m.row.offloaded and m.row.moves(direction)]
        whole = sum(m.bytes * m.row.channels for m in rows) * (plan.bytes + plan.warm) / plan.bytes
        name = f"{direction}_tls_bytes"
        done = truth.get(name, 0)
        if not LEAST * whole <= done <= MOST * whole:
            raise RigError(f"{name} of the card is {done}, and {whole:.0f} were to be offloaded")
