"""What does each test of a run take? A pytest plug-in of benchmarks/transport.py; one JSON line a test.

Seconds by the clock; processor seconds of the lab's VM, and of what runs the tests (pytest and its ssh);
requests to agents. The processor seconds come in hundredths, and what one test is given too much the next
one has too little.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from offload.suite.bench.vm.client import Client

TICK = os.sysconf("SC_CLK_TCK")


def spent(pid: int) -> float:
    """Processor seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICK


def children() -> Iterator[int]:
    """The processes that we started and have not waited for: of ssh, one a host and one a session."""
    for path in Path("/proc/self/task").glob("*/children"):
        with suppress(OSError):  # a thread that has ended
            yield from map(int, path.read_text().split())


def own() -> float:
    """Processor seconds so far of this process and of all that it started."""
    found = sum(os.times()[:4])
    for pid in children():
        with suppress(OSError):
            found += spent(pid)
    return found


class Meter:
    """Looks before and after each test."""

    def __init__(self, vm: int, path: Path) -> None:
        self._vm, self._out, self._requests = vm, path.open("w"), 0

    def count(self) -> None:
        """Count requests from now on."""
        call = Client.call

        def counted(client: Client, op: str, *args: Any, **fields: Any) -> dict[str, Any]:
            self._requests += 1
            return call(client, op, *args, **fields)

        Client.call = counted  # type: ignore[method-assign]

    def look(self) -> dict[str, float]:
        """Everything so far."""
        return {"wall": time.monotonic(), "vm": spent(self._vm), "own": own(), "requests": self._requests}

    def pytest_runtest_logstart(self) -> None:
        """A test begins, its rig included."""
        self._before = self.look()

    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """It is over."""
        took = {name: value - self._before[name] for name, value in self.look().items()}
        self._out.write(json.dumps({"id": nodeid, **took}) + "\n")
        self._out.flush()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Where to, and whose VM."""
    parser.addoption("--meter", metavar="FILE")
    parser.addoption("--meter-vm", metavar="PID", type=int)


def pytest_configure(config: pytest.Config) -> None:
    """Begin."""
    meter = Meter(config.getoption("--meter-vm"), Path(config.getoption("--meter")))
    meter.count()
    config.pluginmanager.register(meter)
