"""A bond of both simulated cards of a lab, and the peer in software at their cable: made for a test."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from offload.card.counters import snapshot
from offload.card.profile import Profile
from offload.cmd import wait_until
from offload.host.base import Bench, Host, Side
from tests.lib.flow.stand_ins import HEADERS, PACKETS
from tests.lib.impair.paths import OURS, THEIRS, addressed, made, put_back

POLICY = ("miimon", "50", "xmit_hash_policy", "layer3+4")
TX = "tx_tls_encrypted_bytes"
FULL = 1500 - HEADERS  # bytes, of a packet where no bytes are counted


@dataclass(frozen=True)
class Cards:
    """The bond of two cards that are both the DUT's; each has a cable of its own into the wire's bridge."""

    dut: Host
    wire: Host
    ports: tuple[tuple[str, str], ...]  # card, its wire port

    def encrypted(self, profile: Profile) -> dict[str, int]:
        """Return the bytes that each card has encrypted so far."""
        name = PACKETS["tx"] if TX in profile.counters.absent("tx") else TX
        full = FULL if name != TX else 1
        shown = {card: snapshot(self.dut, card, profile).values() for card, _ in self.ports}
        return {card: full * values.get(name, 0) for card, values in shown.items()}

    def pull(self, card: str) -> None:
        """Pull the cable of a card, until the bond knows it: the carrier goes, the port stays up."""
        self._cable(card, "down")

    def plug(self, card: str) -> None:
        """Put the cable back."""
        self._cable(card, "up")

    def _cable(self, card: str, state: str) -> None:
        self.wire.run(["ip", "link", "set", dict(self.ports)[card], state])
        wait_until(lambda: self._mii(card) == state, 60, f"the bond shows {card} as {state}", every=0.05)

    def _mii(self, card: str) -> str:
        part = self.dut.read("/proc/net/bonding/kbond").decode().partition(f"Slave Interface: {card}\n")[2]
        return part.partition("MII Status: ")[2].partition("\n")[0]


@contextmanager
def two_cards(bench: Bench, mode: str) -> Iterator[Cards]:
    """Bond the DUT's card with the peer's, which moves to the DUT; the peer is at THEIRS, by veth.

    A lab only: its namespaces are called as its hosts.
    """
    assert bench.wire is not None
    dut, peer, wire = bench.dut, bench.peer, bench.wire
    with ExitStack() as undo:
        undo.enter_context(put_back(peer))
        peer.host.run(["ip", "link", "set", peer.dev, "netns", dut.host.name])
        undo.callback(_home, dut.host, peer)
        made(undo, wire, "kpeer1", "type", "veth", "peer", "name", "kpeer0")
        wire.run(["ip", "link", "set", "kpeer1", "master", "br0", "up"])
        wire.run(["ip", "link", "set", "kpeer0", "netns", peer.host.name])
        addressed(peer.host, "kpeer0", THEIRS)
        undo.enter_context(put_back(dut))
        made(undo, dut.host, "kbond", "type", "bond", "mode", mode, *POLICY)
        for dev in (dut.dev, peer.dev):
            _enslave(undo, dut.host, dev)
        addressed(dut.host, "kbond", OURS)
        for port in bench.wire_ports:
            undo.callback(wire.run, ["ip", "link", "set", port, "up"])
        yield Cards(dut.host, wire, tuple(zip((dut.dev, peer.dev), bench.wire_ports, strict=True)))


def _home(host: Host, peer: Side) -> None:
    host.run(["ip", "link", "set", peer.dev, "netns", peer.host.name])


def _enslave(undo: ExitStack, host: Host, dev: str) -> None:
    host.run(["ip", "link", "set", dev, "down"])
    undo.callback(host.run, ["ip", "link", "set", dev, "nomaster"])
    host.run(["ip", "link", "set", dev, "master", "kbond"])
    host.run(["ip", "link", "set", dev, "up"])
