"""This NIC with IPsec, if it has ESP crypto: it makes what is on the wire, and the states' keys open it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from offload.suite.measure.plan import Setting
from offload.suite.traffic import ipsec as esp
from tests.lib.flow.cores import measured, sound
from tests.lib.life.life import KIB, Life
from tests.lib.rig.rig import Rig
from tests.lib.wire import ipsec
from tests.lib.wire import ipsec_card as card
from tests.lib.wire.wire import share

pytestmark = [pytest.mark.once, pytest.mark.requires("lab", "nicsim", "ipsec", "wire", "wire-tap")]

SIZE = 192 * KIB


@pytest.fixture(autouse=True)
def crypto(rig: Rig) -> Iterator[None]:
    """The simulated card has it for these tests only: to all others it is the card that it was."""
    dut = rig.bench.dut
    with card.offered(rig):
        assert esp.without_card(dut.host, dut.dev) == ""
        yield
    assert esp.without_card(dut.host, dut.dev), "the card has ESP crypto still"


ARMS = ("esp-128", "esp-128-hw", "esp-256-hw")


@pytest.mark.parametrize("cipher", ["gcm-128", "gcm-256"])
def test_card_encrypts_and_decrypts_esp(rig: Rig, life: Life, evidence: dict[str, Any], cipher: str) -> None:
    """This NIC encrypts and decrypts ESP: its counters, its host's tap, the wire and the keys agree."""
    name, counted = f"card {cipher}", rig.counters()
    with ipsec.watching(rig) as seen, ipsec.esp_between(rig, cipher, card=True) as made:
        (pair,) = life.plain()
        pair.moves(name, SIZE)
        life.close([pair])
        ipsec.quiet(rig, pair.port)
    done = card.work(rig.counters() - counted)
    out, back = card.of(made.out, seen.wire), card.of(made.into, seen.wire)
    whole = [
        share(ipsec.canary(f"{name} {direction}", SIZE), card.opened(one, packets))
        for direction, one, packets in (("out", made.out, out), ("back", made.into, back))
    ]
    content = ipsec.canary(f"{name} out", SIZE)
    before, clear = share(content, card.inside(card.of(made.out, seen.host))), seen.clear(content)
    evidence["ipsec"] = {"cipher": cipher, "card": done, "packets": [len(out), len(back)], "opened": whole}
    assert seen.spis() == {made.out.spi, made.into.spi}, "ESP of other states was on the wire"
    assert not ipsec.between(rig.bench, ipsec.TCP, seen.wire), "TCP was on the wire next to ESP"
    assert done["ipsec_tx_pkts"] >= len(out) > 0, f"{len(out)} packets left, by the card {done}"
    assert done["ipsec_rx_pkts"] >= len(back) > 0, f"{len(back)} packets came, by the card {done}"
    assert min(done["ipsec_tx_bytes"], done["ipsec_rx_bytes"]) >= SIZE, done
    assert not any(n for name, n in done.items() if "drop" in name), done
    assert min(whole) > card.MOST, f"{whole} of the payload is in what the keys open"
    assert before > card.MOST, f"{before} of the payload was in plaintext inside ESP before the card"
    assert clear == 0, f"{clear} of the payload left in plaintext"


def test_card_ignores_esp_states_of_software(rig: Rig, life: Life) -> None:
    """This NIC does exactly nothing to ESP of states that were not given to it."""
    counted = rig.counters()
    with ipsec.esp_between(rig, "gcm-128"):
        (pair,) = life.plain()
        pair.moves("not asked", card.LITTLE)
        life.close([pair])
        ipsec.quiet(rig, pair.port)
    done = card.work(rig.counters() - counted)
    assert not any(done.values()), f"nobody asked the card: {done}"


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
