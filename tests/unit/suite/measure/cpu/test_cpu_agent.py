"""The meter through the lab's agent: the same text, the same figures, whatever the way to the host."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from offload.errors import RigError
from offload.host.local import LocalHost
from offload.host.vm import VmHost
from offload.suite.bench.vm.client import Client
from offload.suite.measure.cpu.cycles import counting
from offload.suite.measure.cpu.meter import Meter
from offload.suite.measure.cpu.tasks import tasks

CODE = "import sys; from offload.suite.bench.vm.guest.agent import main; main(sys.argv[1:])"


@pytest.fixture
def guest() -> Iterator[VmHost]:
    """A host behind the real agent, which runs here over socket pairs."""
    pairs = [socket.socketpair(), socket.socketpair()]
    ours, theirs = zip(*pairs, strict=True)
    fds = [sock.fileno() for sock in theirs]
    argv = [sys.executable, "-S", "-s", "-c", CODE, *map(str, fds)]
    process = subprocess.Popen(argv, pass_fds=fds, cwd=Path(__file__).parents[5])
    for sock in theirs:
        sock.close()
    client = Client(ours[0], lambda: "  | last words")
    client.hello(20)
    yield VmHost(client, "guest")
    client.close()
    ours[1].close()
    process.kill()
    process.wait()


def test_active_cores_are_read_through_the_agent(guest: VmHost) -> None:
    """A host behind an agent is measured as this one is."""
    meter = Meter(guest)
    before = meter.snapshot()
    time.sleep(0.3)
    use = meter.snapshot() - before
    assert use.host == "guest" and use.cpus.keys() == Meter(LocalHost()).snapshot().cpus.keys()
    assert 0 <= use.cores <= len(use.cpus) + use.margin


def test_tasks_are_read_through_the_agent(guest: VmHost) -> None:
    """A process is read by its number, and one that is gone is said."""
    before = tasks(guest, [os.getpid()])
    ran = tasks(guest, [os.getpid()]) - before
    assert ran.host == "guest" and {task.pid for task in ran.ns} == {os.getpid()}
    with pytest.raises(RigError, match=r"process 4194999 is gone \(guest\)"):
        tasks(guest, [4194999])


def test_cycles_are_the_same_on_both_paths(guest: VmHost) -> None:
    """The agent's host counts cycles if this one does, or has the same reason not to."""
    with counting(guest) as there, counting(LocalHost()) as here:
        assert there.absent == here.absent
        assert here.absent or there.snapshot().cpus.keys() == here.snapshot().cpus.keys()
