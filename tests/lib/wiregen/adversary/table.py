"""The good capture that the hostile card starts from, the question asked of it, and what is true of it."""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from functools import lru_cache
from random import Random
from typing import Any

from tests.lib.wiregen.frames import ETHERNET, Link, Net, any_net, seg_frame
from tests.lib.wiregen.scene import Case
from tests.lib.wiregen.session import CLIENT, DATA, SERVER, Session
from tests.lib.wiregen.suites import SUITES
from tests.lib.wiregen.talk import Plan, talk
from tests.lib.wiregen.tcp import Seg, any_style, segments

TABLES = 200


@dataclass(frozen=True)
class Shot:
    """A captured frame: the bytes that were kept, and how long it was."""

    data: bytes
    orig: int


@dataclass(frozen=True)
class Fact:
    """A record as honestly sent. `greets`: protected, and up to Finished in TLS 1.3; `app`: bytes of data."""

    wire: bytes
    sealed: bool
    greets: bool
    app: int


@dataclass(frozen=True, repr=False)
class Truth:
    """What honest ends said. Per direction: its stream, its records, its application data."""

    net: Net
    tls13: bool
    streams: tuple[bytes, bytes]
    records: tuple[tuple[Fact, ...], tuple[Fact, ...]]
    app: tuple[bytes, bytes]


@dataclass(repr=False)
class Hand:
    """What the card holds: frames that it may edit, and what is asked. `told`: what it did."""

    truth: Truth
    keylog: bytes
    shots: list[Shot]
    payload: bool = True
    reply: bool = False
    checksums: bool = False
    port: int | None = None
    notes: list[str] = field(default_factory=list)

    def __repr__(self) -> str:
        return "; ".join(line for line in self.notes if line)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(repr(self))  # how Hypothesis prints an example

    def shot(self, seg: Seg, **net: object) -> Shot:
        """A segment of the connection as a frame of Ethernet."""
        frame = seg_frame(Random(seg.off), Link(), replace(self.truth.net, **net), seg)  # type: ignore[arg-type]
        return Shot(frame.data, frame.orig)

    def put(self, at: int, shot: Shot) -> None:
        """Insert a frame."""
        self.shots.insert(at, shot)

    def capture(self) -> bytes:
        """The pcap file."""
        out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 1 << 18, ETHERNET)]
        for i, shot in enumerate(self.shots):
            out += [struct.pack("<IIII", 1700000000 + i, 0, len(shot.data), shot.orig), shot.data]
        return b"".join(out)

    def case(self) -> Case:
        """The question to an engine."""
        payload = self.truth.app[CLIENT] if self.payload else None
        reply = self.truth.app[SERVER] if self.reply else None
        return Case(self.capture(), self.keylog, payload, reply, self.port, self.checksums)


@lru_cache(TABLES)
def session_of(seed: int) -> Session:
    """An honest connection of a few small records; never edited in place."""
    rng = Random(f"table {seed}")
    sizes = [rng.choice((60, 200, 700)) + rng.randint(0, 60) for _ in range(rng.randint(2, 5))]
    turns = [(CLIENT, sizes[0]), (SERVER, sizes[1]), *((rng.choice((0, 0, 1)), size) for size in sizes[2:])]
    plan = Plan(rng.choice(SUITES), turns, style=("random", "random"))
    plan.notify = (rng.random() < 0.8, rng.random() < 0.8)
    plan.resumed, plan.retry = rng.random() < 0.5, rng.random() < 0.2
    plan.asides, plan.padding = rng.choice((0.0, 0.0, 0.3)), rng.choice((0.0, 0.0, 0.5))
    session = talk(rng, plan)
    session.log = [line for line in session.log if not line.startswith("CLIENT_EARLY")]
    return session


@lru_cache(TABLES)
def truth_of(seed: int) -> Truth:
    """Return what is true of the connection of this seed."""
    rng, session = Random(f"net {seed}"), session_of(seed)
    net = any_net(rng, rng.random() < 0.3, 443)
    net.big, net.extensions = False, tuple(kind for kind in net.extensions if kind != 44)[:2]
    return Truth(
        net,
        session.suite.tls13,
        (session.stream(CLIENT), session.stream(SERVER)),
        (facts(session, CLIENT), facts(session, SERVER)),
        (session.sent(CLIENT), session.sent(SERVER)),
    )


def facts(session: Session, flow: int) -> tuple[Fact, ...]:
    """The records of a direction."""
    greets = session.suite.tls13
    return tuple(
        Fact(
            rec.wire,
            rec.sealed,
            greets and rec.epoch == 0,
            len(rec.plain) * (rec.sealed and rec.kind == DATA),
        )
        for rec in session.of(flow)
    )


@lru_cache(TABLES)
def segments_of(seed: int) -> tuple[Seg, ...]:
    """How the honest connection was sent: with copies, reorder, keepalives, FIN or RST at the end."""
    rng, session = Random(f"style {seed}"), session_of(seed)
    return tuple(segments(rng, session.bursts(), any_style(rng, 4000)))


def table(seed: int, session: Session | None = None) -> Hand:
    """The capture of this seed; or that of another session, which the card made of it, in honest TCP."""
    truth = truth_of(seed)
    truth = replace(truth, net=replace(truth.net, ids=Random(seed)))
    segs = list(segments_of(seed)) if session is None else plain_segments(seed, session)
    keylog = "\n".join([*session_of(seed).log, ""]).encode()
    hand = Hand(truth, keylog, [])
    hand.shots = [hand.shot(seg) for seg in segs]
    return hand


def plain_segments(seed: int, session: Session) -> list[Seg]:
    """Segments of an edited session, of the style that the honest one had."""
    rng = Random(f"style {seed}")
    return segments(rng, session.bursts(), any_style(rng, 4000))
