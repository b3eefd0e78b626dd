"""This NIC carries a live migration: QEMU writes to a kernel TLS socket, and stunnel receives it as ever."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from tests.lib.flow.migration_cost import ARMS, Ferry, by_card, measured
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch

pytestmark = [pytest.mark.once, pytest.mark.requires("tls", "ktls-handoff", "stunnel", "qemu")]


@pytest.fixture(scope="module")
def ferry() -> Iterator[Ferry]:
    """Yield what moves a guest, for both tests: to start QEMU takes longer than to move it."""
    with closing(Ferry()) as found:
        yield found


@pytest.mark.promise("payload.tx")
def test_migrates_a_guest_through_the_card(
    rig: Rig, offload: Switch, ferry: Ferry, evidence: dict[str, Any]
) -> None:
    """This NIC encrypts a running guest's memory on its way to QEMU behind stunnel: it arrives equal."""
    offload.on()
    found = ferry.move(rig, "ktls-hw" if by_card(rig.profile) else "ktls-sw")
    written = found.ran.guest.written
    evidence.update(
        found.ran.held,
        migration={**vars(found.ran.moved), "written": written},
        counters=found.counted.nonzero("Tls"),
    )


def test_migration_time_by_transport(
    rig: Rig, offload: Switch, ferry: Ferry, evidence: dict[str, Any]
) -> None:
    """This NIC's host moves one guest by each transport, each time whole; the test reports what that took."""
    offload.on()
    evidence["migrations"] = found = measured(rig, ferry, offload)
    transports = {row["transport"]: row["runs"] for row in found["transports"]}
    skipped = {row["transport"]: row["reason"] for row in found["skipped"]}
    assert transports.keys() | skipped.keys() == set(ARMS) and all(skipped.values()), (
        transports.keys(),
        skipped,
    )
    for transport, runs in transports.items():
        assert runs, f"{transport} was not measured"
        assert all(run["ms"] > 0 and run["rounds"] > 0 and run["bytes"] > 0 for run in runs), (
            transport,
            runs,
        )
        assert all(run[end]["cpu_seconds"] >= 0 for run in runs for end in ("source", "destination")), runs
