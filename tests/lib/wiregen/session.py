"""A TLS connection as its records, in the order in which they were sent; damage is done to this model."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

from tests.lib.wiregen.suites import Keys, Suite

CLIENT, SERVER = 0, 1
CCS, ALERT, HANDSHAKE, DATA, RAW = 20, 21, 22, 23, -1


@dataclass
class Rec:
    """One record: what it says (kind, plain, pad), under which keys, and its bytes (head, body) as sent.

    `pos`: where `plain` begins in the payload of its direction, for application data. Kind RAW: bytes that
    are no record.
    """

    direction: int
    kind: int
    plain: bytes
    keys: Keys | None = None
    epoch: int = -1
    seq: int = 0
    explicit: bytes = b""
    pad: int = 0
    pos: int = 0
    head: bytes = b""
    body: bytes = b""

    @property
    def wire(self) -> bytes:
        """The record as sent."""
        return self.head + self.body

    @property
    def sealed(self) -> bool:
        """Whether it is protected."""
        return self.keys is not None

    @property
    def cipher_at(self) -> int:
        """Where the ciphertext begins in the body."""
        return len(self.explicit)

    @property
    def cipher_size(self) -> int:
        """Bytes of ciphertext, without explicit nonce and tag."""
        return len(self.body) - len(self.explicit) - 16

    def seal(self) -> Rec:
        """Make head and body from the rest."""
        if self.keys is None:
            self.body = self.plain
            self.head = self.head or bytes([self.kind]) + b"\3\3"
        else:
            self.body = self.keys.seal(self.seq, self.kind, self.plain, self.explicit, self.pad)
            self.head = bytes([DATA if self.keys.suite.tls13 else self.kind]) + b"\3\3"
        self.head = self.head[:3] + len(self.body).to_bytes(2, "big")
        return self

    def poke(self, at: int, data: bytes) -> None:
        """Overwrite bytes of the ciphertext and tag from `at`."""
        at += self.cipher_at
        self.body = self.body[:at] + data + self.body[at + len(data) :]


@dataclass
class Side:
    """What one direction's sender knows: its keys, counters, traffic secret, and what it has sent."""

    keys: Keys | None = None
    epoch: int = -1
    seq: int = 0
    explicit: int = 0
    secret: bytes = b""
    sent: bytearray = field(default_factory=bytearray)
    epochs: list[Keys] = field(default_factory=list)


@dataclass
class Session:
    """A whole connection. `log`: its keylog lines. `flow`: its records, both directions."""

    suite: Suite
    client_random: bytes = b""
    server_random: bytes = b""
    log: list[str] = field(default_factory=list)
    flow: list[Rec] = field(default_factory=list)
    sides: tuple[Side, Side] = field(default_factory=lambda: (Side(), Side()))

    def sent(self, direction: int) -> bytes:
        """The application data of a direction."""
        return bytes(self.sides[direction].sent)

    def of(self, direction: int) -> list[Rec]:
        """The records of a direction."""
        return [rec for rec in self.flow if rec.direction == direction]

    def stream(self, direction: int) -> bytes:
        return b"".join(rec.wire for rec in self.of(direction))

    def number(self, target: Rec) -> int:
        """Which record of its direction this is, from 0."""
        return next(i for i, rec in enumerate(self.of(target.direction)) if rec is target)

    def offset(self, target: Rec) -> int:
        """Where in the stream of its direction this record begins."""
        return sum(len(rec.wire) for rec in self.of(target.direction)[: self.number(target)])

    def data(self, direction: int, least: int = 0) -> list[Rec]:
        """Application records of a direction with at least this many bytes."""
        return [
            rec for rec in self.of(direction) if rec.kind == DATA and rec.sealed and len(rec.plain) >= least
        ]

    def bursts(self) -> list[tuple[int, bytes]]:
        """Return what was sent in turns: direction and bytes."""
        out: list[tuple[int, bytearray]] = []
        for rec in self.flow:
            if not out or out[-1][0] != rec.direction:
                out.append((rec.direction, bytearray()))
            out[-1][1].extend(rec.wire)
        return [(direction, bytes(data)) for direction, data in out]

    def put(self, rec: Rec) -> Rec:
        """Say a record."""
        self.flow.append(rec.seal())
        return rec

    def clear(self, direction: int, kind: int, plain: bytes, minor: int = 3) -> Rec:
        """Say a record in the clear."""
        return self.put(Rec(direction, kind, plain, head=bytes([kind, 3, minor])))

    def say(self, direction: int, kind: int, plain: bytes, pad: int = 0) -> Rec:
        """Say a protected record with the direction's current keys and counters."""
        side = self.sides[direction]
        explicit = b""
        if not self.suite.counted:
            explicit = (side.explicit % 2**64).to_bytes(8, "big")
        pad = pad if self.suite.tls13 else 0
        rec = Rec(direction, kind, plain, side.keys, side.epoch, side.seq, explicit, pad, len(side.sent))
        side.seq += 1
        side.explicit += 1
        if kind == DATA:
            side.sent += plain
        return self.put(rec)

    def rekey(self, direction: int, keys: Keys, secret: bytes = b"", explicit: int = 0) -> None:
        """Begin the next epoch of a direction."""
        side = self.sides[direction]
        side.keys, side.secret, side.seq, side.explicit = keys, secret, 0, explicit
        side.epoch += 1
        side.epochs.append(keys)

    def split(self, direction: int, rng: Random, data: bytes, sealed: bool) -> None:
        """Say handshake bytes in one record, or cut at random places into several."""
        cuts = sorted(rng.sample(range(1, len(data)), min(len(data) - 1, rng.choice((0, 0, 0, 1, 2)))))
        for low, high in zip([0, *cuts], [*cuts, len(data)], strict=True):
            for at in range(low, high, 16384):
                part = data[at : min(high, at + 16384)]
                if sealed:
                    self.say(direction, HANDSHAKE, part, rng.choice((0, 0, 0, 7)))
                else:
                    self.clear(direction, HANDSHAKE, part)
