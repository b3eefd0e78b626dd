"""How busy the CPUs of a host were: /proc/stat -> Snapshot; Snapshot - Snapshot = Use, in active cores."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields

from offload.errors import RigError
from offload.host.base import Host
from offload.host.tools import tool

# Columns 9 and 10 are guests: their time is in user and nice already (kernel account_guest_time()).
COLUMNS = ("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal")
LINE = re.compile(r"cpu([0-9]{1,5})((?: [0-9]{1,20}){8,32})")
UPTIME = re.compile(r"([0-9]{1,12}\.[0-9]{2}) [0-9]{1,15}\.[0-9]{2}\n?")
U64 = 2**64 - 1
CLOCK = 0.01  # s: what /proc/uptime is rounded to
INTERVAL = 1.0  # s between snapshots where people watch: more often costs more than it tells
TRIES, CLOSE = 5, 0.02  # a snapshot that took longer than CLOSE s is taken again, this many times


@dataclass(frozen=True)
class Snapshot:
    """Ticks of every online CPU, by column of /proc/stat, at one moment.

    `at`: seconds since boot, right within `skew`. `hz`: ticks per second.
    """

    host: str
    at: float
    skew: float
    hz: int
    cpus: Mapping[int, Mapping[str, int]]

    def __sub__(self, before: Snapshot) -> Use:
        return difference(before, self)


@dataclass(frozen=True)
class Core:
    """Seconds of one CPU: what it was idle (waiting for a disk is idle), stolen by the hypervisor, and busy.

    `busy` is what is left of the window. The kernel says by ticks on what it was spent; work that ended
    between two ticks it does not see: that is `unseen`. Rounding can make it a little negative.
    """

    busy: float
    idle: float
    steal: float
    user: float
    nice: float
    system: float
    irq: float
    softirq: float
    unseen: float


PARTS = tuple(field.name for field in fields(Core) if field.name not in ("busy", "idle", "steal"))


@dataclass(frozen=True)
class Use:
    """What the CPUs did in `seconds`; `margin`: active cores by which the clocks' rounding can be wrong."""

    host: str
    seconds: float
    margin: float
    cpus: Mapping[int, Core]

    @property
    def cores(self) -> float:
        """Active cores: the sum over CPUs of their busy fraction."""
        return sum(core.busy for core in self.cpus.values()) / self.seconds

    @property
    def steal(self) -> float:
        """Cores that the hypervisor took away: neither idle nor at work for us."""
        return sum(core.steal for core in self.cpus.values()) / self.seconds

    def parts(self) -> dict[str, float]:
        """On what the active cores were spent, in cores: user, nice, system, irq, softirq, unseen."""
        return {
            name: sum(getattr(core, name) for core in self.cpus.values()) / self.seconds for name in PARTS
        }

    def say(self) -> str:
        """One line for people."""
        parts = ", ".join(f"{name} {value:.2f}" for name, value in self.parts().items())
        stolen = f"; {self.steal:.2f} stolen" if self.steal >= 0.005 else ""
        return f"{self.cores:.2f} of {len(self.cpus)} cores active, +-{self.margin:.2f} ({parts}{stolen})"


class Meter:
    """Takes snapshots of a host. RigError if its text makes no sense; OSError if it cannot be read."""

    def __init__(self, host: Host) -> None:
        self.host, self.hz = host, _hz(host)

    def snapshot(self) -> Snapshot:
        """Read all CPUs; the closest of a few tries, because the way to the host may be slow."""
        best = self._once()
        for _ in range(TRIES - 1):
            if best.skew <= CLOSE / 2:
                break
            best = min(best, self._once(), key=lambda shot: shot.skew)
        return best

    def _once(self) -> Snapshot:
        began = self._uptime()
        text = self.host.read("/proc/stat")
        ended = self._uptime()
        cpus = parse(text, f"/proc/stat ({self.host.name})")
        return Snapshot(self.host.name, (began + ended) / 2, (ended - began) / 2, self.hz, cpus)

    def _uptime(self) -> float:
        text = self.host.read("/proc/uptime")
        found = UPTIME.fullmatch(text.decode("latin-1"))
        if not found:
            raise RigError(
                f"/proc/uptime ({self.host.name}): {text[:60]!r}, wanted two numbers as in 5.02 9.87"
            )
        return float(found[1])


