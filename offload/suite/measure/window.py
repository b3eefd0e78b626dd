"""The time in which is measured: CPU at its begin and its end, and a line for people in between."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from offload.card.counters import tls_stat
from offload.errors import RigError
from offload.host.base import Host
from offload.suite.measure.cpu.cycles import Counter, Cycles
from offload.suite.measure.cpu.memory import Memory, Traffic
from offload.suite.measure.cpu.meter import INTERVAL, Meter, Snapshot, parse

Carried = Callable[[], dict[str, int]]


class Ticks:
    """Takes the snapshots of an emulated machine: only its ticks are used, and every question costs a lot."""

    def __init__(self, host: Host) -> None:
        self.host = host

    def snapshot(self) -> Snapshot:
        """Read /proc/stat once; `at` is this machine's clock."""
        cpus = parse(self.host.read("/proc/stat"), f"/proc/stat ({self.host.name})")
        return Snapshot(self.host.name, time.monotonic(), 0.0, 100, cpus)


@dataclass(frozen=True)
class Look:
    """A moment of a turn: Gbit/s on the interface, active cores, connections in hardware and in software."""

    gbits: float
    cores: float
    of: int
    hw: int
    sw: int

    def say(self) -> str:
        """As the live line has it."""
        return f"{self.gbits:6.2f} Gbit/s {self.cores:5.2f} of {self.of} cores  hw {self.hw} sw {self.sw}"


class Live:
    """The live line: asks the DUT every second and rewrites one line of a terminal."""

    def __init__(self, host: Host, meter: Meter | Ticks, carried: Carried) -> None:
        self.host, self.meter, self.carried = host, meter, carried
        self.arm, self.setting, self._last, self._shown = "", "", (0.0, {"tx": 0, "rx": 0}), 0
        self._cpu: Snapshot | None = None

    def look(self) -> Look | None:
        """Return what happened since the last look; None at the first one."""
        now, bytes_now, cpu = time.monotonic(), self.carried(), self.meter.snapshot()
        (then, bytes_then), before = self._last, self._cpu
        self._last, self._cpu = (now, bytes_now), cpu
        if before is None:
            return None
        try:
            cores = (cpu - before).cores if isinstance(self.meter, Meter) else ticked(before, cpu)
        except RigError:
            return None  # too short a time: the next second has more
        stat = tls_stat(self.host)[0] or {}
        kinds = [max(stat.get(f"TlsCurr{d}{kind}", 0) for d in ("Tx", "Rx")) for kind in ("Device", "Sw")]
        moved = sum(bytes_now[side] - bytes_then[side] for side in ("tx", "rx"))
        return Look(moved * 8 / (now - then) / 1e9, cores, len(cpu.cpus), *kinds)

    def show(self) -> None:
        """Look, and write the line."""
        look = self.look()
        self.write(f"{self.arm:<5} {look.say() if look else '...'}  {self.setting}")

    def write(self, text: str) -> None:
        """Write over what stands there."""
        text = text[: shutil.get_terminal_size().columns - 1]  # a line that wraps cannot be written over
        sys.stderr.write(f"\r{text:<{self._shown}}")
        sys.stderr.flush()
        self._shown = len(text)

    def clear(self) -> None:
        """Leave the line empty."""
        if self._shown:
            self.write("")
            sys.stderr.write("\r")
            self._shown = 0


class Window:
    """What a workload calls around the part of its run that counts."""

    def __init__(
        self,
        meter: Meter | Ticks,
        live: Live | None = None,
        counter: Counter | None = None,
        memory: Memory | None = None,
    ) -> None:
        self._meter, self._live, self._counter, self._memory = meter, live, counter, memory
        self._cycles: list[Cycles] = []
        self._traffic: list[Traffic] = []
        self._lost: RigError | None = None
        self._before: Snapshot | None = None
        self._after: Snapshot | None = None

    def begin(self) -> None:
        """From here on it counts."""
        self._before = self._meter.snapshot()
        self._count()

    def _count(self) -> None:
        if self._counter:
            self._cycles.append(self._counter.snapshot())
        if self._memory:
            try:
                self._traffic.append(self._memory.snapshot())
            except RigError as exc:  # told with the figures: the cores are right all the same
                self._lost = exc

    def wait(self, seconds: float, over: Callable[[], bool] | None = None) -> bool:
        """Let this much time go by, or less if `over()`; the live line moves. Say whether it was over."""
        end = time.monotonic() + seconds
        show = time.monotonic()
        while (left := end - time.monotonic()) > 0:
            if over and over():
                return True
            if self._live and time.monotonic() >= show:
                self._live.show()
                show = time.monotonic() + INTERVAL
            time.sleep(min(left, 0.1 if over else INTERVAL))
        return bool(over and over())

    def end(self) -> None:
        """To here."""
        self._count()
        self._after = self._meter.snapshot()

    @property
    def ends(self) -> tuple[Snapshot, Snapshot]:
        """Both snapshots. RigError if there are none."""
        if self._before is None or self._after is None:
            raise RigError("no measurement: the workload never reached its measuring window")
        return self._before, self._after

    @property
    def seconds(self) -> float:
        """How long it was."""
        before, after = self.ends
        return after.at - before.at

    @property
    def cpus(self) -> int:
        """How many CPUs the host has."""
        return len(self.ends[1].cpus)

    @property
    def cores(self) -> float:
        """Active cores in it. RigError if that cannot be known."""
        before, after = self.ends
        return ticked(before, after) if isinstance(self._meter, Ticks) else (after - before).cores

    @property
    def cycles(self) -> int | None:
        """Cycles of all CPUs in it; None where they are not counted. RigError if they cannot be known."""
        if self._counter is None:
            return None
        before, after = self._cycles
        return sum((after - before).values())

    @property
    def memory(self) -> int | None:
        """Bytes to and from memory in it; None where they are not counted. RigError if they went back."""
        if self._memory is None:
            return None
        if self._lost:
            raise self._lost
        before, after = self._traffic
        return after - before


def ticked(before: Snapshot, after: Snapshot) -> float:
    """Active cores by ticks alone, for an emulated machine, which stands still now and then.

    Such a machine misses ticks, and cpu.difference() then rightly refuses to say anything of its seconds.
    """
    total = 0.0
    for cpu in before.cpus.keys() & after.cpus.keys():
        spent = {name: ticks - before.cpus[cpu][name] for name, ticks in after.cpus[cpu].items()}
        idle = max(spent["idle"], 0) + max(spent["iowait"], 0) + max(spent["steal"], 0)
        busy = max(sum(spent.values()) - idle, 1)  # work that ended between two ticks was not seen
        total += busy / (busy + idle)
    return total
