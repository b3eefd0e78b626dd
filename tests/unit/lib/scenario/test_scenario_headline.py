"""The headline of a failed scenario names the records, what is wrong with them, and the conditions."""

from __future__ import annotations

import pytest

from offload.card.profile import find
from offload.suite.wire.phrases import CAUSES
from tests.lib.catalogue.drawn import CARD, defects
from tests.lib.scenario.space import load
from tests.lib.scenario.verdict.headline import OTHER, WRONG, conditions, headline

SPACE = load(find(CARD))


@pytest.mark.parametrize(
    ("line", "said", "sentence"),
    [
        (
            "seed=7,cell=1.2-aes-gcm-256,trouble=lost-tag",
            "different: retransmitted with other bytes at stream offset 31,757 (frame 115): wrong keystream",
            "retransmitted records have a wrong keystream under AES-256-GCM of TLS 1.2"
            " and when the frame with a tag is lost",
        ),
        (
            "seed=7,direction=rx,ip=v6,trouble=forged-body,mtu=9000",
            "12 bytes of an altered record, or behind it, were delivered",
            "received records are delivered though they were forged over plain IPv6, at an MTU of 9000"
            " and when a byte of ciphertext is forged",
        ),
        (
            "seed=7",
            "plaintext on the wire at stream offset 7: 0a1b; connection of port 9: different: bad tag",
            "sent records leave in plaintext",
        ),
        (
            "seed=7,direction=both,event=carrier",
            "contexts were not released: {'tx': 1} are left",
            "records sent and received at once leave contexts behind while the cable is pulled and put back",
        ),
        (
            "seed=7,ip=v6",
            "frame 12 of the DUT: the packet of frame 11 once more",
            "sent records are in frames that the card sends twice over plain IPv6",
        ),
        (
            "seed=7,direction=rx",
            "in all: rx_tls_decrypted_bytes moved by 12, wanted 13 to 14",
            "received records are counted wrongly",
        ),
        (
            "seed=7",
            "frame 3 of the DUT: TTL or hop limit 3, software sends 64",
            "sent records are in frames whose headers differ from software's",
        ),
        (
            "seed=7,mtu=9000",
            "1 of 490 captured frames are unexplained: stray-data at 303",
            "sent records leave with frames that TCP did not send at an MTU of 9000",
        ),
        ("seed=7", "nobody has seen this before", f"sent records {OTHER}"),
        (
            "seed=7",
            "connection of port 9: different: at stream offset 66,012: record 16, tag byte 7: bad tag",
            "sent records have a wrong tag just past 2^16 bytes of a connection",
        ),
        (
            "seed=7",
            "connection of port 9: different: at stream offset 49,513: bad tag; in a record of 16,384 bytes",
            "sent records have a wrong tag in records of 16,384 bytes",
        ),
        (
            "seed=7",
            "port 9: different: at stream offset 65,600: bad tag; in a record of 16,384 bytes",
            "sent records have a wrong tag just past 2^16 bytes of a connection"
            " and in records of 16,384 bytes",
        ),
        (
            "seed=7",
            "port 9: different: at stream offset 13: bad tag; in a record of 4,096 bytes",
            "sent records have a wrong tag",
        ),
        (
            "seed=7,ip=v6",
            "frame 60 of the DUT: a wrong checksum (stream offset 66,012)",
            "sent records are in frames with a wrong checksum over plain IPv6",
        ),
        (
            "seed=7",
            "frame 7 is 1444 bytes ahead of stream offset 50,000",
            "sent records are in frames that leave out of order",
        ),
    ],
)
def test_a_failure_is_a_sentence(line: str, said: str, sentence: str) -> None:
    """A headline says which records are wrong, how, and under what conditions."""
    assert headline(SPACE.parse(line), said) == sentence


def test_every_cause_that_the_wire_names_has_its_words() -> None:
    """No class of difference of `wire verify` is called by the general words."""
    plain = SPACE.parse("seed=7")
    for cause in CAUSES:
        assert OTHER not in headline(
            plain, f"connection of port 9: different: 10.0.0.1, record 5: {cause}"
        ), cause


def test_no_words_are_a_part_of_others() -> None:
    """Each condition has words that no other one holds."""
    every = load().words
    assert all(5 < len(words) < 50 and words == words.strip() for words in every.values())
    for one, words in every.items():
        assert [other for other, held in every.items() if words in held] == [one], words


def test_plain_conditions_need_no_words() -> None:
    """The plainest scenario has no condition to name, and each odd value is named."""
    assert conditions(SPACE.parse("seed=7")) == conditions(SPACE.parse("seed=7,direction=rx")) == ""
    for name, values in SPACE.made.items():
        for value in values:
            odd = SPACE.parse("seed=7").having(name, value)
            said = headline(odd, "")
            assert (SPACE.words[name, value] in said) == (value != SPACE.plain[name] or name == "direction")


def test_a_headline_blames_what_a_drawn_card_has() -> None:
    """The headline of a drawn card's own scenario holds what its condition is called."""
    for one in defects():
        said = headline(SPACE.parse(one.line), "different")
        assert all(words in said for words in one.named) or one.condition.place, one.id


def test_no_pattern_is_hidden_by_another() -> None:
    """Every row of the table says something else."""
    assert len({words for _, words in WRONG}) == len(WRONG)
