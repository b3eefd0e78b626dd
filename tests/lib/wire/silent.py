"""Is the card why the rig seems broken? One that sends nothing makes tests give up waiting.

Whenever something breaks that says nothing of the card, both ends send a few datagrams. The wire shows
whose arrive. The card is at fault only if its kernel gave frames to its queue, its link is up, none of them
came out, and the peer's did: then the wire, the peer and both hosts were alive.
"""

from __future__ import annotations

import json
import time
from collections.abc import Generator
from dataclasses import dataclass
from typing import Any

import pytest

from offload.errors import OffloadError, RigError
from offload.host.base import Bench, Side
from offload.suite.report.record.testinfo import CardSilent
from tests.lib.rig.rig import UP

SEND = (
    "import socket, sys, time\n"
    "sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
    "for _ in range(5): sock.sendto(b'alive?', (sys.argv[1], 9)); time.sleep(0.2)\n"
)
ARRIVE = (
    1.0  # seconds: far more than a frame takes on a busy machine, and address resolution repeats after one
)
SHORT = 30.0  # seconds for a command
ABOVE = {"clsact", "ingress", "netem"}  # what drops by a rule, before the card has the frame


@dataclass(frozen=True)
class Seen:
    """Frames so far: given to the DUT's queue by its kernel, and come out of either card."""

    queued: int
    dut: int
    peer: int


def look(bench: Bench) -> Seen:
    """Count now."""
    assert bench.wire is not None
    ports = [
        int(bench.wire.read(f"/sys/class/net/{port}/statistics/rx_packets")) for port in bench.wire_ports
    ]
    argv = ["tc", "-s", "-j", "qdisc", "show", "dev", bench.dut.dev]
    found = [q for q in json.loads(bench.dut.host.run(argv, timeout=SHORT).text) if q["kind"] not in ABOVE]
    queued = sum(one.get(name, 0) for one in found for name in ("packets", "qlen", "drops"))
    return Seen(queued, *ports)


def linked(dut: Side, peer: Side) -> bool:
    """Whether the DUT's port has a link, and what is for the peer leaves by it."""
    route = dut.host.run(["ip", "route", "get", peer.v4], timeout=SHORT, check=False).text
    return dut.host.read(f"/sys/class/net/{dut.dev}/carrier").strip() == b"1" and f" dev {dut.dev} " in route


def silent(bench: Bench) -> str:
    """In what the card is silent, or an empty string: it is not, or nobody can tell."""
    if bench.wire is None or len(bench.wire_ports) != 2:
        return ""
    try:
        if not linked(bench.dut, bench.peer):
            return ""
        before = look(bench)
        for one, other in ((bench.dut, bench.peer), (bench.peer, bench.dut)):
            argv = ["/usr/bin/python3", "-I", "-S", "-c", SEND, other.v4]
            one.host.run(argv, timeout=SHORT, check=False)
        time.sleep(ARRIVE)
        after = look(bench)
    except (OffloadError, OSError, LookupError, ValueError):
        return ""
    gave, came, theirs = (getattr(after, n) - getattr(before, n) for n in ("queued", "dut", "peer"))
    if came or not gave or not theirs:
        return ""
    return (
        f"the card sends nothing: its link is up, and of {gave} frames that the kernel gave it none came out"
        f"; of the peer's {theirs} did"
    )


def blame(item: pytest.Item, broken: BaseException) -> None:
    """CardSilent if the card of the lab that is up is why this broke."""
    rig: Any = item.config.stash.get(UP, None)
    if rig is not None and (why := silent(rig.bench)):
        first = next(iter(str(broken).strip().splitlines()), type(broken).__name__)
        raise CardSilent(f"{why}; the test ended: {first}") from None


@pytest.hookimpl(wrapper=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """What fails here would be the rig's fault."""
    try:
        return (yield)
    except Exception as exc:
        blame(item, exc)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """An assertion is about the card already."""
    try:
        return (yield)
    except RigError as exc:
        blame(item, exc)
        raise


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """What fails here would be the rig's fault."""
    try:
        return (yield)
    except Exception as exc:
        blame(item, exc)
        raise
