"""A hostile card edits good captures; a third party, who knows what was really said, checks both engines.

The long run is `make fuzz`, or `python -m tests.lib.wiregen.adversary --examples 50000`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings

from tests.lib.wiregen.adversary.edits_records import clear, copied
from tests.lib.wiregen.adversary.oracle import opinion
from tests.lib.wiregen.adversary.play import PLAIN, answers, complaint, hands
from tests.lib.wiregen.adversary.reader import read
from tests.lib.wiregen.adversary.table import TABLES, Hand, session_of, table
from tests.lib.wiregen.session import CCS, HANDSHAKE
from tests.lib.wiregen.tcp import ACK, SYN, Seg

TLS12, TLS13 = (next(n for n in range(TABLES) if session_of(n).suite.tls13 == new) for new in (False, True))


@pytest.fixture(scope="module")
def folder() -> Iterator[Path]:
    """Where the engines find their files."""
    with tempfile.TemporaryDirectory() as made:
        yield Path(made)


def test_an_honest_capture_may_only_be_equal() -> None:
    """The third party has nothing to say of captures that nobody edited."""
    for number in range(TABLES):
        assert opinion(table(number)).allowed == {"equal"}, number


def before_the_begin() -> Hand:
    """One byte two before the server's stream, which is no keep-alive."""
    hand = table(0)
    answer = next(
        i for i, shot in enumerate(hand.shots) if read(shot.data, shot.orig).flags & (SYN | ACK) == SYN | ACK
    )
    hand.put(answer + 1, hand.shot(Seg(1, -2, ACK, b"\0")))
    return hand


def half_a_message(number: int) -> Hand:
    """Two bytes of clear handshake in front of the record with which the client's protection begins."""
    session = copied(session_of(number))
    first = next(
        i for i, rec in enumerate(session.flow) if rec.direction == 0 and (rec.sealed or rec.kind == CCS)
    )
    session.flow.insert(first, clear(0, HANDSHAKE, b"AB"))
    return table(number, session)


FOUND = {
    "before the begin": before_the_begin,
    "half a message in TLS 1.2": lambda: half_a_message(TLS12),
    "half a message in TLS 1.3": lambda: half_a_message(TLS13),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_it_found_stays_found(folder: Path, name: str) -> None:
    """A capture that was called equal, and should not be, is inconclusive."""
    hand = FOUND[name]()
    said = answers(hand, folder)
    assert {verdict["outcome"] for verdict in said.values()} == {"inconclusive"}
    assert not complaint(hand, said)


@settings(PLAIN, derandomize=True, max_examples=100)
@given(hands())
def test_no_edit_is_called_equal_and_no_legal_one_different(folder: Path, hand: Hand) -> None:
    """An edited capture gets the outcome that a third party allows, from both engines."""
    why = complaint(hand, answers(hand, folder))
    assert not why, hand