def _hz(host: Host) -> int:
    """Ticks per second in which the host's kernel counts."""
    said = tool(host, ["getconf", "CLK_TCK"]).checked().text.strip()
    if not re.fullmatch(r"[1-9][0-9]{0,4}", said):
        raise RigError(f"getconf CLK_TCK ({host.name}): {said[:60]!r}, wanted ticks per second as in 100")
    return int(said)


def parse(text: bytes, where: str) -> dict[int, dict[str, int]]:
    """Ticks by column of every CPU in /proc/stat. RigError with place, line and text if it makes no sense."""
    cpus: dict[int, dict[str, int]] = {}
    lines = text.decode("latin-1").split("\n")
    for at, line in enumerate(lines, 1):
        if not line.startswith("cpu") or line.startswith("cpu "):
            continue
        found = LINE.fullmatch(line)
        values = [int(word) for word in found[2].split()] if found else []
        if not found or max(values) > U64:
            raise RigError(f"{where}:{at}: {line[:80]!r}, wanted cpuN and 8 or more counters below 2^64")
        if int(found[1]) in cpus:
            raise RigError(f"{where}:{at}: cpu{int(found[1])} appears twice")
        cpus[int(found[1])] = dict(zip(COLUMNS, values, strict=False))
    if not cpus:
        raise RigError(f"{where}: no line of a CPU in {len(text)} bytes")
    if not any(line.startswith("intr ") for line in lines):  # follows the CPUs in every kernel
        raise RigError(f"{where}: cut short: no line `intr` after {len(cpus)} CPUs")
    return cpus


def difference(before: Snapshot, after: Snapshot) -> Use:
    """Return what happened between two snapshots of one host.

    RigError if that cannot be known: no time between them, a CPU came or went, a counter went back.
    """
    seconds, skew = after.at - before.at, before.skew + after.skew
    if (before.host, before.hz) != (after.host, after.hz):
        raise RigError(f"snapshots of two machines: {before.host} and {after.host}")
    if seconds < 0:
        raise RigError(f"{after.host}: its clock went back by {-seconds:.2f} s: was it booted in between?")
    if seconds <= skew + CLOCK:
        raise RigError(
            f"{after.host}: {seconds:.2f} s between two snapshots: the time must be positive", "wait longer"
        )
    moved = {*before.cpus} ^ {*after.cpus}
    if moved:
        names = ", ".join(f"cpu{cpu}" for cpu in sorted(moved))
        raise RigError(f"{after.host}: {names} came or went between the snapshots: measure again")
    cpus = {
        cpu: _core(before.cpus[cpu], now, seconds, skew, after.hz, f"cpu{cpu} ({after.host})")
        for cpu, now in after.cpus.items()
    }
    margin = len(cpus) * (skew + CLOCK + 1 / after.hz) / seconds
    return Use(after.host, seconds, margin, cpus)


def _core(
    before: Mapping[str, int], after: Mapping[str, int], seconds: float, skew: float, hz: int, where: str
) -> Core:
    """Seconds of one CPU.

    Idle time is exact (kernel get_cpu_idle_time_us()), the others are sampled by ticks: so busy is what is
    not idle. iowait may go back while idle catches up (kernel Documentation/filesystems/proc.rst), so they
    are one.
    """
    ticks = {name: after[name] - before[name] for name in COLUMNS}
    rest = ticks.pop("idle") + ticks.pop("iowait")
    back = [name for name, moved in ticks.items() if moved < 0]
    if back or rest < -2:  # two ticks: rounding; more: Linux before 6.8 forgets idle time in CPU hotplug
        raise RigError(f"{where}: {', '.join(back) or 'idle'} went back: was it offline in between?")
    spent = {name: moved / hz for name, moved in ticks.items()}
    idle, slack = max(rest, 0) / hz, skew + CLOCK + 2 / hz
    if idle > seconds + slack:
        raise RigError(f"{where}: idle for {idle:.2f} s of {seconds:.2f} s")
    accounted = idle + sum(spent.values())
    if accounted < seconds / 2 - slack:
        why = "was the CPU offline in between, or the virtual machine paused?"
        raise RigError(f"{where}: accounts for {accounted:.2f} s of {seconds:.2f} s: {why}")
    steal = spent.pop("steal")
    busy = max(seconds - idle - steal, 0.0)
    return Core(busy, idle, steal, **spent, unseen=busy - sum(spent.values()))
