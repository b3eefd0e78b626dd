"""This NIC leaves a clean kernel log behind, and can leave itself: runs last, after all the other tests."""

from __future__ import annotations

from typing import Any

import pytest

from offload.nic import look
from offload.vm.console import faults
from tests.lib.rig import Labs


@pytest.mark.promise("rig.clean-log")
def test_kernel_log_is_clean(rig: Any, evidence: dict[str, Any]) -> None:
    """This NIC caused no warning, oops, leak or unencrypted packet in the kernel log of the whole run."""
    log = rig.bench.dut.host.run(["dmesg"]).text
    evidence["log_lines"] = log.count("\n")
    assert log.strip(), "the kernel log is empty: nothing was read"
    assert faults(log) == []


@pytest.mark.promise("lifecycle.unload")
@pytest.mark.requires("own-lab")
def test_driver_is_unloaded(
    request: pytest.FixtureRequest, rig: Any, labs: Labs, evidence: dict[str, Any]
) -> None:
    """This NIC's driver is unloaded after all that was done to it, without a word in the kernel log."""
    request.addfinalizer(labs.close)  # the bench is gone: whoever comes next boots one
    mark, driver = rig.lab.console_mark(), look(rig.bench.dut.host, rig.bench.dut.dev).driver
    evidence["driver"] = driver
    done = rig.lab.root.run(["rmmod", driver], check=False, timeout=60)
    said = rig.lab.console_faults(mark)
    gone = rig.bench.dut.host.run(["test", "-e", f"/sys/class/net/{rig.bench.dut.dev}"], check=False).rc == 1
    assert done.rc == 0, f"rmmod {driver}: {done.stderr.decode('utf-8', 'replace').strip()}"
    assert gone and said == [], f"after rmmod {driver}: {said or 'the port is still there'}"
