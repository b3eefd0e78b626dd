"""What does a byte cost in ESP, compared with kernel TLS? Arms and parts of segmentation, in a boot of a
cost VM."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from offload.debian.kernels import Say, fetch
from offload.errors import RigError
from offload.suite.bench.cards.module import build_nicsim
from offload.suite.bench.vm.qemu import find
from offload.suite.bench.vm.topology import ADDRESSES, ENDS
from offload.suite.measure.cost.boot import NS_PER_INSTRUCTION, Moved, lines_of, parsed, said
from offload.suite.measure.cost.figures import NOTE, REPEATS, SIDES, spread
from offload.suite.measure.cost.image import IP, bench, image, switched
from offload.suite.measure.cost.plan import Plan, Row, senseless, wanted
from offload.suite.measure.cost.run import SCHEMA, about, check, sides
from offload.suite.traffic.ipsec import CIPHERS, MARK, MODULES, Association, policy, selector, state

ARMS = ("plain", "sw", "hw", "esp-null", "esp-128", "esp-256")
CARD = ("esp-128-hw", "esp-256-hw")
# which segmentation offloads of the DUT's card stay: its own (TSO), the kernel's when sending, when receiving
PARTS = {"on": "tso gso gro", "off": "", "soft": "gso gro", "gso": "gso", "gro": "gro"}
# random numbers: seqiv loads them by itself where a modprobe is. Not jitterentropy_rng: where a clock counts
# instructions it has nothing to measure, and drbg goes on without it
RANDOM = ("sha512_generic", "drbg")
NEEDS = (*MODULES, "seqiv", "echainiv", "authencesn", "crypto_null", *RANDOM)
SHARED = ("ksoftirqd", "kworker")
DIRECTION = "both"  # both ends do the same: what nobody's task does is half the DUT's
KEY = "$(/busybox head -c {size} /dev/urandom | /busybox od -An -v -tx1 | /busybox tr -d ' \\n')"
STAT = "/proc/net/xfrm_stat"


@dataclass(frozen=True)
class Cell:
    """An arm with a part of the segmentation offloads; payload goes both ways."""

    arm: str
    part: str

    @property
    def row(self) -> Row:
        """Return what costload runs: ESP is below the socket."""
        return Row("plain" if self.arm.startswith("esp") else self.arm, DIRECTION)

    @property
    def mark(self) -> str:
        """The line of the console before its row."""
        return f"CELL {self.arm} {self.part}"


def cipher(arm: str) -> str:
    """The cipher of an ESP arm as offload.suite.traffic.ipsec names it."""
    word = arm.removeprefix("esp-")
    return word if word in CIPHERS else f"gcm-{word}"


def associations(arm: str) -> tuple[Association, Association]:
    """Both directions of the bench; the keys are variables of the guest's shell, which nothing sees."""
    (dut, _), (peer, _) = ADDRESSES["dut"], ADDRESSES["peer"]
    keys = ["0x$key_out", "0x$key_in"] if CIPHERS[cipher(arm)][1] else ['""', '""']
    return Association(dut, peer, 0x1001, keys[0]), Association(peer, dut, 0x1002, keys[1])


def esp(arm: str) -> Iterator[str]:
    """Shell lines that put the bench's TCP into ESP."""
    size, (out, into) = CIPHERS[cipher(arm)][1], associations(arm)
    for name in ("key_out", "key_in") if size else ():
        yield f"{name}={KEY.format(size=size)}"
    for host, ends in (("dut", ("out", "in")), ("peer", ("in", "out"))):
        yield f"{IP} netns exec {host} {IP} -batch - <<END"
        yield from (state(one, cipher(arm)) for one in (out, into))
        yield from (policy(one, to) for one, to in zip((out, into), ends, strict=True))
        yield "END"


def no_esp(arm: str) -> Iterator[str]:
    """Shell lines that say what was in ESP, and take it away."""
    awk = "/busybox awk '/^\\t  [0-9]+.bytes/ {print \"ESP\", int($1)}'"
    yield f"{IP} netns exec dut {IP} -s xfrm state list nokeys | {awk}"
    yield from _lost()
    for host, ends in (("dut", ("out", "in")), ("peer", ("in", "out"))):
        yield f"{IP} netns exec {host} {IP} -batch - <<END"
        for one, to in zip(associations(arm), ends, strict=True):
            yield f"xfrm policy delete {selector(one, to)}"
        yield f"xfrm state deleteall reqid {MARK}"
        yield "END"


def _lost() -> Iterator[str]:
    """Shell lines that say what IPsec has refused or lost so far."""
    for host in ("dut", "peer"):
        yield f"{IP} netns exec {host} /busybox awk '{{print \"LOST {host}\", $1, $2}}' {STAT}"


