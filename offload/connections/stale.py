"""Is a connection that the kernel calls `hw` still on a card? Its route and the card's counters answer.

The kernel's word is that of the moment when the keys were installed (tls_main.c, get_info); after link down
the card has given the connection back, and the word stays (docs/reference/lifecycle.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from offload.card.counters import Snapshot
from offload.card.nic import UPPERS, Match, Nic
from offload.card.profile import WORDS
from offload.connections.sockets import Socket

STALE, UNSURE = "stale", "unsure"


@dataclass(frozen=True)
class Card:
    """A device that routes lead through, and its counters before and after the sockets were read.

    `space`: its namespace's number; `ports`: the devices below it (of a bond, a VLAN); `hw`: how many
    connections it has by the kernel's word.
    """

    space: int
    nic: Nic
    found: Match
    before: Snapshot
    after: Snapshot
    hw: Mapping[str, int]
    ports: tuple[Card, ...] = ()

    def most(self, direction: str) -> int | None:
        """At most this many connections were on this card when the sockets were read; None: it does not
        count.

        Those that came until after less those that had gone before: no connection that opens or closes
        meanwhile makes this too small.
        """
        if self.ports and self.nic.kind == "bond":
            each = [port.most(direction) for port in self.ports]
            return None if None in each else sum(n or 0 for n in each)
        taken = self.after.get(f"{direction}_tls_ctx")
        given = self.before.get(f"{direction}_tls_del")
        return None if taken is None or given is None else max(0, taken - given)

    def missing(self, direction: str) -> int:
        """How many connections the kernel calls hw that are not on the card; 0 where nobody counts."""
        most = self.most(direction)
        return 0 if most is None else max(0, self.hw[direction] - most)

    def offers(self, direction: str) -> bool:
        """Say whether it can offload this direction at all, now or when it is switched on."""
        feature = self.nic.feature(direction)
        below = self.nic.kind == "bond" and any(port.offers(direction) for port in self.ports)
        return below or (feature is not None and (feature.active or not feature.fixed))


def doubt(one: Socket, direction: str, card: Card | None) -> tuple[str, str]:
    """(stale, unsure or '', why) of a direction that the kernel calls hw; ('', '') for any other."""
    if one.conf(direction) != "hw" or one.device == "?":
        return "", ""
    if not one.device:
        return STALE, "the host has no route to the peer now"
    if card is None:
        return UNSURE, f"{one.device} could not be examined"
    if why := _elsewhere(card, direction):
        return STALE, why
    missing, have = card.missing(direction), card.hw[direction]
    if not missing:
        return "", ""
    counted = f"{card.nic.dev} holds {have - missing} of the {have} connections that the kernel reports as hw"
    why = f"{counted}: the card lost the others (link down?); they stay in software"
    return (STALE if missing == have else UNSURE), why


def _elsewhere(card: Card, direction: str) -> str:
    """Why no connection that leads through this device can be on a card, or ''."""
    nic = card.nic
    if not nic.up:
        return f"{nic.dev} is down: its connections moved to software, and stay there"
    if nic.kind in UPPERS and nic.kind != "bond":
        below = " ".join(nic.lower) or "another device"
        danger = f"; if {below} still has it, plaintext may leave (docs/reference/lifecycle.md)"
        return (
            f"the route leads through {nic.dev}, a {nic.kind} on {below}, which encrypts in software{danger}"
        )
    if not card.offers(direction):
        return (
            f"the route leads through {nic.dev}, which has no {WORDS[direction]} offload: software handles it"
        )
    return ""
