"""This NIC with IPsec: ESP goes through it whole, and the wire shows what TLS and ESP each protect."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.nic import features
from offload.card.profile import Cell
from offload.suite.traffic import ipsec
from tests.lib.flow.flow import Traffic
from tests.lib.life.life import Life
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch
from tests.lib.wire.ipsec_cases import (
    carries,
    every_part,
    resets,
    whoever_listens,
    without_its_policy,
)

pytestmark = [pytest.mark.once, pytest.mark.requires("lab", "ipsec", "wire", "wire-tap")]


@pytest.mark.parametrize("cipher", ["null", "gcm-128", "gcm-256"])
def test_carries_esp(rig: Rig, life: Life, evidence: dict[str, Any], cipher: str) -> None:
    """This NIC carries ESP both ways as it is: payload whole, ESP alone on the wire, ciphertext if any."""
    carries(rig, life, cipher, evidence)


def test_segmentation_next_to_esp(rig: Rig, life: Life, evidence: dict[str, Any]) -> None:
    """This NIC carries ESP whole with every way to cut segments, each really set, and put back after."""
    every_part(rig, life, evidence)


@pytest.mark.requires("tls")
def test_reset_forged_on_the_wire(rig: Rig, life: Life, offload: Switch, evidence: dict[str, Any]) -> None:
    """This NIC's TLS connection ends by a reset that anyone on the wire forges; one in ESP goes on."""
    offload.on()
    by = "hw" if Cell("tx", "1.2", "aes-gcm-128") in rig.profile.promises else "sw"
    resets(rig, life, by, evidence)


@pytest.mark.requires("tls", "ktls-handoff", "stunnel")
def test_tls_refuses_another_program_and_esp_does_not(
    traffic: Traffic, offload: Switch, evidence: dict[str, Any]
) -> None:
    """This NIC's TLS connection is refused to somebody else's program on the peer's host; ESP serves it."""
    offload.on()
    whoever_listens(traffic, evidence)


def test_plaintext_once_the_ipsec_policy_is_gone(rig: Rig, life: Life, evidence: dict[str, Any]) -> None:
    """This NIC carries the same connection in plaintext once its policy is gone, without any warning."""
    without_its_policy(rig, life, evidence)


def test_card_has_no_esp_crypto(rig: Rig) -> None:
    """This NIC either offers ESP crypto, or the arm that needs it is left out with the reason."""
    dut = rig.bench.dut
    feature = features(dut.host, dut.dev).get(ipsec.FEATURE)
    why = ipsec.without_card(dut.host, dut.dev)
    assert (feature is not None and not feature.fixed) == (why == ""), (str(feature), why)
