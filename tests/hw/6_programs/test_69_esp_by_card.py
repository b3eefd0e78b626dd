"""This NIC with IPsec, if it has ESP crypto: it makes what is on the wire, and the states' keys open it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from offload.suite.measure.plan import Setting
from offload.suite.traffic import ipsec
from tests.lib.flow.cores import measured, sound
from tests.lib.life.life import Life
from tests.lib.rig.rig import Rig
from tests.lib.wire import ipsec_card as card

pytestmark = [pytest.mark.once, pytest.mark.requires("lab", "nicsim", "ipsec", "wire", "wire-tap")]


@pytest.fixture(autouse=True)
def crypto(rig: Rig) -> Iterator[None]:
    """The simulated card has it for these tests only: to all others it is the card that it was."""
    dut = rig.bench.dut
    with card.offered(rig):
        assert ipsec.without_card(dut.host, dut.dev) == ""
        yield
    assert ipsec.without_card(dut.host, dut.dev), "the card has ESP crypto still"


ARMS = ("esp-128", "esp-128-hw", "esp-256-hw")


@pytest.mark.parametrize("cipher", ["gcm-128", "gcm-256"])
def test_card_encrypts_and_decrypts_esp(rig: Rig, life: Life, evidence: dict[str, Any], cipher: str) -> None:
    """This NIC encrypts and decrypts ESP: its counters, its host's tap, the wire and the keys agree."""
    card.carries(rig, life, cipher, evidence)


def test_card_ignores_esp_states_of_software(rig: Rig, life: Life) -> None:
    """This NIC does exactly nothing to ESP of states that were not given to it."""
    card.not_asked(rig, life, "gcm-128")


def test_no_plaintext_of_older_connections_in_esp(rig: Rig, life: Life, evidence: dict[str, Any]) -> None:
    """This NIC sends nothing in plaintext inside ESP, of a connection that is older than its states too."""
    card.hides(rig, life, evidence)


def test_esp_with_a_wrong_icv_is_dropped(rig: Rig, life: Life, evidence: dict[str, Any]) -> None:
    """This NIC says of a packet whose ICV does not fit that it does not, and its kernel drops it."""
    card.refuses(rig, life, evidence)


def test_esp_configurations_use_the_card(rig: Rig) -> None:
    """This NIC's arms in ESP are measured, with the proof that it did it: states taken, bytes counted."""
    found = measured(rig, ARMS, Setting("stream", "both", 1, None))
    sound(found, ARMS)
    assert not found["skipped"], found["skipped"]
