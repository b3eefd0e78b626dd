"""What does a byte cost, in instructions? Boots the cost VM, makes the measuring document."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from offload.debian.kernels import Kernel, Say, fetch
from offload.errors import ConfigError, RigError
from offload.suite.bench.cards.module import build_nicsim
from offload.suite.bench.vm import cards, qemu_cards
from offload.suite.bench.vm.qemu import Qemu, find
from offload.suite.bench.vm.rig import TOOLS, versions
from offload.suite.bench.vm.topology import check_personality
from offload.suite.measure.cost import silicon
from offload.suite.measure.cost.boot import MEMORY, NS_PER_INSTRUCTION, SEED, Moved, boot
from offload.suite.measure.cost.compared import compared
from offload.suite.measure.cost.figures import BELOW, REPEATS, spread
from offload.suite.measure.cost.image import image
from offload.suite.measure.cost.plan import ARMS, DIRECTIONS, Plan, Row, choose, senseless, workload

SCHEMA = "ktls-offload/measure/1"
BOOTS, MOST_BOOTS = 3, 20
# the DUT's tasks by name: its host's, and the card itself; the rest is the peer's and the wire's
SENDER, RECEIVER, ENGINE = "dut-send", "dut-receive", "nicsim-hw0"
POLLS = {"nicsim": "napi/nicsim0", cards.KIND: f"napi/{cards.PORTS[0]}"}
HELD = {"nicsim": "interrupts held back for", cards.KIND: "no interrupts, a poll every"}
NIC = "connectx-6-dx by cx6sim, below the unmodified mlx5_core"
WHOLE = 0.99  # of the payload through the card: less is no offload; the end of a record may be software's


def measure(
    series: str = "6.1",
    *,
    boots: int = BOOTS,
    arms: Iterable[str] = ARMS,
    directions: Iterable[str] = DIRECTIONS,
    offers: Collection[str] = ("tx", "rx"),
    channels: Iterable[int] = (1,),
    loads: Iterable[str] = ("stream",),
    more: Iterable[Row] = (),
    personality: str = "connectx-6-dx",
    knobs: str = "",
    kind: str = "nicsim",
    say: Say = print,
) -> dict[str, Any]:
    """Boot `boots` times the same image, run every arm in every direction; the document, method `icount`.

    `offers`: the directions that the card of this `personality` offloads; rows that make no sense for it are
    in `skipped`. `channels`: connections of a direction; `loads`: stream, file (sent by sendfile). `more`:
    further rows, as far as they make sense. `knobs`: a bad card's, by `offload.suite.bench.cards.knobs`.
    `kind`: nicsim's cards, or (mlx5) cx6sim's, which the real driver drives. `say` gets a line per boot.
    ConfigError for an arm, direction or kernel that there is not; RigError if a VM breaks, payload was not
    intact, or an arm was not what its name says.
    """
    if not 1 <= boots <= MOST_BOOTS:
        raise ConfigError(f"{boots} boots", f"1 to {MOST_BOOTS}")
    check_personality(personality)
    rows, skipped = choose(arms, directions, offers, channels, loads)
    rows += tuple(row for row in more if row not in rows and not senseless(row, set(offers)))
    if not rows:
        raise ConfigError("nothing to measure: " + "; ".join(f"{s['arm']}: {s['reason']}" for s in skipped))
    rows = tuple(sorted(rows, key=lambda row: not row.offloaded)) if kind == cards.KIND else rows
    plan = Plan(rows, personality, knobs=knobs, kind=kind)
    kernel = fetch(series, say)  # a wrong path fails before a download
    qemu, module = _rig(kernel, kind, say)
    initrd = image(kernel, module, plan)
    found = [_boot(qemu, kernel, initrd, plan, number, boots, say) for number in range(1, boots + 1)]
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "method": "icount",
        "simulated": True,
        "about": about(kernel, qemu, plan),
        "rows": [made([moved[at] for moved in found], kind) for at in range(len(rows))],
        "skipped": skipped,
        "warnings": [],
    }
    if (apart := spread(document)) > (most := BELOW if kind == cards.KIND else REPEATS):
        words = f"boots differ by up to {100 * apart:.2f} %, more than {100 * most:g} %"
        document["warnings"].append(words)
    return document


def _rig(kernel: Kernel, kind: str, say: Say) -> tuple[Qemu, Path]:
    """QEMU, and the driver of the cards."""
    if kind == cards.KIND:
        return qemu_cards.find(say), cards.driver(kernel, say)
    return find(say), build_nicsim(kernel, say)


def _boot(
    qemu: Qemu, kernel: Kernel, initrd: bytes, plan: Plan, number: int, boots: int, say: Say
) -> list[Moved]:
    began = time.monotonic()
    if plan.kind == cards.KIND:
        moved, checked = silicon.boot(qemu, kernel, initrd, plan), check_ends
    else:
        moved, checked = boot(qemu, kernel, initrd, plan.rows), check
    for row in moved:
        checked(row)
    took = time.monotonic() - began
    say(f"cost VM, {kernel.release}: boot {number} of {boots}, {len(moved)} rows in {took:.0f} s")
    return moved


def check_ends(moved: Moved) -> None:
    """RigError if an end's TLS was not what the row's name says, by the kernel's count."""
    row, wanted = moved.row, "none" if moved.row.arm in ("plain", "user") else "sw"
    for name, state in sorted(moved.ends.items()):
        for direction in ("tx", "rx"):
            hw = row.offloaded and name.startswith("dut-") and row.moves(direction)
            is_now, should = state.get(direction), "hw" if hw else wanted
            if is_now != should:
                raise RigError(
                    f"{row.name} did not use the path that it names: {direction} of {name} is {is_now!r}"
                )


