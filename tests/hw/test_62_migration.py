"""This NIC carries a live migration: QEMU writes to a kernel TLS socket, and stunnel receives it as ever."""

from __future__ import annotations

from typing import Any

import pytest

from offload.profile import Cell
from tests.lib.migration import Guest
from tests.lib.migration_ways import CIPHER, VERSION, moved_over_ktls
from tests.lib.rig import Rig
from tests.lib.switch import Switch

CELL = Cell("tx", VERSION, CIPHER)


@pytest.mark.once
@pytest.mark.promise("payload.tx")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel", "qemu")
def test_migrates_a_guest_through_the_card(rig: Rig, offload: Switch, evidence: dict[str, Any]) -> None:
    """This NIC encrypts a running guest's memory on its way to QEMU behind stunnel: it arrives equal."""
    by = "hw" if CELL in rig.profile.promises else "sw"
    flow = moved_over_ktls(rig, Guest(), evidence)
    assert (flow.line["tx"], flow.line["kernel_cipher"]) == (by, CIPHER), flow.line
    assert flow.counted["TlsTxDevice" if by == "hw" else "TlsTxSw"] == 1, flow.counted.nonzero("Tls")
    if by == "hw":
        done = flow.counted["tx_tls_encrypted_bytes"]
        assert done >= flow.moved.copied, f"QEMU sent {flow.moved.copied} bytes, the card encrypted {done}"