def script(plan: Plan, cells: Sequence[Cell]) -> list[str]:
    """All shell lines: the bench, then cell by cell."""
    lines = bench(plan)
    for cell in cells:
        on = PARTS[cell.part].split()
        words = [word for part in ("tso", "gso", "gro") for word in (part, "on" if part in on else "off")]
        words += switched(cell.row)
        lines += [f"{IP} netns exec dut ethtool -K {ENDS['nicsim'].dut} {' '.join(words)}"]
        lines += ["/busybox sleep 1"]  # the last connection's end arrives before it would be refused
        lines += [*esp(cell.arm), f"echo {cell.mark}", *_lost()] if cell.arm.startswith("esp") else []
        lines += [] if cell.arm.startswith("esp") else [f"echo {cell.mark}"]
        lines += [f"/costload --warm {plan.warm} --bytes {plan.bytes} {cell.row.name}"]
        lines += no_esp(cell.arm) if cell.arm.startswith("esp") else []
    return lines


def choose(arms: Sequence[str], parts: Sequence[str]) -> list[Cell]:
    """The cells; plain TCP, which the others are compared with, is first. ConfigError for an unknown word."""
    parts = [wanted(part, tuple(PARTS), "segmentation") for part in parts]
    arms = [wanted(arm, ARMS, "arm next to ESP") for arm in arms]
    return [Cell(arm, part) for part in parts for arm in dict.fromkeys(("plain", *arms))]


def read(text: str, plan: Plan, cells: Sequence[Cell]) -> list[Moved]:
    """A boot's rows, in the order of the cells. RigError for one that is not what its name says."""
    found: list[Moved] = []
    groups = re.split(r"^CELL ", "\n".join(lines_of(text, ("CELL ", "{", "ESP ", "LOST "))), flags=re.M)[1:]
    for cell, group in zip(cells, groups, strict=False):
        name, *lines = group.splitlines()
        rows = [parsed(line) for line in lines if line.startswith("{")]
        if f"CELL {name}" != cell.mark or [row.row for row in rows] != [cell.row]:
            raise RigError(f"the cost VM measured {name} {rows}, requested was {cell.mark}")
        _in_esp(cell, plan, lines)
        check(rows[0])
        found += rows
    if len(found) != len(cells):
        raise RigError(f"the cost VM measured {len(found)} of {len(cells)} cells")
    return found


