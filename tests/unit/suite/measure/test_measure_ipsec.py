"""An arm in ESP is one only if its bytes were in ESP, and nothing was refused meanwhile."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from offload.suite.measure import ipsec
from offload.suite.measure.arms import TITLES, Moved, NoFigure
from offload.suite.measure.ipsec import Turn, by_card, carried, cipher, impossible_esp, under
from offload.suite.measure.plan import ESP_ARMS
from offload.suite.measure.table import heading
from offload.suite.traffic.ipsec import Counted

MIB = 1 << 20


def testbed(peer: bool = True) -> Any:
    """A bench, as far as an arm asks it."""
    side = SimpleNamespace(host=SimpleNamespace(name="dut"), dev="eth0")
    return SimpleNamespace(dut=side, peer=side if peer else None)


def turn(bytes_in_esp: int, lost: int = 0, arm: str = "esp-128", card: tuple[str, ...] = ()) -> Turn:
    """A turn that is over, with what the kernel counted, and the directions that the card took."""
    esp: Any = SimpleNamespace(
        out="out", into="into", by_card=card.__contains__, counted=lambda side, one: Counted(bytes_in_esp, 9)
    )
    side: Any = SimpleNamespace(host=SimpleNamespace(name="dut", lost=lost))
    return Turn(arm, "plain", esp, (side,), [{"XfrmInError": 1}])


@pytest.fixture(autouse=True)
def _errors(monkeypatch: pytest.MonkeyPatch) -> None:
    """What IPsec lost is what the test says."""
    monkeypatch.setattr(ipsec, "errors", lambda host: {"XfrmInError": 1 + host.lost})


def test_names() -> None:
    """Each arm has a title and a cipher, and runs over a socket of plain TCP."""
    assert {arm: (cipher(arm), by_card(arm)) for arm in ESP_ARMS} == {
        "esp-null": ("null", False),
        "esp-128": ("gcm-128", False),
        "esp-256": ("gcm-256", False),
        "esp-128-hw": ("gcm-128", True),
        "esp-256-hw": ("gcm-256", True),
    }
    assert all(under(arm) == "plain" and arm in TITLES for arm in ESP_ARMS)
    assert under("hw") == "hw" and not by_card("hw")


def test_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is missing is the reason: the other end, the kernel's ESP, the card's crypto."""
    monkeypatch.setattr(ipsec, "missing", lambda host: "")
    monkeypatch.setattr(ipsec, "without_card", lambda host, dev: f"{dev} has no ESP crypto offload")
    assert "name the peer as netns:NAME" in impossible_esp(testbed(peer=False), "esp-128")
    assert impossible_esp(testbed(), "esp-128") == "" and impossible_esp(testbed(), "sw") == ""
    assert impossible_esp(testbed(), "esp-256-hw") == "eth0 has no ESP crypto offload"
    monkeypatch.setattr(ipsec, "missing", lambda host: "no ESP")
    assert impossible_esp(testbed(), "esp-null") == "no ESP" and impossible_esp(testbed(), "plain") == ""


def test_bytes_that_took_another_path() -> None:
    """Payload that the states did not carry is no figure, and neither is one with losses."""
    turn(MIB).check(Moved(MIB, 0, 1))
    with pytest.raises(NoFigure, match=r"1048576 bytes of payload \(tx\), 100 in ESP"):
        turn(100).check(Moved(MIB, 0, 1))
    with pytest.raises(NoFigure, match=r"payload \(rx\)"):
        turn(MIB // 2).check(Moved(0, MIB, 1))
    with pytest.raises(NoFigure, match="refused or lost packets on dut: XfrmInError 3"):
        turn(MIB, lost=3).check(Moved(MIB, 0, 1))


def test_states_that_the_card_did_not_take() -> None:
    """A state that the driver left to the kernel, in silence, is no arm of the card."""
    turn(MIB, arm="esp-128-hw", card=("out", "into")).check(Moved(MIB, 0, 1))
    for card, side in ((("into",), "tx"), (("out",), "rx"), ((), "tx")):
        with pytest.raises(NoFigure, match=rf"silently rejected the state \({side}\)"):
            turn(MIB, arm="esp-128-hw", card=card).check(Moved(MIB, 0, 1))


def test_other_arms_are_left_alone() -> None:
    """Nothing is put into ESP for another arm, and nothing is asked of it."""
    with carried(testbed(), "sw", 1.0) as found:
        assert (found.runs, found.esp) == ("sw", None)
        found.check(Moved(MIB, 0, 1))


@pytest.mark.parametrize("only, words", [("", "off"), ("soft", "of the card off"), ("gro", "off but GRO")])
def test_parts_in_words(only: str, words: str) -> None:
    """The table says which of the segmentation offloads stay."""
    row = {"workload": "stream", "direction": "tx", "streams": 1, "size": None, "segmentation": False}
    assert heading({**row, **({"only": only} if only else {})}).endswith(f"segmentation offloads {words}")
