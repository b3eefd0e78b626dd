"""This NIC's connections end in every order, in peace and in anger, and nothing of them is left."""

from __future__ import annotations

from typing import Any

import pytest

from offload.card.profile import Profile
from offload.suite.traffic.impair import RandomImpairment, wirebox
from tests.lib.life.endings import ENDINGS, gone, vanish
from tests.lib.life.life import KIB, Life
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch

pytestmark = [pytest.mark.promise("lifecycle.close"), pytest.mark.requires("tls")]


@pytest.mark.parametrize("how", ENDINGS)
def test_every_ending_leaves_nothing_behind(
    life: Life, rig: Rig, offload: Switch, profile: Profile, evidence: dict[str, Any], how: str
) -> None:
    """This NIC lets a connection end like this, every byte before it whole, and keeps nothing of it."""
    offload.on()
    before = rig.counters()
    pair = life.open()[0]
    pair.moves(how)
    ENDINGS[how](pair)
    gone(rig, pair.port)
    moved = rig.counters() - before
    evidence["counters"] = {name: n for name, n in moved.nonzero().items() if "tls" in name.lower()}
    for direction in profile.directions():
        assert moved[f"Tls{direction.title()}Device"] == 1, f"{direction}: the card did not accept it"
    assert moved["tx_tls_encrypted_bytes"] >= 64 * KIB, "the card encrypted nothing to speak of"


@pytest.mark.requires("wire")
def test_vanished_peer_is_given_up(
    life: Life, rig: Rig, offload: Switch, profile: Profile, evidence: dict[str, Any]
) -> None:
    """This NIC gives up with TCP a connection whose peer is heard of no more, and keeps nothing of it."""
    offload.on()
    pair = life.open()[0]
    pair.moves("vanish")
    with wirebox(rig.bench, [RandomImpairment(loss=100.0)]) as box:
        evidence["seconds_until_given_up"] = vanish(pair)
        gone(rig, pair.port)
    evidence["impairment"] = box.record().json()["summary"]
    pair.far.close(reset=True)