def _in_esp(cell: Cell, plan: Plan, lines: Sequence[str]) -> None:
    """Both states carried what they had to, and IPsec refused and lost nothing meanwhile."""
    lost = [line for line in lines if line.startswith("LOST ")]
    before, after = lost[: len(lost) // 2], lost[len(lost) // 2 :]
    if moved := [line for old, line in zip(before, after, strict=True) if old != line]:
        raise RigError(f"{cell.mark}: IPsec refused or lost packets: {'; '.join(moved)}")
    if not cell.arm.startswith("esp"):
        return
    carried = [int(line.split()[1]) for line in lines if line.startswith("ESP ")]
    least, streams = plan.bytes + plan.warm, cell.row.streams
    if not lost or sum(n >= least for n in carried) != streams:
        raise RigError(f"{cell.mark}: {carried} bytes were in ESP; expected {streams} times {least}")


def measure(
    series: str = "6.1",
    *,
    boots: int = 1,
    arms: Sequence[str] = ARMS,
    parts: Sequence[str] = tuple(PARTS),
    personality: str = "connectx-6-dx",
    offers: Sequence[str] = ("tx", "rx"),
    say: Say = print,
) -> dict[str, Any]:
    """Boot `boots` times the same image: the measuring document, method `icount`.

    ConfigError for a word that there is not; RigError if a VM breaks, or an arm was not what its name says.
    """
    without = {arm: why for arm in arms if (why := impossible(arm, offers))}
    cells = choose([arm for arm in arms if arm not in without], parts)
    plan = Plan(tuple(cell.row for cell in cells), personality)
    kernel, qemu = fetch(series, say), find(say)
    initrd = image(kernel, build_nicsim(kernel, say), plan, script(plan, cells), NEEDS)
    found = []
    for number in range(1, boots + 1):
        found.append(read(said(qemu, kernel, initrd), plan, cells))
        say(f"cost VM, {kernel.release}: boot {number} of {boots}, {len(cells)} rows")
    rows = [made(cell, [boot[at] for boot in found]) for at, cell in enumerate(cells)]
    document: dict[str, Any] = {
        "schema": SCHEMA,
        "method": "icount",
        "simulated": True,
        "about": about(kernel, qemu, plan),
        "rows": rows,
        "warnings": [],
        "skipped": [{"arm": arm, "workload": "stream", "reason": why} for arm, why in without.items()],
    }
    if (wide := spread(document)) > REPEATS:
        document["warnings"].append(f"boots differ by up to {100 * wide:.2f} %")
    return document


def impossible(arm: str, offers: Sequence[str]) -> str:
    """Why an arm cannot be here, or ''. `offers`: the directions in which the card offloads TLS."""
    if arm in CARD:
        return "the simulated card has no ESP crypto offload here: cost mode does not set its knob esp"
    return senseless(Row(arm, DIRECTION), set(offers)) if arm == "hw" else ""


def made(cell: Cell, boots: Sequence[Moved]) -> dict[str, Any]:
    """A row of the document."""
    tls = cell.arm in ("sw", "hw")
    cost = [
        {"boot": number, "side": side, "per_byte": round(value, 6)}
        for number, moved in enumerate(boots, 1)
        for side, value in sides(replace(moved, row=cell.row)).items()
    ]
    for number, moved in enumerate(boots, 1):
        shared = sum(ns for task, ns in moved.tasks.items() if task.startswith(SHARED))
        per_byte = shared / NS_PER_INSTRUCTION / (moved.bytes * cell.row.streams)
        cost.append({"boot": number, "side": "shared", "per_byte": round(per_byte, 6)})
    row = {
        "workload": "stream",
        "arm": cell.arm,
        "direction": DIRECTION,
        "version": "1.2" if tls else "",
        "cipher": "aes_gcm_128" if tls else "",
        "streams": cell.row.streams,
        "size": None,
        "segmentation": cell.part == "on",
        "samples": [],
        "cost": cost,
    }
    return row if cell.part in ("on", "off") else {**row, "only": cell.part}


def costs(row: Mapping[str, Any]) -> dict[str, float]:
    """Instructions per byte by side, the mean of all boots."""
    found: dict[str, list[float]] = {}
    for cost in row["cost"]:
        found.setdefault(cost["side"], []).append(cost["per_byte"])
    return {side: sum(values) / len(values) for side, values in found.items()}


def total(found: Mapping[str, float], plain: Mapping[str, float]) -> float:
    """The DUT's instructions per byte: its host, and half of what nobody's task did beyond plain TCP."""
    return found["host"] + max(found["shared"] - plain["shared"], 0) / 2


def seen(document: Mapping[str, Any]) -> dict[str, Any]:
    """The document as the report shows it: what a byte costs the DUT, by boot (`total`), instead of sides."""
    plain = {part(row): row for row in document["rows"] if row["arm"] == "plain"}
    rows = []
    for row in document["rows"]:
        mine, theirs = by_boot(row), by_boot(plain[part(row)])
        cost = [
            {"boot": boot, "side": "dut", "per_byte": round(total(found, theirs[boot]), 6)}
            for boot, found in mine.items()
        ]
        rows.append({**row, "cost": cost})
    return {**document, "rows": rows}


def part(row: Mapping[str, Any]) -> str:
    """The segmentation offloads of a row, one of PARTS."""
    return row.get("only") or ("on" if row["segmentation"] else "off")


def by_boot(row: Mapping[str, Any]) -> dict[int, dict[str, float]]:
    """Instructions per byte by boot and side."""
    found: dict[int, dict[str, float]] = {}
    for cost in row["cost"]:
        found.setdefault(cost["boot"], {})[cost["side"]] = cost["per_byte"]
    return found


def text(document: Mapping[str, Any]) -> str:
    """A line per arm and part of the segmentation offloads; the last column is a multiple of plain TCP's."""
    names = (*SIDES[:3], "shared", "dut", "dut/plain")
    lines = [NOTE, f"{document['about']['kernel']}, {document['about']['nic']}, {document['about']['wire']}"]
    plain: dict[str, dict[str, float]] = {}
    for row in document["rows"]:
        found, stayed = costs(row), part(row)
        if stayed not in plain:
            lines += ["", f"  {'segmentation':<13}{'arm':<9}" + "".join(f"{name:>10}" for name in names)]
            plain[stayed] = found
        found["dut"] = total(found, plain[stayed])
        found["dut/plain"] = found["dut"] / plain[stayed]["host"]
        lines.append(f"  {stayed:<13}{row['arm']:<9}" + "".join(f"{found[name]:>10.3f}" for name in names))
    lines += ["", *(f"skipped: {s['arm']}: {s['reason']}" for s in document["skipped"])]
    lines += [f"warning: {warning}" for warning in document["warnings"]]
    return "\n".join(lines).rstrip("\n") + "\n"
