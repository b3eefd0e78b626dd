"""Without a NIC a live migration needs no stunnel at its source: the kernel encrypts what QEMU writes."""

from __future__ import annotations

from contextlib import closing
from typing import Any

import pytest

from tests.lib.flow.migration_cost import Ferry
from tests.lib.rig.rig import Rig


@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "qemu")
def test_migrates_a_guest_by_software(rig: Rig, evidence: dict[str, Any]) -> None:
    """Without a NIC the kernel encrypts a running guest's memory, and behind stunnel it arrives equal."""
    with closing(Ferry()) as ferry:
        found = ferry.move(rig, "ktls-sw")
    written = found.ran.guest.written
    evidence.update(
        found.ran.held,
        migration={**vars(found.ran.moved), "written": written},
        counters=found.counted.nonzero("Tls"),
    )
