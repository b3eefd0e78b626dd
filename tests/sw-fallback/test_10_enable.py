"""Without a NIC that offloads nothing is switched, the reason is given, and software shows itself."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from offload.card.counters import Snapshot
from offload.card.nic import features
from offload.card.profile import Cell
from offload.cmd import wait_until
from offload.host.base import Completed, Side
from offload.suite.traffic.drive import send, sending, take
from tests.lib.flow import proof
from tests.lib.flow.flow import Traffic

CELL = Cell("tx", "1.2", "aes-gcm-128")


def command(side: Side, *words: str) -> Completed:
    """Run `ktls-offload` on the DUT, with a journal of its own."""
    argv = [sys.executable, "-m", "offload", *words]
    return side.host.run(argv, check=False, env={"KTLS_OFFLOAD_STATE": "/run/ktls-offload-test-state"})


@pytest.mark.promise("enable.refuse")
def test_enable_is_refused_with_the_reason(dut: Side) -> None:
    """Without a NIC that offloads `enable` exits with 5, says why, and changes nothing."""
    before = features(dut.host, dut.dev)
    done = command(dut, "enable", dut.dev)
    assert done.rc == 5, f"exit {done.rc}: {done.stderr.decode()}"
    assert f"{dut.dev}: tls-hw-tx-offload is off [fixed]" in done.stderr.decode()
    assert features(dut.host, dut.dev) == before


@pytest.mark.promise("enable.switch")
def test_status_says_why_not(dut: Side) -> None:
    """Without a NIC that offloads `status` shows both directions as off, fixed, each with a reason."""
    reported = json.loads(command(dut, "status", "--json", dut.dev).checked().text)["devices"][0]
    for direction in ("tx", "rx"):
        row = reported["directions"][direction]
        assert (row["active"], row["fixed"]) == (False, True)
        assert row["why"], f"no reason for {direction}"


@pytest.mark.promise("enable.restore")
def test_restore_finds_nothing_to_do(dut: Side) -> None:
    """Without a NIC that offloads `restore` has nothing to put back, and says so."""
    done = command(dut, "restore", dut.dev)
    assert (done.rc, "nothing to put back" in done.text) == (0, True), done.stderr.decode()


@pytest.mark.promise("counters.zero-when-off")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel")
def test_device_counters_stand_still(traffic: Traffic, evidence: dict[str, Any]) -> None:
    """Without a NIC that offloads software does both directions, and every device counter stands still."""
    flow = traffic.exchanged(CELL, out := sending("sw out", 300_000), back := sending("sw back", 300_000))
    evidence.update(counters=flow.tls(), offload="sw", bytes=out.total + back.total)
    proof.intact(flow.far, out)
    proof.intact(flow.dut, back)
    proof.done_by_software(flow, "tx")
    proof.done_by_software(flow, "rx")
    assert not [name for name, n in flow.moved.nonzero().items() if "Device" in name and n]


@pytest.mark.promise("contexts.balance")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel")
def test_sockets_are_given_back(traffic: Traffic, counters: Callable[[], Snapshot]) -> None:
    """Without a NIC that offloads three connections leave no kernel-TLS socket behind."""
    before, plan = counters(), sending("contexts", 40_000)
    with traffic.behind_stunnel(take()) as (port, first):
        far = [first, *(traffic.again(take()) for _ in range(2))]
        near = [traffic.dut.pump.handoff(traffic.argv(CELL, port), send(plan)) for _ in far]
        reports = [end.report(120) for end in (*near, *far)]
    for seen in reports[3:]:
        proof.intact(seen, plan)
    wait_until(lambda: (counters() - before)["TlsCurrTxSw"] == 0, 120, "every kernel-TLS socket to be freed")
    assert (counters() - before)["TlsTxSw"] == 3
