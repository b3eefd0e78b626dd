"""The time in which is measured: CPU at its begin and its end, and a line for people in between."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from offload.counters import tls_stat
from offload.cpu import INTERVAL, Meter, Snapshot, Use
from offload.errors import RigError
from offload.host.base import Host

Carried = Callable[[], dict[str, int]]


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
        return f"{self.gbits:6.2f} Gbit/s  {self.cores:5.2f} of {self.of} cores  hw {self.hw}  sw {self.sw}"


class Live:
    """The live line: asks the DUT every second and rewrites one line of a terminal."""

    def __init__(self, host: Host, meter: Meter, carried: Carried) -> None:
        self.host, self.meter, self.carried = host, meter, carried
        self.title, self._last, self._shown = "", (0.0, {"tx": 0, "rx": 0}), 0
        self._cpu: Snapshot | None = None

    def look(self) -> Look | None:
        """What happened since the last look; None at the first one."""
        now, bytes_now, cpu = time.monotonic(), self.carried(), self.meter.snapshot()
        (then, bytes_then), before = self._last, self._cpu
        self._last, self._cpu = (now, bytes_now), cpu
        if before is None:
            return None
        try:
            use = cpu - before
        except RigError:
            return None  # too short a time: the next second has more
        stat = tls_stat(self.host)[0] or {}
        kinds = [max(stat.get(f"TlsCurr{d}{kind}", 0) for d in ("Tx", "Rx")) for kind in ("Device", "Sw")]
        moved = sum(bytes_now[side] - bytes_then[side] for side in ("tx", "rx"))
        return Look(moved * 8 / (now - then) / 1e9, use.cores, len(use.cpus), *kinds)

    def show(self) -> None:
        """Look, and write the line."""
        look = self.look()
        self.write(f"{self.title}  {look.say() if look else '...'}")

    def write(self, text: str) -> None:
        """Write over what stands there."""
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

    def __init__(self, meter: Meter, live: Live | None = None) -> None:
        self._meter, self._live = meter, live
        self._before: Snapshot | None = None
        self._use: Use | None = None

    def begin(self) -> None:
        """From here on it counts."""
        self._before = self._meter.snapshot()

    def wait(self, seconds: float, over: Callable[[], bool] | None = None) -> bool:
        """Let so much time go by, or less if `over()`; the live line moves. Say whether it was over."""
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
        if self._before is None:
            raise RigError("a window that ends was never begun")
        self._use = self._meter.snapshot() - self._before

    @property
    def use(self) -> Use:
        """What the CPUs did in it. RigError if it was never closed."""
        if self._use is None:
            raise RigError("nothing was measured: the workload opened no window")
        return self._use
