"""This NIC leaves a clean kernel log behind: runs last, over everything that the other tests did."""

from __future__ import annotations

from typing import Any

import pytest

from offload.suite.bench.vm.console import faults, unlisted
from offload.suite.bench.vm.debugged import reports
from tests.lib.life.kmemleak import leaks


@pytest.mark.promise("rig.clean-log")
def test_kernel_log_is_clean(rig: Any, evidence: dict[str, Any]) -> None:
    """This NIC caused no warning, oops, leak or unencrypted packet in the kernel log of the whole run."""
    host = rig.bench.dut.host
    lost = leaks(host)
    log = host.run(["dmesg"]).text
    evidence["log_lines"] = log.count("\n")
    assert log.strip(), "the kernel log is empty: nothing was read"
    found = faults(log + lost)
    named = evidence["reports"] = reports(log + lost, host.run(["uname", "-r"]).text)
    assert not named, f"the kernel reports {'; '.join(named[:3])}"
    assert unlisted(found, rig.profile.warnings()) == []
    assert not found, f"the kernel warned: {found[0]}"
