"""ESP by the card's own crypto: what its counters say, and what of the wire opens with the states' keys."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from offload.card.counters import Delta
from offload.cmd import settles
from offload.suite.bench.cards import knobs
from offload.suite.traffic import ipsec as esp
from offload.suite.traffic.ipsec import Association
from tests.lib.life.life import KIB, Life, Pair, arrived
from tests.lib.rig.rig import Rig
from tests.lib.wire import ipsec
from tests.lib.wire.ipsec import ESP, TCP, Packet
from tests.lib.wire.wire import Segment, share

LITTLE = 4 * KIB
GOOD, NOAUTH, LEAKS = 1, 2, 3  # native/nicsim/README.md
MOST = 0.95  # of the payload, where a capture of a busy machine may lack frames
SALT, IV = 4, 8  # RFC 4106 sections 4 and 3.1
WORK = ("ipsec_tx_pkts", "ipsec_tx_bytes", "ipsec_rx_pkts", "ipsec_rx_bytes")


@contextmanager
def offered(rig: Rig, how: int = GOOD) -> Iterator[None]:
    """Let the DUT's simulated card have ESP crypto, which it has not by itself."""
    knobs.turn(rig.lab.root, f"0/esp={how}")
    try:
        yield
    finally:
        knobs.turn(rig.lab.root, "0/esp=0")


def opened(one: Association, packets: Sequence[Packet]) -> list[Segment]:
    """Return what is in ESP packets of one direction (RFC 4303, 4106). InvalidTag if one does not open."""
    key = bytes.fromhex(one.key[2:])
    cipher, salt = AESGCM(key[:-SALT]), key[-SALT:]
    found = []
    for body in (packet.body for packet in packets):
        # extended numbers: the upper half is authenticated and not sent; 0 below 2^32 packets
        aad = body[:4] + bytes(4) + body[4:8]
        clear = cipher.decrypt(salt + body[8 : 8 + IV], body[8 + IV :], aad)
        padding, protocol = clear[-2], clear[-1]
        assert protocol == TCP, f"protocol {protocol} inside ESP"
        assert clear[-2 - padding : -2] == bytes(range(1, padding + 1)), "padding of RFC 4303"
        inner = clear[: -2 - padding]
        ports = (int.from_bytes(inner[n : n + 2], "big") for n in (0, 2))
        found.append(Segment(*ports, int.from_bytes(inner[4:8], "big"), inner[(inner[12] >> 4) * 4 :]))
    return found


def inside(packets: Sequence[Packet]) -> list[Segment]:
    """The packets as they are, to look for content in plaintext."""
    return [Segment(0, 0, 0, packet.body) for packet in packets]


def of(one: Association, packets: Sequence[Packet]) -> list[Packet]:
    """The ESP packets of one direction."""
    return [p for p in packets if p.protocol == ESP and int.from_bytes(p.body[:4], "big") == one.spi]


def work(moved: Delta) -> dict[str, int]:
    """How far the card's counters of ESP moved."""
    drops = [name for name in moved if name.startswith("ipsec_") and "drop" in name]
    return {name: moved[name] for name in (*WORK, *drops)}


def hides(rig: Rig, life: Life, evidence: dict[str, Any]) -> None:
    """Send on an older connection by the card: none in plaintext inside ESP, and what left opens to it."""
    (pair,) = life.plain()
    ipsec.quiet(rig, pair.port)
    counted = rig.counters()
    with ipsec.watching(rig) as seen:
        with esp.protected(rig.bench.dut, rig.bench.peer, "gcm-128", card=True) as made:
            pair.near.call("send", seed="hidden", size=LITTLE)
            there = settles(lambda: (rig.counters() - counted)["ipsec_tx_bytes"] > LITTLE, 60)
        # a card whose packets nobody can open: TCP brings it once the states are gone
        arrived(_patiently(pair, LITTLE), "hidden", LITTLE)
    life.close([pair])
    packets, content = of(made.out, seen.wire), ipsec.canary("hidden", LITTLE)
    clear = share(content, inside(packets))
    evidence["ipsec"] = {"packets": len(packets), "clear": clear}
    assert there, "the card has encrypted nothing"
    assert clear == 0, f"{clear} of the payload left in plaintext inside ESP"
    whole = share(content, opened(made.out, packets))
    assert whole > MOST, f"{whole} of what was sent is in what the keys open"


def _patiently(pair: Pair, size: int) -> dict[str, Any]:
    """Return what the peer gets; TCP doubles its patience with each vain attempt."""
    for _ in range(3):
        there = pair.far.take(size)
        if there["error"] != "EAGAIN" or there["bytes"]:
            break
    return there


def refuses(rig: Rig, life: Life, evidence: dict[str, Any]) -> None:
    """Put a packet of the peer's with another number on the wire: its ICV does not fit, the card says so."""
    dut = rig.bench.dut
    with esp.protected(dut, rig.bench.peer, "gcm-256", card=True) as made:
        with ipsec.watching(rig) as seen:
            (pair,) = life.plain()
            pair.moves("before", LITTLE)
            ipsec.quiet(rig, pair.port)
        counted, before = rig.counters(), esp.errors(dut.host)
        ipsec.inject(rig.bench, _renumbered(of(made.into, seen.wire)))
        settles(lambda: any(work(rig.counters() - counted).values()), 60)
        done, refused = work(rig.counters() - counted), ipsec.spent(dut.host, before)
        pair.moves("after", LITTLE)
        life.close([pair])
    evidence["ipsec"] = {"card": done, "refused": refused}
    assert (done["ipsec_rx_pkts"], done["ipsec_rx_drop_pkts"]) == (0, 1), f"the card took a forgery: {done}"
    assert refused == {"XfrmInStateProtoError": 1}, refused


def _renumbered(packets: Sequence[Packet]) -> bytes:
    """The frame of the last one with the number that follows, and the ICV of its own."""
    last = packets[-1]
    number = int.from_bytes(last.body[4:8], "big") + 1
    at = last.frame.index(last.body)
    return last.frame[: at + 4] + number.to_bytes(4, "big") + last.frame[at + 8 : at + len(last.body)]
