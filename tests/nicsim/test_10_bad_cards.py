"""The suite catches each bad card, at the promise that it breaks, and lets a good one pass."""

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


SENDS = "test_20_wire.py::test_sends_to_stunnel[tx-12_aes_gcm_128-v4]"
RECEIVES = "test_20_wire.py::test_receives_from_stunnel[rx-12_aes_gcm_128-v4]"
RECORDS = "test_21_records.py::test_records_it_sends[tx-12_aes_gcm_128-v4]"
FORGED = "test_23_where.py::test_refuses_a_record_that_was_altered_on_the_wire[many-frames]"
SWITCH = "test_10_enable.py::test_checksum_off_takes_offload_along"
CORNER = "test_10_enable.py::test_four_corners[tx-off-rx-off]"
ZERO = "test_10_enable.py::test_counts_nothing_while_off"
MOVE = "test_10_enable.py::test_counts_what_it_offloads"
BALANCE = "test_10_enable.py::test_gives_contexts_back"
BAD = [
    Bad("tx_leak", 1, SENDS, "payload.tx", "handshake"),
    Bad("tx_bad_tag", 20, SENDS, "payload.tx", "the receiver ended with"),
    Bad("tx_bad_tag", 20, RECORDS, "wire.records", "tag.*(bad tag|bit flip)"),
    Bad("tx_nonce_reuse", 1, RECORDS, "wire.records", "nonce reuse"),
    Bad("refuse_add", 1, SENDS, "payload.tx", "inet_diag shows transmit as sw"),
    # wrong bytes in a record decrypted whole arrive; in another, or in a header, the kernel finds them
    Bad("rx_garble", 1, RECEIVES, "payload.rx", "SHA-256 differs|EBADMSG|EMSGSIZE|EINVAL"),
    Bad("rx_noresync", 1, RECEIVES, "payload.rx", "decrypted too little"),
    Bad("rx_bad_sn", 1, RECEIVES, "payload.rx", ""),
    Bad("tx_count", 2, ZERO, "counters.zero-when-off", "the card counted"),
    Bad("tx_count", 1, MOVE, "counters.move-when-on", "'tx': 0"),
    Bad("rx_count", 1, MOVE, "counters.move-when-on", "'rx': 0"),
    Bad("rx_noauth", 1, FORGED, "wire.forged", "bytes of an altered record were delivered"),
    Bad("rx_count", 2, FORGED, "wire.forged", "packets counted as decrypted, at most"),
    Bad("ctx_leak", 1, BALANCE, "contexts.balance", "contexts were not given back"),
    Bad("feature_stuck", 1, CORNER, "enable.four-corners", r"on \[requested off\]"),
    Bad("feature_refused", 1, SENDS, "payload.tx", r"off \[requested on\]"),
]


@pytest.mark.parametrize("bad", BAD, ids=lambda b: f"{b.knob}-{b.value}")
def test_bad_card_fails_at_its_promise(suite: Suite, knob: Callable[[str, int], None], bad: Bad) -> None:
    """Without this a buyer would get a certificate for a card with this fault."""
    knob(bad.knob, bad.value)
    found = suite(bad.test)
    assert found.verdict.word == "failed", f"{found.verdict.headline}\n{found.output}"
    broken = found.promise(bad.promise)
    assert broken.state == "broken", f"{bad.promise} is {broken.state}\n{found.output}"
    assert re.search(bad.reason, broken.reason), broken.reason


def test_good_card_breaks_nothing(suite: Suite) -> None:
    """Without this the suite could fail every card: the same tests, the same card, no knob turned."""
    found = suite(*dict.fromkeys(bad.test for bad in BAD), SWITCH)
    assert set(found.tests.values()) == {"pass"}, found.output
    assert [p.criterion.id for p in found.verdict.promises if p.state == "broken"] == []
    assert found.verdict.word == "incomplete"  # only because the other tests were not run
