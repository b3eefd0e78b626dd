"""Is a driver noticed whose counters are not what the simulated card counted?"""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.errors import RigError
from offload.suite.bench.cards.silicon import Silicon
from tests.lib.rig import witness
from tests.lib.rig.witness import SAME, TROUBLE, Witness


class Both:
    """The driver's counters and the card's, as a test moves them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.driver = dict.fromkeys(SAME, 100)
        self.card = dict.fromkeys([*SAME.values(), *TROUBLE], 40)
        self.rig: Any = SimpleNamespace(
            lab=SimpleNamespace(folder=Path("lab")),
            counters=lambda: SimpleNamespace(values=lambda: dict(self.driver)),
        )
        self.reads, self.dead = 0, False
        monkeypatch.setattr(Silicon, "truth", lambda _, number: self.truth())
        monkeypatch.setattr(witness, "settles", lambda condition, seconds: condition())

    def truth(self) -> dict[str, int]:
        """What the card counted."""
        self.reads += 1
        if self.dead:
            raise RigError("cx6sim does not answer")
        return dict(self.card)

    def move(self, name: str, driver: int, card: int) -> None:
        """Both count."""
        self.driver[name] += driver
        self.card[SAME[name]] += card


@pytest.fixture
def both(monkeypatch: pytest.MonkeyPatch) -> Both:
    """Two counts that began at different times."""
    return Both(monkeypatch)


def test_equal_counts_pass_and_are_read_once_between_tests(both: Both) -> None:
    """Where they began does not matter; what came between two tests belongs to the second."""
    for _ in range(2):
        found = Witness(both.rig)
        found.begin()
        both.move("tx_tls_encrypted_packets", 7, 7)
        found.check()
    assert both.reads == 3, "begun, and checked twice"
    both.move("rx_tls_decrypted_bytes", 5, 0)
    found.begin()
    with pytest.raises(AssertionError):
        Witness(both.rig).check()


@pytest.mark.parametrize("name", SAME)
def test_each_counter_has_its_witness(both: Both, name: str) -> None:
    """A packet that only one of them saw is named, and is not held against the next test."""
    found = Witness(both.rig)
    found.begin()
    both.move(name, 3, 4)
    with pytest.raises(AssertionError, match=f"the card's own count differ: {name} by -1"):
        found.check()
    found.forget()
    found.begin()
    found.check()


def test_a_failed_test_leaves_nothing(both: Both) -> None:
    """It may have failed before it was checked: what came apart in it is not the next one's."""
    found = Witness(both.rig)
    found.begin()
    both.move("tx_tls_encrypted_bytes", 9, 0)
    found.forget()
    found.begin()
    found.check()


def test_a_counter_that_the_driver_does_not_have_is_zero(both: Both) -> None:
    """A driver without receive counts nothing, and then the card must not either."""
    del both.driver["rx_tls_decrypted_packets"]
    found = Witness(both.rig)
    found.begin()
    found.check()
    both.card["rx_tls_frames"] += 1
    with pytest.raises(AssertionError, match="rx_tls_decrypted_packets by -1"):
        found.check()


@pytest.mark.parametrize(
    ("packets", "dumps", "dropped", "added"),
    [
        (3, 0, 0, "; 3 packets were out of order (tx_tls_ooo), and the card got 0 DUMPs"),
        (2, 5, 0, "; 2 packets were out of order (tx_tls_ooo), and the card got 5 DUMPs"),
        (0, 1, 7, "; the card dropped 7 frames, because it had no receive buffer"),
        (0, 1, 0, ""),
    ],
)
def test_a_failure_says_what_reached_the_card(
    both: Both, packets: int, dumps: int, dropped: int, added: str
) -> None:
    """The first line of a failed test gets the numbers; what was before the test does not count."""
    both.driver["tx_tls_ooo"] = 9
    found, failure = Witness(both.rig), AssertionError("bytes are missing\nand more")
    found.begin()
    both.driver["tx_tls_ooo"] += packets
    both.card["dumps"] += dumps
    both.card["rx_no_buffer"] += dropped
    found.add_to(failure)
    assert str(failure) == f"bytes are missing{added}\nand more"


def test_a_card_that_does_not_answer_hides_no_failure(both: Both) -> None:
    """The failure stays as it was, and what is no assertion stays as it was, too."""
    found, failure, broken = Witness(both.rig), AssertionError("short"), RigError("no VM")
    found.begin()
    both.driver["tx_tls_ooo"] = 5
    found.add_to(broken)
    both.dead = True
    found.add_to(failure)
    assert (str(failure), str(broken)) == ("short", "no VM")
