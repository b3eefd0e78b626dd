"""Without a NIC a live migration needs no stunnel at its source: the kernel encrypts what QEMU writes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lib.migration import Guest
from tests.lib.migration_ways import CIPHER, moved_over_ktls
from tests.lib.rig import Rig


@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "qemu")
def test_migrates_a_guest_by_software(rig: Rig, evidence: dict[str, Any]) -> None:
    """Without a NIC the kernel encrypts a running guest's memory, and behind stunnel it arrives equal."""
    flow = moved_over_ktls(rig, Guest(), evidence)
    assert (flow.line["tx"], flow.line["kernel_cipher"]) == ("sw", CIPHER), flow.line
    assert flow.counted["TlsTxSw"] == 1, flow.counted.nonzero("Tls")
