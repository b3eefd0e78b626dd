"""This NIC behind ESP: it cannot encrypt TLS that is in ESP already, and must not let it out as it is."""

from __future__ import annotations

from typing import Any

import pytest

from tests.lib.life.life import Life, arrived
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch
from tests.lib.wire import ipsec, ipsec_tls
from tests.lib.wire.ipsec_tls import ERRATUM, SIZE

pytestmark = [pytest.mark.requires("lab", "tls", "ipsec", "wire", "wire-tap")]
EACH = 3  # connections older than ESP, and as many younger ones


def test_no_plaintext_inside_esp(
    rig: Rig, life: Life, offload: Switch, peer_offload: Switch, evidence: dict[str, Any]
) -> None:
    """This NIC lets no TLS record out unencrypted inside ESP; what it held back is whole without ESP."""
    offload.on()
    peer_offload.set(tx=False)  # a card behind ESP as well
    before, pairs = rig.counters(), life.open(EACH)
    for pair in pairs:
        ipsec.quiet(rig, pair.port)  # an acknowledgement in plaintext would be refused once ESP is there
    with ipsec.watching(rig) as seen:
        with ipsec.esp_between(rig, "null"):
            pairs += life.open(EACH)  # as many are younger than ESP
            by_card = (rig.counters() - before)["TlsTxDevice"] == len(pairs)
            counters, stuck = ipsec_tls.sent(rig, pairs)
        taken = [ipsec_tls.taken(pair) for pair in pairs]
    life.close(pairs)
    clear = [seen.clear(ipsec.canary(f"below {number}", SIZE)) for number in range(len(pairs))]
    evidence["ipsec"] = {"card": by_card, "stuck": stuck, "clear": clear, "counters": counters}
    assert max(clear) == 0, f"{clear} of the payload left in plaintext inside ESP"
    for number, there in enumerate(taken):
        arrived(there, f"below {number}", SIZE)
    assert not (stuck and counters["tx_tls_encrypted_bytes"]), (
        f"nothing arrived, and the card counts {counters}"
    )
    if not by_card:
        assert stuck == 0, f"{stuck} connections of software TLS were stuck in ESP"
    elif ipsec_tls.affected(rig):
        assert stuck == len(pairs), f"only {stuck} were stuck: this kernel has been repaired ({ERRATUM})"


@pytest.mark.once
def test_payload_intact_with_tx_offload_off(
    rig: Rig, life: Life, offload: Switch, peer_offload: Switch, evidence: dict[str, Any]
) -> None:
    """This NIC carries TLS in ESP whole both ways with transmit offload off, receive as it promises."""
    offload.on()
    peer_offload.set(tx=False)
    offload.set(tx=False)
    ipsec_tls.whole(rig, life, evidence)


@pytest.mark.once
def test_offloaded_next_to_esp(rig: Rig, life: Life, offload: Switch, evidence: dict[str, Any]) -> None:
    """This NIC encrypts a connection that a policy of a higher rank leaves out of ESP."""
    offload.on()
    (pair,) = life.plain()
    with ipsec.esp_between(rig, "gcm-128"), ipsec_tls.no_esp_for(rig, pair.port):
        counted = rig.counters()
        life.secure([pair])
        pair.moves("left out", SIZE)
        encrypted = (rig.counters() - counted).moved.get("tx_tls_encrypted_bytes", 0)
    life.close([pair])
    evidence["ipsec"] = {"encrypted": encrypted}
    promised = "tx" in rig.profile.directions()
    assert (encrypted >= SIZE) is promised, f"the card encrypted {encrypted} of {SIZE} bytes"
