"""A connection of TLS 1.3 whose keys changed on the way: what does the wire prove of what the DUT sent?"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from offload.suite.wire import streams
from offload.suite.wire.handshake import Session
from offload.suite.wire.keys import Schedule
from offload.suite.wire.records import Walk
from offload.suite.wire.words import first_sentence
from tests.lib.wire.raw import Key, document, keys_of


def proves(
    capture: Path, evidence: dict[str, Any], port: int, keys: tuple[bytes, bytes], sent: bytes
) -> None:
    """Assert that each record is what a sender with these keys puts there; note what was found.

    `keys`: those from the client and from the server, each the first and the next.
    """
    up, down = keys_of(keys[0]), keys_of(keys[1])
    (one,) = [c for c in streams.load(capture, port).connections if c.from_client.reach]
    session = Session("1.3", suite=up[0].suite, schedules=(_schedule(up), _schedule(down)))
    ours, theirs = Walk(one.from_client, session, sent), Walk(one.from_server, session, None)
    for walk in (ours, theirs):
        walk.guarded, walk.epoch = True, 1
    ours.run()
    seen = document(one, ours, theirs, session)
    outcome = seen["outcome"]
    words = "" if outcome == "equal" else first_sentence(seen)
    evidence["wire"] = {
        "proof": "B",
        "outcome": outcome,
        "engine": "python",
        "records": ours.tally.app_records,
        "bytes": ours.tally.payload_bytes,
        "difference": words,
    }
    assert not words, f"on the wire, across the KeyUpdate: {words}"
    assert ours.epoch == 2 and ours.tally.payload_bytes == len(sent), "not all of the payload was proven"


def _schedule(keys: tuple[Key, Key]) -> Schedule:
    """The first epoch is the handshake's, of which there is none here."""
    first, second = (key.schedule().epochs[0] for key in keys)
    return Schedule([first, first, second])
