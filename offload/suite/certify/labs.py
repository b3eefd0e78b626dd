"""The labs of a certification run: as many as --jobs asks for, booted side by side, one test process each."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

from offload.errors import ConfigError, RigError

if TYPE_CHECKING:
    from offload.suite.bench.vm.lab import Booting, Lab

MOST = 16
FIRST, MORE = (
    1536 << 20,
    1280 << 20,
)  # bytes: a lab (1 GiB), its QEMU and pytest; the first also a module build


def how_many(
    asked: int | None, alone: bool, cpus: int, meminfo: Path = Path("/proc/meminfo"), *, waits: bool = False
) -> int:
    """Return how many labs: what was asked for, else one per `cpus` cores, as far as the memory goes.

    `alone`: one lab is all there can be. `waits`: some labs of this run are silent
    for a minute and need no core meanwhile, so there are four times as many. ConfigError for a number that
    makes no sense, RigError if there is not enough memory for what was asked, or for one.
    """
    if asked is not None and not 1 <= asked <= MOST:
        raise ConfigError(f"--jobs {asked}", f"1 to {MOST} labs in parallel")
    if alone:
        return 1
    room = available(meminfo)
    fit = 1 + max(0, room - FIRST) // MORE
    wanted = asked or max(1, min(at_once(cpus) * (4 if waits else 1), fit, MOST))
    need = FIRST + (wanted - 1) * MORE
    if room < need:
        words = "the lab needs" if wanted == 1 else f"{wanted} labs need"
        raise RigError(f"not enough memory: {room >> 20} MiB are available, {words} {need >> 20} MiB")
    return wanted


def at_once(cpus: int) -> int:
    """Return for how many labs of `cpus` processors each there are cores; one at least."""
    return max(1, len(os.sched_getaffinity(0)) // cpus)


def working(cpus: int) -> int:
    """Return how many labs work at once: three for two cores, as each waits a quarter of the time for TCP.

    36 scenarios with six labs on two cores: two at work took 152 and 143 s, three 129 and 106 s.
    """
    return at_once(cpus) * 3 // 2


def available(meminfo: Path = Path("/proc/meminfo")) -> int:
    """Return the available memory in bytes; a kernel that does not tell has enough."""
    for line in meminfo.read_text().splitlines():
        name, _, rest = line.partition(":")
        if name == "MemAvailable":
            return int(rest.split()[0]) << 10
    return 1 << 60


def all_ready(booting: list[Booting]) -> list[Lab]:
    """Return the labs once each has its bench; if one does not come up none is left. RigError.

    The VMs were started by the caller's own thread, with which they die (`Lab.start`).
    """
    pool = ThreadPoolExecutor(len(booting))
    try:
        return [future.result() for future in [pool.submit(one.ready) for one in booting]]
    except BaseException:
        for one in booting:
            one.stop()  # ends what the threads wait for
        raise
    finally:
        pool.shutdown()


def start_all(number: int, start: Callable[[], Booting]) -> list[Booting]:
    """Start this many VMs; all or none."""
    begun: list[Booting] = []
    try:
        for _ in range(number):
            begun.append(start())
    except BaseException:
        for one in begun:
            one.stop()
        raise
    return begun
