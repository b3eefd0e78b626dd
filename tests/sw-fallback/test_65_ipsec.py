"""Without a NIC the same is true of ESP: payload whole, and the wire shows what TLS and ESP each protect."""

from __future__ import annotations

from typing import Any

import pytest

from offload.cmd import settles
from offload.errors import Refused
from offload.host.base import Host
from offload.suite.traffic import ipsec
from tests.lib.flow.flow import Traffic
from tests.lib.life.life import Life
from tests.lib.rig.rig import Rig
from tests.lib.wire.ipsec_cases import (
    carries,
    every_part,
    resets,
    whoever_listens,
    without_its_policy,
)

pytestmark = [pytest.mark.once, pytest.mark.requires("lab", "ipsec", "wire", "wire-tap")]


@pytest.mark.turns("cipher")
@pytest.mark.parametrize("cipher", [*ipsec.CIPHERS])
def test_carries_esp(rig: Rig, life: Life, evidence: dict[str, Any], cipher: str) -> None:
    """Without a NIC ESP carries payload both ways: whole, no TCP on the wire, clear only without a cipher."""
    carries(rig, life, cipher, evidence)


def test_segmentation_next_to_esp(rig: Rig, life: Life, evidence: dict[str, Any]) -> None:
    """Without a NIC ESP is whole with every way to cut segments, each really set, and put back after."""
    every_part(rig, life, evidence)


@pytest.mark.requires("tls")
def test_reset_forged_on_the_wire(rig: Rig, life: Life, evidence: dict[str, Any]) -> None:
    """Without a NIC a forged reset ends a software TLS connection as well; one in ESP goes on."""
    resets(rig, life, "sw", evidence)


@pytest.mark.requires("tls", "ktls-handoff", "stunnel")
def test_tls_refuses_another_program_and_esp_does_not(traffic: Traffic, evidence: dict[str, Any]) -> None:
    """Without a NIC ESP serves somebody else's program on the peer's host as well; TLS refuses it."""
    whoever_listens(traffic, evidence)


def test_plaintext_once_the_ipsec_policy_is_gone(rig: Rig, life: Life, evidence: dict[str, Any]) -> None:
    """Without a NIC a connection goes on in clear once its policy is gone, and nobody is told."""
    without_its_policy(rig, life, evidence)


def listed(host: Host) -> str:
    """States (without keys) and policies of a host."""
    return host.run(["/bin/sh", "-c", "ip xfrm state list nokeys; ip xfrm policy list"]).text.strip()


def test_what_nobody_took_away_ends_by_itself(rig: Rig) -> None:
    """Without a NIC states and policies of a run that was killed are gone when their time is over."""
    dut, peer = rig.bench.dut, rig.bench.peer
    left = ipsec.Esp(dut, peer, "gcm-128", False, 3600)
    left.set_up()
    with ipsec.protected(dut, peer, "gcm-128", life=10):  # seconds: enough to look at them on a busy machine
        assert listed(dut.host).count("proto esp") == 4, listed(dut.host)  # two states, two templates
        assert settles(lambda: not listed(dut.host) and not listed(peer.host), 60), listed(dut.host)


def test_somebody_elses_policy_stays(rig: Rig) -> None:
    """Without a NIC a pair of addresses that has IPsec of somebody else is refused, and keeps it."""
    dut, peer = rig.bench.dut, rig.bench.peer
    theirs = f"src {dut.v4}/32 dst {peer.v4}/32 proto tcp dir out"
    dut.host.run(["ip", "xfrm", "policy", "add", *theirs.split(), "priority", "7"])
    try:
        with pytest.raises(Refused, match="has an IPsec policy"), ipsec.protected(dut, peer, "gcm-128"):
            pass
        assert "priority 7" in listed(dut.host), "somebody else's policy was taken away"
        assert "proto esp" not in listed(dut.host) + listed(peer.host), "something of ours was left"
    finally:
        dut.host.run(["ip", "xfrm", "policy", "delete", *theirs.split()])
