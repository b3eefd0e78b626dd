"""What `ls` looks at: the kernel-TLS sockets, and the cards that their routes lead through."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from offload.card.counters import Snapshot, driver_stats
from offload.card.nic import links, match, seen
from offload.card.nic_why import without_ktls
from offload.card.profile import DIRECTIONS, Profile, load_all
from offload.connections.sockets import Found, Socket, Space, gather
from offload.connections.stale import Card, doubt
from offload.errors import OffloadError
from offload.host.base import Host

Key = tuple[int, str]  # number of a namespace, device in it


class Line(NamedTuple):
    """A connection and what is doubtful about it: for each direction (stale, unsure or '', why)."""

    space: Space
    socket: Socket
    doubts: Mapping[str, tuple[str, str]]

    def word(self, direction: str) -> str:
        """Return what to show for a direction."""
        mark = {"stale": " stale", "unsure": " ?"}.get(self.doubts[direction][0], "")
        return self.socket.conf(direction) + mark


@dataclass(frozen=True)
class Listing:
    """The whole answer."""

    found: Found
    cards: Mapping[Key, Card]
    lines: tuple[Line, ...]
    warnings: tuple[str, ...] = ()
    without: str = ""  # why no module can bring kernel TLS to this kernel

    def count(self, direction: str) -> Counter[str]:
        """How many connections there are of each word."""
        return Counter(line.word(direction) for line in self.lines)

    def on_card(self) -> int:
        """How many connections a card does a direction of now, without a doubt."""
        return sum(any(line.word(d) == "hw" for d in DIRECTIONS) for line in self.lines)

    def doubted(self) -> list[str]:
        """Why each connection that the kernel calls hw, and no card has for certain, is stale or unsure."""
        words = [[line.doubts[d][1] for d in DIRECTIONS if line.doubts[d][0]] for line in self.lines]
        sure = [any(line.word(d) == "hw" for d in DIRECTIONS) for line in self.lines]
        return [why[0] for why, on in zip(words, sure) if why and not on]


@dataclass
class Inspector:
    """Looks at sockets and at the cards behind them; what does not change is looked at once."""

    host: Host
    everywhere: bool = True
    profiles: tuple[Profile, ...] | None = None
    counted: dict[Key, Snapshot] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def look(self) -> Listing:
        """Look now; at once again where a card seems to lack connections: they may just have ended."""
        self.warnings.clear()
        listing = self._once()
        if any(card.missing(d) for card in listing.cards.values() for d in DIRECTIONS):
            listing = self._once()
        return listing

    def _once(self) -> Listing:
        found = gather(self.host, everywhere=self.everywhere)
        cards: dict[Key, Card] = {}
        for space in found.spaces:
            cards |= {(space.inode, card.nic.dev): card for card in self._cards(space)}
        lines = [line for space in found.spaces for line in _lines(space, cards)]
        loaded = any(space.tls_stat is not None for space in found.spaces)
        without = "" if loaded else without_ktls(self.host)
        return Listing(found, cards, tuple(lines), tuple(dict.fromkeys(self.warnings)), without)

    def _cards(self, space: Space) -> Iterator[Card]:
        """The devices to which the kernel's word gives connections; a warning for one that cannot be read."""
        wanted = {one.device for one in space.sockets if "hw" in (one.tx, one.rx)} - {"", "?"}
        if not wanted:
            return
        host = space.host(self.host)
        try:
            rows = links(host)
            for dev in sorted(wanted):
                yield self._card(host, space, dev, rows)
        except OffloadError as exc:
            self.warnings.append(f"{space.title()}: {str(exc).splitlines()[0]}")

    def _card(self, host: Host, space: Space, dev: str, rows: Mapping[str, Any]) -> Card:
        """A device with its counters, and those below it."""
        key = (space.inode, dev)
        nic = seen(host, dev, rows)
        found = match(nic, self._known())
        driver, odd = driver_stats(host, dev)
        names = found.profile.counters.tx.names + found.profile.counters.rx.names if found.profile else ()
        after = Snapshot(dev, time.monotonic(), space.tls_stat, driver, dict(names), tuple(odd))
        before = self.counted.get(key, after)
        self.counted[key] = after
        hw = {d: sum(o.device == dev and o.conf(d) == "hw" for o in space.sockets) for d in DIRECTIONS}
        ports = tuple(self._card(host, space, port, rows) for port in nic.lower if port in rows)
        return Card(space.inode, nic, found, before, after, hw, ports)

    def _known(self) -> tuple[Profile, ...]:
        """The profiles; none, and a warning, if they cannot be read."""
        if self.profiles is None:
            try:
                self.profiles = load_all()
            except OffloadError as exc:
                self.profiles = ()
                self.warnings.append(f"profiles not read: {exc}")
        return self.profiles


def _lines(space: Space, cards: Mapping[Key, Card]) -> Iterator[Line]:
    """The connections of a namespace with their doubts, which those of a device and a kind share."""
    known: dict[tuple[str, str, str], Mapping[str, tuple[str, str]]] = {}
    for one in space.sockets:
        kind = (one.device, one.tx, one.rx)
        if kind not in known:
            card = cards.get((space.inode, one.device))
            known[kind] = {d: doubt(one, d, card) for d in DIRECTIONS}
        yield Line(space, one, known[kind])


def notes(listing: Listing) -> list[str]:
    """Return what was not seen, or not as it should be, each in a sentence."""
    found = list(listing.found.notes)
    for space in listing.found.spaces:
        found += [f"{space.title()}: {note}" for note in space.notes]
        if space.error:
            found.append(f"namespace {space.title()} could not be read: {space.error}{_as_root(listing)}")
        if (hidden := space.unseen()) and not listing.found.root:
            found.append(
                f"namespace {space.title()}: the kernel counts {hidden} more directions under kernel TLS, "
                f"which this user may not see: run it as root"
            )
        elif hidden:
            found.append(
                f"namespace {space.title()}: the kernel counts {hidden} more directions under kernel TLS, of "
                f"connections that have ended and are still held by their process, or that ended just now"
            )
    return [*found, *listing.warnings]


def _as_root(listing: Listing) -> str:
    return "" if listing.found.root else ": run it as root"


def devices_with_offload(cards: Sequence[Card]) -> list[Card]:
    """The devices that offload or have a profile, ports of bonds included: whose counters say something."""
    every = [one for card in cards for one in (card, *card.ports)]
    return [c for c in every if c.found.profile or any(c.nic.feature(d) and c.offers(d) for d in DIRECTIONS)]