def check(moved: Moved) -> None:
    """RigError if a row was not what its name says: other TLS, or payload that the card did not see."""
    check_ends(moved)
    row = moved.row
    for direction, card in (("tx", moved.encrypted), ("rx", moved.decrypted)):
        whole = moved.bytes * row.channels
        least = whole * WHOLE if row.offloaded and row.moves(direction) else 0
        if card < least or (card and not least):
            word = "encrypted" if direction == "tx" else "decrypted"
            raise RigError(f"{row.name}: the card {word} {card} of {whole} bytes")


def sides(moved: Moved, kind: str = "nicsim") -> dict[str, float]:
    """Instructions per byte of payload on each side of the DUT.

    sender, receiver: the process, per byte that it moved. host: both and the card's NAPI poll; card: nicsim's
    engine; these per byte in either direction. RigError for a task that did not run.
    """

    def ran(*names: str) -> int:
        ns = sum(t for task, t in moved.tasks.items() if task.startswith(names))
        if not ns or not moved.bytes:
            raise RigError(f"{moved.row.name}: {' and '.join(names)} did not run, or moved no byte")
        return ns // NS_PER_INSTRUCTION

    whole, one_direction = moved.bytes * moved.row.streams, moved.bytes * moved.row.channels
    found: dict[str, float] = {}
    if moved.row.moves("tx"):
        found["sender"] = ran(SENDER) / one_direction
    if moved.row.moves("rx"):
        found["receiver"] = ran(RECEIVER) / one_direction
    # below the real driver: where frames of one direction are acknowledgments only, their batches move
    # the host by up to 7 % between two boots; with payload both ways, by 1 %
    if kind == "nicsim" or moved.row.direction == "both":
        found["host"] = ran(SENDER, RECEIVER, POLLS[kind]) / whole
    if kind == "nicsim":
        found["card"] = ran(ENGINE) / whole
    return found


def made(boots: Sequence[Moved], kind: str = "nicsim") -> dict[str, Any]:
    """A row of the document: one arm in one direction over all boots."""
    row, tls = boots[0].row, boots[0].row.arm != "plain"
    cost = [
        {"boot": number, "side": side, "per_byte": round(value, 6)}
        for number, moved in enumerate(boots, 1)
        for side, value in sides(moved, kind).items()
    ]
    return {
        "workload": workload(row),
        "arm": row.arm,
        "direction": row.direction,
        "version": "1.2" if tls else "",
        "cipher": "aes_gcm_128" if tls else "",
        "streams": row.streams,
        "size": None,
        "segmentation": True,
        "samples": [],
        "cost": cost,
    }


def about(kernel: Kernel, qemu: Qemu, plan: Plan) -> dict[str, Any]:
    """Return what the figures depend on."""
    rig = versions(
        kernel, qemu.version, f"tcg, one instruction is {NS_PER_INSTRUCTION} ns", f"1 vCPU, {MEMORY} MiB"
    )
    tools: Mapping[str, str] = {name: rig.pop(name) for name in TOOLS}
    return {
        **rig,
        "nic": NIC if plan.kind == cards.KIND else f"nicsim, {plan.personality}",
        "governor": "none: instructions are counted",
        "seed": str(SEED),
        "wire": f"{plan.mbits} Mbit/s, {HELD[plan.kind]} {plan.usecs} us",
        "payload": f"{plan.bytes} bytes per direction after {plan.warm} of warm-up",
        "tools": dict(tools),
        **(compared(kernel.series) if plan.kind == cards.KIND else {}),
    }
