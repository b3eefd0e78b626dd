"""One boot of a cost VM: its clock counts its instructions, so that nothing outside can be seen inside."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.cmd import run
from offload.debian.kernels import Kernel
from offload.errors import RigError
from offload.suite.bench.vm.console import faults
from offload.suite.bench.vm.qemu import Qemu
from offload.suite.measure.cost.image import DONE
from offload.suite.measure.cost.plan import Row

SHIFT = 1
NS_PER_INSTRUCTION = 1 << SHIFT
MEMORY = 512  # MiB
LIMIT = 900.0  # seconds of the host's time: a boot takes less than 60 on an idle machine
SEED = 42
# No clock of the host reaches the guest: no tsc_early_khz. `loglevel=5`: WARN() must be seen.
KERNEL = (
    "console=ttyS0 loglevel=5 nokaslr norandmaps tsc=reliable panic=-1 random.trust_cpu=on "
    "cryptomgr.notests=1 nowatchdog audit=0 no_timer_check"
)


@dataclass(frozen=True)
class Moved:
    """One row of one boot: payload per connection, what each end's kernel TLS was, what the DUT's card did.

    ends: name -> {"tx", "rx"} -> hw, sw or none; encrypted, decrypted in bytes; tasks: name -> ns.
    """

    row: Row
    bytes: int
    ends: dict[str, dict[str, str]]
    encrypted: int
    decrypted: int
    tasks: dict[str, int]


def command(
    qemu: Qemu, kernel: Kernel, initrd: Path, console: Path, devices: Sequence[str] = ()
) -> list[str]:
    """QEMU for a cost VM; it ends with the thread that starts it."""
    return [
        "setpriv",
        "--pdeathsig",
        "KILL",
        qemu.program,
        *qemu.options,
        "-M",
        "q35",
        "-accel",
        "tcg",
        "-cpu",
        "max,-erms,-fsrm",
        "-smp",
        "1",
        "-m",
        f"{MEMORY}M",
        "-nodefaults",
        "-no-user-config",
        "-display",
        "none",
        "-no-reboot",
        "-icount",
        f"shift={SHIFT},sleep=off",
        "-seed",
        str(SEED),
        "-rtc",
        "base=2026-01-01T00:00:00,clock=vm",
        "-serial",
        f"file:{console}",
        "-kernel",
        str(kernel.vmlinux),
        "-initrd",
        str(initrd),
        "-append",
        KERNEL,
        *devices,
    ]


def boot(qemu: Qemu, kernel: Kernel, initrd: bytes, rows: Sequence[Row]) -> list[Moved]:
    """Boot, run every row, switch off: what was moved, in the order of `rows`.

    RigError with the console's last lines if the VM did not come to its end, or said something else.
    """
    return read(said(qemu, kernel, initrd), rows)


def said(qemu: Qemu, kernel: Kernel, initrd: bytes, devices: Sequence[str] = ()) -> str:
    """Boot an image of any kind that switches itself off: the console's text.

    `devices`: more of QEMU's options. RigError with the last lines if the VM did not come to its end.
    """
    with tempfile.TemporaryDirectory(prefix="ktls-cost-") as name:
        archive, console = Path(name) / "initrd", Path(name) / "console.log"
        archive.write_bytes(initrd)
        argv = command(qemu, kernel, archive, console, devices)
        try:
            rc, _, err, _ = run(argv, timeout=LIMIT, env=qemu.env)
        except RigError as exc:
            raise RigError(f"the cost VM did not end within {LIMIT:g} s{_tail(_text(console))}") from exc
        text = _text(console)
    if rc != 0:
        words = err.decode("utf-8", "replace").strip()[-300:]
        raise RigError(f"the cost VM: QEMU ended with {rc}: {words}{_tail(text)}")
    return text


def _text(console: Path) -> str:
    return console.read_text(errors="replace").replace("\r", "") if console.is_file() else ""


def _tail(text: str) -> str:
    return "".join(f"\n  | {line}" for line in text.splitlines()[-12:])


def lines_of(text: str, mark: str | tuple[str, ...]) -> list[str]:
    """A console's lines that begin with a mark; RigError if init failed, or the kernel complained."""
    if found := faults(text):
        raise RigError(f"the cost VM's kernel log: {' | '.join(found[:5])}")
    end = re.search(rf"^{DONE} (\d+)$", text, re.M)
    if not end or end[1] != "0":
        raise RigError(f"the cost VM failed{_tail(text)}")
    return [line for line in text.splitlines() if line.startswith(mark)]


def read(text: str, rows: Sequence[Row]) -> list[Moved]:
    """Rows from a console's text; RigError if they are not those asked for, or the kernel complained."""
    moved = [parsed(line) for line in lines_of(text, '{"row"')]
    if [m.row for m in moved] != list(rows):
        names = ", ".join(m.row.name for m in moved) or "none"
        raise RigError(f"the cost VM did not measure the requested rows: {names}")
    return moved


def parsed(line: str) -> Moved:
    """A line of costload; RigError if it makes no sense."""
    try:
        found: dict[str, Any] = json.loads(line)
        tasks: dict[str, int] = {}
        for name, ns in found["tasks"]:
            tasks[str(name)] = tasks.get(str(name), 0) + int(ns)
        row, ends = Row.named(found["row"]), dict(found["ends"])
        return Moved(row, int(found["bytes"]), ends, int(found["encrypted"]), int(found["decrypted"]), tasks)
    except (ValueError, KeyError, TypeError, AttributeError) as exc:
        raise RigError(f"costload said {line[:200]!r}") from exc
