"""The suite catches each card that is bad only in bad weather, at the promise that it breaks."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

import pytest

from tests.lib.suite import Suite


class Bad(NamedTuple):
    """A knob, the test that has to see it, the promise that it breaks, and the reason (a pattern)."""

    knob: str
    value: int
    test: str
    promise: str
    reason: str


AGAIN = "test_30_resync.py::test_sends_again_what_was_lost[records]"
HEADER = "test_30_resync.py::test_finds_the_records_again[header]"
NOT_BACK = "not back in step: it decrypted {} % of the calm, with {} errors"
BAD = [
    Bad("tx_ooo_ks", 1, AGAIN, "resync.tx", "wrong keystream|sent again otherwise"),
    Bad("tx_ooo_leak", 1, AGAIN, "resync.tx", "plaintext"),
    Bad("rx_noresync", 1, HEADER, "resync.rx", NOT_BACK.format("0.0", "0")),
    Bad("rx_bad_sn", 1, HEADER, "resync.rx", NOT_BACK.format(r"[\d.]+", r"[1-9]\d*")),
    Bad("rx_late_resync", 40, HEADER, "resync.rx", NOT_BACK.format(r"[\d.]+", r"[1-9]\d*")),
    Bad("rx_stay_sw", 1, HEADER, "resync.rx", NOT_BACK.format("0.0", "0")),
]


@pytest.mark.parametrize("bad", BAD, ids=lambda b: f"{b.knob}-{b.value}")
def test_bad_card_fails_in_bad_weather(suite: Suite, knob: Callable[[str, int], None], bad: Bad) -> None:
    """Without this a buyer would get a certificate for a card that is good only while nothing is lost."""
    knob(bad.knob, bad.value)
    found = suite(bad.test)
    assert found.verdict.word == "failed", f"{found.verdict.headline}\n{found.output}"
    broken = found.promise(bad.promise)
    assert broken.state == "broken", f"{bad.promise} is {broken.state}\n{found.output}"
    assert re.search(bad.reason, broken.reason), broken.reason
    assert "software TLS: intact" in broken.reason, f"the control run failed too: {broken.reason}"


def test_good_card_weathers_it(suite: Suite) -> None:
    """Without this the suite could fail every card: the same weather, the same card, no knob turned."""
    found = suite(*dict.fromkeys(bad.test for bad in BAD))
    assert set(found.tests.values()) == {"pass"}, found.output
    assert [p.criterion.id for p in found.verdict.promises if p.state == "broken"] == []
