"""This NIC's offload is switched by our own command and by ethtool, and nothing else than that moves it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any

import pytest

from offload.card.counters import Snapshot
from offload.card.nic import features
from offload.card.profile import FEATURES, Cell, Profile
from offload.cmd import settles
from offload.host.base import Completed, Side
from offload.suite.traffic.drive import send, sending, take
from tests.lib.flow import proof
from tests.lib.flow.flow import Flow, Traffic
from tests.lib.rig.switch import Switch

MIB = 1 << 20
CELL = Cell("tx", "1.2", "aes-gcm-128")  # every card that offloads at all takes this one
STATE = "/run/ktls-offload-test-state"
# An ethtool that stops right after it has switched: the moment for kill -9. It ends with its caller.
SLOW = """#!/bin/sh
/usr/sbin/ethtool "$@"; rc=$?
[ "$1" = -K ] && while kill -0 $PPID 2>/dev/null; do sleep 0.1; done
exit $rc
"""


def command(side: Side, *words: str) -> Completed:
    """Run `ktls-offload` on the DUT, with a journal of its own."""
    argv = [sys.executable, "-m", "offload", *words]
    return side.host.run(argv, check=False, env={"KTLS_OFFLOAD_STATE": STATE})


def active(side: Side) -> dict[str, bool]:
    """Which directions ethtool shows as on."""
    shown = features(side.host, side.dev)
    return {direction: shown[name].active for direction, name in FEATURES.items()}


@pytest.mark.promise("enable.switch")
def test_command_switches_on_and_off(dut: Side, profile: Profile, offload: Switch) -> None:
    """This NIC is switched on by `enable` and off by `disable`, and `status` says which it is."""
    offload.on()
    wanted = {d: d in profile.directions() for d in FEATURES}
    offload.set(tx=False, rx=False)
    done = command(dut, "enable", dut.dev)
    assert done.rc == 0, done.stderr.decode()
    assert active(dut) == wanted
    reported = json.loads(command(dut, "status", "--json", dut.dev).checked().text)["devices"][0]
    assert {d: row["active"] for d, row in reported["directions"].items()} == wanted
    assert reported["profile"] == profile.id
    done = command(dut, "disable", dut.dev)
    assert done.rc == 0, done.stderr.decode()
    assert not any(active(dut).values())


@pytest.mark.promise("enable.switch")
def test_checksum_off_takes_offload_along(dut: Side, profile: Profile, offload: Switch) -> None:
    """This NIC shows TLS offload as off, but requested, without checksum offload, and has it back after."""
    offload.on()
    for direction in profile.directions():
        before = features(dut.host, dut.dev)
        try:
            dut.host.run(["ethtool", "-K", dut.dev, direction, "off"])
            feature = features(dut.host, dut.dev)[FEATURES[direction]]
            assert (feature.active, feature.requested) == (False, True), f"{feature.name} is {feature}"
        finally:
            dut.host.run(["ethtool", "-K", dut.dev, direction, "on"])
        assert features(dut.host, dut.dev) == before


@pytest.mark.once
@pytest.mark.promise("enable.restore")
def test_killed_enable_is_put_back(dut: Side, profile: Profile, offload: Switch, rig: Any) -> None:
    """This NIC is as it was found after `enable` was killed half-way and `restore` was called."""
    offload.on()
    offload.set(tx=False, rx=False)
    before = features(dut.host, dut.dev)
    folder = rig.end("dut").at.folder
    dut.host.write(f"{folder}/slow/ethtool", SLOW.encode(), 0o755)
    argv = ["env", f"PATH={folder}/slow:/usr/sbin:/usr/bin:/sbin:/bin", sys.executable, "-m", "offload"]
    enable = dut.host.start([*argv, "enable", dut.dev], env={"KTLS_OFFLOAD_STATE": STATE})
    switched = settles(lambda: any(active(dut).values()), 60)
    assert switched, f"enable switched nothing: {enable.output()[1].decode()}"
    enable.kill(9)
    assert enable.wait(120).rc == -9, "it was not killed in the middle"
    done = command(dut, "restore", "--all")
    assert done.rc == 0, done.stderr.decode()
    assert features(dut.host, dut.dev) == before


@pytest.mark.promise("enable.refuse")
def test_refuses_what_it_cannot(dut: Side, profile: Profile, offload: Switch) -> None:
    """This NIC is not switched by a profile that is not its own, nor in a direction that it does not have."""
    offload.on()
    before = features(dut.host, dut.dev)
    missing = [d for d in FEATURES if d not in profile.directions()]
    words = [f"--{missing[0]}"] if missing else ["--profile", "chelsio-t6"]
    done = command(dut, "enable", dut.dev, *words)
    assert done.rc == 5, f"exit {done.rc}: {done.stderr.decode()}"
    because = profile.why_no_direction(missing[0]) if missing else "profile chelsio-t6 is for driver cxgb4"
    assert because in done.stderr.decode()
    assert features(dut.host, dut.dev) == before


@pytest.mark.promise("enable.four-corners")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel")
@pytest.mark.parametrize("rx", [False, True], ids=["rx-off", "rx-on"])
@pytest.mark.parametrize("tx", [False, True], ids=["tx-off", "tx-on"])
def test_four_corners(
    traffic: Traffic, offload: Switch, profile: Profile, evidence: dict[str, Any], tx: bool, rx: bool
) -> None:
    """This NIC offloads in exactly the directions that are switched on; payload is right in all four."""
    offload.on()
    tx, rx = tx and "tx" in profile.directions(), rx and "rx" in profile.directions()
    offload.set(tx=tx, rx=rx)
    out, back = sending("corner out", MIB), sending("corner back", MIB)
    flow = traffic.exchanged(CELL, out, back)
    evidence.update(counters=flow.tls(), bytes=out.total + back.total)
    proof.handed_over(flow, CELL)
    proof.intact(flow.far, out)
    proof.intact(flow.dut, back)
    proof.sent_by_card(flow, out) if tx else proof.done_by_software(flow, "tx")
    proof.received_by_card(flow, back) if rx else proof.done_by_software(flow, "rx")


@pytest.mark.promise("counters.zero-when-off")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel")
def test_counts_nothing_while_off(
    traffic: Traffic, offload: Switch, profile: Profile, evidence: dict[str, Any]
) -> None:
    """This NIC moves none of its TLS counters while TLS traffic flows and its switches are off."""
    offload.on()
    offload.set(tx=False, rx=False)
    flow = traffic.exchanged(
        CELL, out := sending("zero out", MIB // 4), back := sending("zero back", MIB // 4)
    )
    proof.handed_over(flow, CELL)
    proof.intact(flow.far, out)
    proof.intact(flow.dut, back)
    own = profile.counters
    names = [n for d in ("tx", "rx") for n in (*own.required(d), *own.optional(d), *own.dead(d))]
    moved = {name: n for name in names if (n := flow.moved.get(name, 0)) != 0}
    evidence["counters"] = {name: flow.moved.get(name) for name in names}
    assert not moved, f"switched off, and the card counted {moved}"


@pytest.mark.promise("counters.move-when-on")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel")
def test_counts_what_it_offloads(
    traffic: Traffic, offload: Switch, profile: Profile, dut: Side, evidence: dict[str, Any]
) -> None:
    """This NIC counts nearly all bytes and packets of TLS traffic as offloaded while its switches are on."""
    offload.on()
    percent: dict[str, dict[str, float]] = {"bytes": {}, "packets": {}}
    for direction in profile.directions():
        name = {"tx": "tx_tls_encrypted", "rx": "rx_tls_decrypted"}[direction]
        plan, before = sending(f"move {direction}", 4 * MIB), packets(dut)
        flow = traffic.sent(CELL, plan) if direction == "tx" else traffic.received(CELL, plan)
        passed = packets(dut)[direction] - before[direction]
        proof.handed_over(flow, CELL)
        proof.intact(flow.far if direction == "tx" else flow.dut, plan)
        percent["bytes"][direction] = 100 * proof.count(flow, f"{name}_bytes") / plan.total
        percent["packets"][direction] = 100 * proof.count(flow, f"{name}_packets") / passed
    for what, found in percent.items():
        evidence[f"offloaded_{what}_percent"] = round(min(found.values()), 2)
    evidence["percent"] = percent
    assert min(percent["bytes"].values()) >= 90 and min(percent["packets"].values()) >= 95, str(percent)


def packets(side: Side) -> dict[str, int]:
    """Packets that the interface sent and received so far."""
    folder = f"/sys/class/net/{side.dev}/statistics"
    return {d: int(side.host.read(f"{folder}/{d}_packets")) for d in ("tx", "rx")}


@pytest.mark.promise("contexts.balance")
@pytest.mark.requires("tls", "ktls-handoff", "stunnel")
def test_gives_contexts_back(
    traffic: Traffic,
    offload: Switch,
    profile: Profile,
    counters: Callable[[], Snapshot],
    evidence: dict[str, Any],
) -> None:
    """This NIC takes one context per connection and direction, and gives each back at its end."""
    offload.on()
    before, plan = counters(), sending("contexts", 40_000)
    with traffic.behind_stunnel(take()) as (port, first):
        far = [first, *(traffic.again(take()) for _ in range(2))]
        near = [traffic.dut.pump.handoff(traffic.argv(CELL, port), send(plan)) for _ in far]
        reports = [end.report(120) for end in (*near, *far)]
    for seen in reports[3:]:
        proof.intact(seen, plan)

    def balanced() -> bool:
        moved = counters() - before
        evidence["counters"] = Flow(reports[0], reports[3], moved).tls()
        pairs = [(f"{d}_tls_ctx", f"{d}_tls_del") for d in profile.directions()]
        given = all(moved.get(taken) == moved.get(back) for taken, back in pairs if back in moved)
        return given and moved["TlsCurrTxDevice"] == 0 and moved["TlsCurrRxDevice"] == 0

    assert settles(balanced, 15), f"contexts were not released: {evidence['counters']}"
    taken = (counters() - before).get("tx_tls_ctx")
    assert taken == 3, f"three connections took {taken} transmit contexts"
