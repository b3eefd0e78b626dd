"""Whose failure is a failed scenario: the card's, or that of a rig on which software fails just so."""

from __future__ import annotations

import re

from offload.errors import RigError

INTACT = "intact"
ABSENT = "not to be had"
# what a card or its driver does wrong though the offload is off: software has no part in it
CARDS = re.compile(r"and the card counted|'Device': [1-9]|contexts|_tls_\w+ (moved by|is missing)")


class NotTheCards(RigError):
    """Software fails under the same conditions: what failed says nothing of the card."""


class Unseen(RigError):
    """The capture lacks a connection's beginning, or the host lost packets: no word of the card."""


def judged(twin: str, words: str, line: str) -> None:
    """NotTheCards if software failed, too. `twin`: what came of it; `words`: what was seen with the card."""
    if twin == INTACT or twin.startswith(ABSENT) or CARDS.search(twin):
        return
    raise NotTheCards(
        f"software TLS fails under the same conditions, so this says nothing of the card: {twin}; "
        f"with the card: {words}; repeat it: certify --scenario {line}"
    )
