"""The connections of a scenario: kernel keys without a handshake, and what each end has sent so far."""

from __future__ import annotations

import hashlib
import itertools
import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from offload.card.profile import Cell
from offload.suite.traffic.drive import Sending
from tests.lib.life import many_connections
from tests.lib.life.life import CLOSE_NOTIFY, End, Life, Pair
from tests.lib.wire.raw import Key, keys_of

FULL = 16384  # bytes of payload in a full record
BUFFER = 32 * 1024  # bytes that an end can send with nobody taking, and that the other one can take
OVERHEAD = 29  # header, nonce and tag of a record (RFC 5288 section 3)
Ask = tuple[End, str, dict[str, Any]]  # whom, to do what, with which fields
CLIENT = {"tx": True, "rx": False}  # who sends: the DUT is the client
READS = ("read-pieces", "peek")  # calls that read; all others write


@dataclass(frozen=True)
class Burst:
    """One payload, write by write: each write is a record. `cork`: only whole segments until the last."""

    seed: str
    writes: tuple[int, ...]
    cork: bool = False

    @property
    def total(self) -> int:
        """Bytes in all."""
        return sum(self.writes)

    def content(self) -> bytes:
        """Return what the receiver must see."""
        return Sending(self.seed, self.writes).content()


@dataclass
class Track:
    """One direction of a connection: its key, and what was sent in this scenario."""

    key: Key
    number: int  # of the first record of this scenario
    bursts: list[Burst] = field(default_factory=list)

    @property
    def records(self) -> int:
        """Records of this scenario."""
        return sum(len(burst.writes) for burst in self.bursts)

    @property
    def wire(self) -> int:
        """Bytes that this scenario put into the stream."""
        return sum(burst.total for burst in self.bursts) + OVERHEAD * self.records

    def content(self) -> bytes:
        """The payload of this scenario."""
        return b"".join(burst.content() for burst in self.bursts)

    def begin(self) -> None:
        """What comes now is the next scenario's."""
        self.number, self.bursts = self.number + self.records, []


@dataclass
class Line:
    """A connection: both ends, and its two directions by what they are to the DUT (tx, rx)."""

    pair: Pair
    tracks: dict[str, Track]
    cell: Cell
    call: str = "write"  # how the DUT sends, or reads
    calls: list[tuple[int, int]] = field(default_factory=list)  # records of a burst, and calls that it took
    reads: list[tuple[int, int]] = field(default_factory=list)  # bytes that came at once, and calls
    before: int = 0  # bytes that the DUT's TCP had sent when this scenario began
    old: bool = False  # opened before it
    software: frozenset[str] = frozenset()  # directions that an event has made software's

    @property
    def port(self) -> int:
        """The DUT's port."""
        return self.pair.port

    def source(self, direction: str) -> End:
        """Return who sends in this direction."""
        return self.pair.near if direction == "tx" else self.pair.far

    def sink(self, direction: str) -> End:
        """Return who receives in this direction."""
        return self.pair.far if direction == "tx" else self.pair.near

    def send(self, direction: str, burst: Burst) -> int:
        """Begin to send; the number to wait for."""
        return begun([self.sending(direction, burst)])[0]

    def sending(self, direction: str, burst: Burst) -> Ask:
        """Return what sends a burst, which is from now on in the stream."""
        self.tracks[direction].bursts.append(burst)
        ask = {"seed": burst.seed, "writes": list(burst.writes), "cork": burst.cork}
        writes = direction == "tx" and self.call not in READS
        return self.source(direction), "send", ask | {"call": self.call if writes else "write"}

    def whole(self, direction: str, burst: Burst, asked: int, taken: int) -> None:
        """Assert that a burst came, of which these are the commands."""
        seen = self.sink(direction).connections.answer(taken, 300)
        said = self.source(direction).connections.answer(asked, 300)
        why = said.get("error", "")
        name = f"{direction} {burst.seed}" + (f" (the sender: {why})" if why else "")
        if direction == "tx":
            self.calls.append((len(burst.writes), said.get("calls", 0)))
        else:
            self.reads.append((burst.total, seen.get("reads", 0)))
        arrived(seen, burst.content(), name)


def arrived(seen: Mapping[str, Any], content: bytes, name: str) -> None:
    """Assert that exactly this content was taken."""
    size = len(content)
    assert not seen["error"], f"{name}: {seen['error']} after {seen['bytes']} of {size} bytes"
    assert seen["bytes"] == size, f"{name}: {seen['bytes']} of {size} bytes arrived ({seen['closed']})"
    same = seen["sha256"] == hashlib.sha256(content).hexdigest()
    assert same, f"{name}: {size} bytes arrived, and their SHA-256 differs"


def opened(
    life: Life,
    count: int,
    cell: Cell,
    *,
    family: int = 4,
    number: int = 0,
    options: Sequence[tuple[int, int, str]] = (),
    apart: Collection[int] = (),
) -> list[Line]:
    """Open connections; `number`: of the first record, both ways; `apart`: ports that none may have.

    `options`: of the peer's listener.
    """
    peer, secret = life.rig.bench.peer, secrets.token_hex(16)
    pairs = plain(life, count, peer.v4 if family == 4 else peer.v6, options, apart)
    lines = [Line(pair, tracks(secret, pair.port, cell, number), cell) for pair in pairs]
    ask = {"secret": secret, "tls": cell.version, "cipher": cell.cipher, "number": number}
    obeyed([to_all(lines, "secure", far=far, client=not far, **ask) for far in (True, False)])
    return lines


