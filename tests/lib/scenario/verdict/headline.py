"""The headline of a failed scenario in one sentence: which records are wrong, how, and when."""

from __future__ import annotations

import re

from tests.lib.scenario.space import Scenario, load

# what an invariant said, and what is then wrong with the records: the first that fits
WRONG = tuple(
    (re.compile(said), words)
    for said, words in (
        (r"plaintext|in clear|clear-record", "leave in plaintext"),
        (r"captured frames are unexplained", "leave with frames that TCP did not send"),
        (r"wrong keystream", "have a wrong keystream"),
        (r"bad tag", "have a wrong tag"),
        (r"nonce|wrong sequence", "have a wrong nonce"),
        (r"retransmitted with other bytes", "differ from the first transmission"),
        (r"different: .*(payload|bit flip|garbage|zero run|shift|replay)", "have a wrong ciphertext"),
        (r"different: ", "are malformed"),
        (r"altered record|receiver ended with", "are delivered though they were forged"),
        (r"record was forged, and", "are forged, and the refusals are not counted"),
        (r"SHA-256 differs", "arrive altered"),
        (r"wrong checksum", "are in frames with a wrong checksum"),
        (r"once more|more than once", "are in frames that the card sends twice"),
        (r"bytes ahead of stream offset|leaves after frame", "are in frames that leave out of order"),
        (r"could not place|stayed in the card", "are dropped in the card"),
        (r"of the DUT: ", "are in frames whose headers differ from software's"),
        (r"not resynchronized", "stay with software"),
        (r"contexts were not released", "leave contexts behind"),
        (r"were opened, [rt]x counts|contexts of", "are not offloaded as promised"),
        (r"TlsDecryptError moved", "are refused though they are authentic"),
        (r"_tls_\w+ moved by|_tls_\w+ is missing|and the card counted", "are counted wrongly"),
        (r"bytes arrived|after \d+ of \d+ bytes|stream ended with", "do not all arrive"),
    )
)
OTHER = "break an invariant"
AGAIN = "retransmitted with other bytes"
OFFSET = re.compile(r"stream offset ([\d,]+)")
SIZE = re.compile(r"in a record of ([\d,]+) bytes")
TURNS = range(15, 40)  # powers of two that a counter of bytes may have as its end
CLOSE = 10_000  # bytes: two records of a plain scenario, and a frame


def headline(scenario: Scenario, said: str) -> str:
    """The sentence for what an invariant said of a scenario."""
    wrong = next((words for pattern, words in WRONG if pattern.search(said)), OTHER)
    when = conditions(scenario) or " and ".join(filter(None, [_turned(said), _sized(said)]))
    return " ".join(filter(None, [_records(scenario, said), wrong, when]))


def conditions(scenario: Scenario) -> str:
    """Return what is not plain in it; the direction is in the name of the records."""
    space = load()
    odd = [
        space.words[name, value]
        for name, value in scenario.values
        if name != "direction" and value != space.plain[name]
    ]
    return " and ".join(filter(None, [", ".join(odd[:-1]), *odd[-1:]]))


def _turned(said: str) -> str:
    """Where in a stream it begins, if that is just past a power of two and no condition is left to name."""
    found = OFFSET.search(said)
    at = int(found[1].replace(",", "")) if found else 0
    return next((past(turn) for turn in TURNS if 0 <= at - (1 << turn) < CLOSE), "")


def _sized(said: str) -> str:
    """In records of which size it begins: a plain scenario has some of another size."""
    found = SIZE.search(said)
    plain = f"{int(load().plain['record']):,}"
    return f"in records of {found[1]} bytes" if found and found[1] != plain else ""


def past(turn: int) -> str:
    """A place in a stream, in words."""
    return f"just past 2^{turn} bytes of a connection"


def _records(scenario: Scenario, said: str) -> str:
    """Which records are wrong."""
    return "retransmitted records" if AGAIN in said else load().words["direction", scenario["direction"]]
