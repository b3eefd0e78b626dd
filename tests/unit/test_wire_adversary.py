"""A hostile card edits good captures; a third party, who knows what was really said, checks both engines.

The long run is `make fuzz`, or `python -m tests.lib.adversary --examples 50000`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.lib.adversary.oracle import opinion
from tests.lib.adversary.play import PLAIN, answers, complaint, deal_plant, hands
from tests.lib.adversary.table import TABLES, Hand, table


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Where the engines find their files."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def test_an_honest_capture_may_only_be_equal() -> None:
    """Without a NIC the third party has nothing to say of captures that nobody edited."""
    for number in range(TABLES):
        assert opinion(table(number)).allowed == {"equal"}, number


@settings(PLAIN, derandomize=True, max_examples=120)
@given(hands())
def test_no_edit_is_called_equal_and_no_legal_one_different(folder: Path, hand: Hand) -> None:
    """Without a NIC an edited capture gets the outcome that a third party allows, from both engines."""
    why = complaint(hand, answers(hand, folder))
    assert not why, hand


@settings(PLAIN, derandomize=True, max_examples=60)
@given(hands(deal_plant))
def test_payload_in_clear_is_never_equal(folder: Path, hand: Hand) -> None:
    """Without a NIC application data in clear, in any byte of any frame, is found."""
    why = complaint(hand, answers(hand, folder))
    assert not why, hand