def plain(
    life: Life, count: int, host: str, options: Sequence[tuple[int, int, str]], apart: Collection[int]
) -> list[Pair]:
    """Open connections without keys, none of which has one of these local ports.

    The kernel may reuse a local port if the remote ports differ; a scenario identifies connections by it.
    """
    pairs = life.plain(count, host=host, options=options)
    while {pair.port for pair in pairs} & set(apart):
        life.close(pairs, reset=True)
        pairs = life.plain(count, host=host, options=options)
    return pairs


def tracks(secret: str, port: int, cell: Cell, number: int) -> dict[str, Track]:
    """Both directions of a connection that was just opened."""
    infos = (
        many_connections.key(secret, port, direction, cell.version, 0, cell.cipher)
        for direction in ("up", "down")
    )
    return dict(zip(("tx", "rx"), (Track(key, number) for key in keys_of(b"".join(infos))), strict=True))


def to_all(lines: Sequence[Line], do: str, *, far: bool = False, **fields: Any) -> Ask:
    """Return what has a host do something with its ends of all of these: the DUT, or the peer."""
    ends = [line.pair.far if far else line.pair.near for line in lines]
    return ends[0], do, {"at": [end.at for end in ends], **fields}


def option(lines: Sequence[Line], level: int, name: int, value: int | str, *, far: bool = False) -> Ask:
    """Return what sets an option at the DUT's end of each, or at the peer's."""
    return to_all(lines, "option", far=far, level=level, name=name, value=value)


def by_call(lines: Sequence[Line], call: str) -> Ask:
    """Return what has the DUT send, or read, by this call from now on."""
    for line in lines:
        line.call, line.calls, line.reads = call, [], []
    return to_all(lines, "reads", how=call if call in READS else "read")


def move(lines: Sequence[Line], directions: Sequence[str], bursts: Sequence[Burst]) -> None:
    """Send one burst on each connection, in each direction, and assert that it came.

    Both ends send at the same time if that fits into their buffers. Then each end takes only when all is
    sent, so that it does not wake for each record.
    """
    together = max(burst.total for burst in bursts) <= BUFFER
    for turn in [directions] if together else [[direction] for direction in directions]:
        moves = [
            (line, direction, burst) for direction in turn for line, burst in zip(lines, bursts, strict=True)
        ]
        asked = begun([line.sending(direction, burst) for line, direction, burst in moves])
        if together:
            for (line, direction, _), number in zip(moves, asked, strict=True):
                line.source(direction).connections.answer(number)
        taken = begun(
            [(line.sink(direction), "take", {"size": burst.total}) for line, direction, burst in moves]
        )
        for (line, direction, burst), sent, took in zip(moves, asked, taken, strict=True):
            line.whole(direction, burst, sent, took)


def begun(asks: Sequence[Ask]) -> list[int]:
    """Tell ends something, all of a host at once: the numbers to wait for."""
    numbers = [0] * len(asks)
    for program in {id(end.connections): end.connections for end, _, _ in asks}.values():
        mine = [at for at, (end, _, _) in enumerate(asks) if end.connections is program]
        rows = [{"do": asks[at][1], "at": asks[at][0].at, **asks[at][2]} for at in mine]
        for at, number in zip(mine, program.begin_all(rows), strict=True):
            numbers[at] = number
    return numbers


def obeyed(asks: Sequence[Ask]) -> None:
    """Tell ends something, all of a host at once, and wait until it is done; Ended if one of it fails."""
    for (end, _, _), number in zip(asks, begun(asks), strict=True):
        end.connections.end(number)


def turn(line: Line, bursts: Mapping[str, Burst], *, apart: bool = False) -> None:
    """Send a burst of one direction or of both, and assert that it came: each host is told once.

    Both go at the same time if they fit into the buffers and need not be `apart`.
    """
    sends = [line.sending(direction, burst) for direction, burst in bursts.items()]
    takes: list[Ask] = [(line.sink(d), "take", {"size": burst.total}) for d, burst in bursts.items()]
    together = not apart and max(burst.total for burst in bursts.values()) <= BUFFER
    asks = [*sends, *takes] if together else [*itertools.chain(*zip(sends, takes, strict=True))]
    numbers = {(end, do): number for (end, do, _), number in zip(asks, begun(asks), strict=True)}
    for direction, burst in bursts.items():
        asked, took = numbers[line.source(direction), "send"], numbers[line.sink(direction), "take"]
        line.whole(direction, burst, asked, took)


def sent(lines: Sequence[Line]) -> list[int]:
    """How much payload the DUT's TCP has sent on each, again included; nothing is on its way any more."""
    asked = begun([(line.pair.near, "sent", {}) for line in lines])
    said = [line.pair.near.connections.answer(number) for line, number in zip(lines, asked, strict=True)]
    wrong = [one["error"] for one in said if one.get("error")]
    assert not wrong, f"what the DUT sent was not acknowledged: {wrong[0]}"
    return [int(one["sent"]) for one in said]


def close(life: Life, lines: Sequence[Line]) -> None:
    """End them in the ordinary way: close_notify from both ends, seen by both, then closed."""
    ends = [end for line in lines for end in (line.pair.far, line.pair.near)]
    alert = {"type": 21, "content": CLOSE_NOTIFY}
    said = [*((end, "record", alert) for end in ends), *((end, "shut", {}) for end in ends)]
    numbers = begun([*said, *((end, "take", {"size": -1}) for end in ends)])
    for (end, _, _), number in zip(said, numbers, strict=False):
        end.connections.end(number)
    for end, number in zip(ends, numbers[len(said) :], strict=True):
        seen = end.connections.answer(number)
        assert seen["closed"] == "close_notify", f"the stream ended with {seen}"
    life.close([line.pair for line in lines])
