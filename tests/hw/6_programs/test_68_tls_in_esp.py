"""This NIC behind ESP: it cannot encrypt TLS that is in ESP already, and must not let it out as it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lib.life.life import Life
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch
from tests.lib.wire.ipsec_tls import dead, left_out, whole

pytestmark = [pytest.mark.requires("lab", "tls", "ipsec", "wire", "wire-tap")]


def test_no_plaintext_inside_esp(
    rig: Rig, life: Life, offload: Switch, peer_offload: Switch, evidence: dict[str, Any]
) -> None:
    """This NIC lets no TLS record out unencrypted inside ESP; what it held back is whole without ESP."""
    offload.on()
    peer_offload.set(tx=False)  # a card behind ESP as well
    dead(rig, life, evidence)


@pytest.mark.once
def test_payload_intact_with_tx_offload_off(
    rig: Rig, life: Life, offload: Switch, peer_offload: Switch, evidence: dict[str, Any]
) -> None:
    """This NIC carries TLS in ESP whole both ways with transmit offload off, receive as it promises."""
    offload.on()
    peer_offload.set(tx=False)
    offload.set(tx=False)
    whole(rig, life, evidence)


@pytest.mark.once
def test_offloaded_next_to_esp(rig: Rig, life: Life, offload: Switch, evidence: dict[str, Any]) -> None:
    """This NIC encrypts a connection that a policy of a higher rank leaves out of ESP."""
    offload.on()
    left_out(rig, life, evidence)
