"""A live migration: the guest that dirties its memory, QEMU at both ends, and what must be there after."""

from __future__ import annotations

import hashlib
import struct
import uuid
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from offload.host.base import Side
from offload.suite.traffic import handoff
from tests.lib.life.life import ManyConnections

PROGRAM = Path(__file__).with_name("migration_end.py")
GUEST = handoff.BUILD / "dirty-guest"
QEMU = "qemu-system-x86_64"
PATIENCE = 400.0  # seconds for a step: QEMU, emulated in an emulated machine, on a busy host
# native/dirty-guest/guest.h
PAGE, STATUS, AREA, MAGIC = 4096, 0x200000, 0x400000, 0x59545244
FIELDS = struct.Struct("<6IQ")  # struct status


@cache
def pattern(seed: int, pages: int) -> str:
    """SHA-256 of the pages' words but the first of each, as fill() of guest.c makes them."""
    seen, words = hashlib.sha256(), struct.Struct(f"<{PAGE // 4 - 1}I")
    for page in range(pages):
        x, row = (seed * 2654435761 + page) & 0xFFFFFFFF, []
        for _ in range(PAGE // 4 - 1):
            x = (x * 1664525 + 1013904223) & 0xFFFFFFFF
            row.append(x)
        seen.update(words.pack(*row))
    return seen.hexdigest()


@dataclass(frozen=True)
class Guest:
    """What is moved: `mib` of memory in all, of which all above 4 MiB is dirtied, `rate` pages a second."""

    mib: int = 6
    rate: int = 20
    seed: int = 7

    @property
    def pages(self) -> int:
        """How many pages the guest writes in turn."""
        return (self.mib << 20) // PAGE - AREA // PAGE

    def rest(self) -> str:
        """SHA-256 of what these pages hold except their counts; computed here, not by the guest."""
        return pattern(self.seed, self.pages)

    def counts(self, written: int) -> list[int]:
        """How often each page was written, after this many writes in all."""
        rounds, more = divmod(written, self.pages)
        return [rounds + (page < more) for page in range(self.pages)]

    def argv(self, folder: str) -> list[str]:
        """Return the command that runs it, with QEMU's monitor at `folder`/qmp; the same at both ends."""
        machine = ["-machine", "isapc", "-cpu", "486", "-accel", "tcg,tb-size=8", "-m", str(self.mib)]
        quiet = ["-nodefaults", "-no-user-config", "-display", "none", "-bios", f"{folder}/guest"]
        for number, value in enumerate((self.mib, self.seed, self.rate), 1):
            quiet += ["-device", f"loader,addr={STATUS + 4 * number:#x},data={value},data-len=4"]
        return [QEMU, *machine, *quiet, "-qmp", f"unix:{folder}/qmp,server=on,wait=off"]


@dataclass(frozen=True)
class Status:
    """What the guest says of itself."""

    magic: int
    mib: int
    seed: int
    rate: int
    pages: int
    ticks: int
    written: int


@dataclass(frozen=True)
class Moved:
    """A migration that is over, as the source's QEMU tells it: times in ms; `copied` bytes, in `rounds`.

    `forced`: the guest dirtied faster than the stream carries, and was stopped after the rounds it had.
    """

    status: str
    total: int
    downtime: int
    copied: int
    rounds: int
    error: str = ""
    forced: bool = False


class End:
    """One end: what runs there (migration_end.py), where its files are, and its QEMU.

    `up`: a guest of ours is there, which a migration has stopped and not ended.
    """

    def __init__(self, side: Side, guest: Guest, folder: str) -> None:
        self.side, self.guest, self.folder, self.up = side, guest, folder, False
        self.does = ManyConnections(side, f"{folder}/end.py")

    def call(self, do: str, **fields: Any) -> dict[str, Any]:
        """Tell it something and wait for the answer; Ended with its words if it failed."""
        return self.does.end(self.does.begin(do, **fields), PATIENCE)

    def begin(self, *more: str) -> int:
        """Start QEMU (without waiting for it): the number of the answer."""
        argv = [*self.guest.argv(self.folder), *more]
        return self.does.begin("start", argv=argv, socket=f"{self.folder}/qmp")

    def qmp(self, execute: str, **arguments: Any) -> Any:
        """Tell QEMU something."""
        return self.call("qmp", execute=execute, arguments=arguments)["return"]

    def ready(self) -> None:
        """Wait until the guest has filled its memory, and has begun to write."""
        self.call("ready", at=STATUS, magic=MAGIC)
        self.call("later", at=STATUS + 20, than=1)  # the tick before that one has written its pages

    def go_on(self) -> None:
        """Let a guest that was migrated away go on here, and wait until it has written again."""
        ticks = self.status().ticks
        self.qmp("cont")
        self.call("later", at=STATUS + 20, than=ticks + 1)  # the tick before that one has written its pages

    def status(self) -> Status:
        """Return what the guest says of itself now."""
        return Status(*FIELDS.unpack(bytes.fromhex(self.call("word", at=STATUS, size=FIELDS.size)["hex"])))

    def memory(self) -> dict[str, Any]:
        """Digests of all memory from 1 MiB on, and the count of each page."""
        size = (self.guest.mib - 1) << 20
        return self.call("memory", **{"from": 1 << 20, "size": size, "area": AREA})


@contextmanager
def end(side: Side, guest: Guest) -> Iterator[End]:
    """One end with what it needs, in memory (/run); ended and removed after."""
    folder = f"/run/ktls-offload-{uuid.uuid4().hex[:8]}"
    with ExitStack() as undo:
        undo.callback(side.host.run, ["rm", "-rf", folder], check=False)
        side.host.write(f"{folder}/end.py", PROGRAM.read_bytes(), 0o644)
        side.host.write(f"{folder}/guest", GUEST.read_bytes(), 0o644)
        found = End(side, guest, folder)
        undo.callback(found.does.stop)
        yield found


def start(near: End, far: End) -> None:
    """Start QEMU at both ends at once; the guest runs at the near one.

    One that is there already goes on instead: its QEMU was let migrate it away before, and the far end's is
    ended for a new one.
    """
    asked = [(far, far.begin("-S", "-incoming", "defer"))]
    if near.up:
        near.go_on()
    else:
        asked.append((near, near.begin()))
    for side, number in asked:
        side.does.end(number, PATIENCE)
    if not near.up:
        near.ready()
    near.up = True


def go(near: End, far: End, uri: str, rounds: int = 0) -> Moved:
    """Migrate to what `uri` names, and wait until both ends are done with it.

    `rounds`: after this many the guest is stopped and the rest copied, as Xen does; 0: until the rest is
    small.
    """
    near.qmp("migrate", uri=uri)
    migrated = near.call("migrated", timeout=PATIENCE - 10, rounds=rounds)
    info = migrated["info"]
    if info["status"] == "completed":
        far.call("waits", timeout=PATIENCE - 10)
    ram = info.get("ram", {})
    return Moved(
        info["status"],
        info.get("total-time", 0),
        info.get("downtime", 0),
        ram.get("transferred", 0),
        ram.get("dirty-sync-count", 0),
        info.get("error-desc", ""),
        bool(migrated.get("forced")),
    )


def apart(here: Mapping[str, Any], there: Mapping[str, Any]) -> str:
    """Say where two memories differ: outside the written pages, or in which of them by their counts."""
    pages = [n for n, (a, b) in enumerate(zip(here["counts"], there["counts"], strict=True)) if a != b]
    counts = f"{len(pages)} written pages have other counts{f', the first is {pages[0]}' if pages else ''}"
    return f"({counts}; the rest is {'the same' if here['rest'] == there['rest'] else 'other'})"


def equal(near: End, far: End, how: str) -> tuple[Status, dict[str, Any]]:
    """Assert that both hold the same memory, and that it is what seed and rate say; `how` it was moved.

    Returns what the guest says, and what was compared: `bytes` and their `sha256`, worked out at both ends.
    """
    here, there, status = near.memory(), far.memory(), far.status()
    guest = far.guest
    assert here == there, (
        f"{how}: the guest's memory at the destination differs from the source's {apart(here, there)}"
    )
    assert (status.magic, status.pages, status.seed) == (MAGIC, guest.pages, guest.seed), status
    assert there["rest"] == guest.rest(), "the guest's memory is not what its seed says"
    # stopped between the write of a page and that of the sum, one page is ahead
    assert there["counts"] in (guest.counts(status.written), guest.counts(status.written + 1)), (
        f"{sum(there['counts'])} pages were written by their own counts, {status.written} by the sum"
    )
    return status, {"bytes": (guest.mib - 1) << 20, "sha256": there["sha256"]}


def lives(far: End, before: Status) -> None:
    """Assert that the guest goes on where it was."""
    far.qmp("cont")
    far.call("later", at=STATUS + 20, than=before.ticks)
