"""Proof B of a scenario: every byte of each connection on the wire, by the keys that both ends were given."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.suite.wire import oracle, streams
from offload.suite.wire.handshake import Session
from offload.suite.wire.records import Walk
from offload.suite.wire.streams import Connection
from offload.suite.wire.words import first_sentence
from tests.lib.scenario.connections import CLIENT, Line
from tests.lib.scenario.verdict.blame import Unseen
from tests.lib.wire.raw import plaintext

END = {"no-close", "reset"}  # a connection that goes on has no end; one that was refused a record is reset


@dataclass(frozen=True)
class Shown:
    """What the wire shows of a connection: its document, and the first sequence number of each direction."""

    document: dict[str, Any]
    base: dict[str, int]

    @property
    def words(self) -> str:
        """The first difference, or why nothing is proven; empty if all is equal."""
        return "" if self.document["outcome"] == "equal" else first_sentence(self.document)

    def direction(self, direction: str) -> dict[str, Any]:
        """One direction of the document."""
        found: dict[str, Any] = self.document["connections"][0][
            f"from_{'client' if CLIENT[direction] else 'server'}"
        ]
        return found


def proven(found: Mapping[int, Connection], line: Line, directions: Sequence[str], *, old: bool) -> Shown:
    """Assert that the wire has a line's payload, record by record, and nothing else in its stream.

    `directions`: those that are proven: not one in which somebody forged. Unseen if no more is wrong than
    that the capture lacks the beginning.
    """
    assert line.port in found, f"the connection of port {line.port} is not on the wire"
    return _proven(found[line.port], line, directions, old=old)


def talked(path: Path, ports: set[int]) -> dict[int, Connection]:
    """The connections of a capture that carried a byte, by the DUT's port: these, and no other.

    A segment whose checksum is wrong is skipped: who receives it does not take it.
    """
    found = [c for c in streams.load(path, checksums=True).connections if any(s.reach for s in c.streams)]
    named = {port_of(oriented(c, ports).client): c for c in found}
    seen = Counter(port_of(c.client) for c in found)
    strange = sorted(port for port, times in seen.items() if port not in ports or times > 1)
    assert not strange, f"connections that nobody made: ports {strange}"
    return named


def port_of(end: str) -> int:
    """The port of an address with a port."""
    return int(end.rpartition(":")[2])


def oriented(found: Connection, ports: set[int]) -> Connection:
    """Make the DUT the client: without a SYN whoever is seen to send first is taken for it."""
    if port_of(found.client) not in ports and port_of(found.server) in ports:
        found.ends = found.ends[::-1]
        found.from_client, found.from_server = found.from_server, found.from_client
        found.from_client.direction, found.from_server.direction = "client", "server"
    return found


def _proven(found: Connection, line: Line, directions: Sequence[str], *, old: bool) -> Shown:
    ours, theirs = line.tracks["tx"], line.tracks["rx"]
    schedules = (ours.key.schedule(), theirs.key.schedule())
    session = Session(line.cell.version, suite=ours.key.suite, schedules=schedules)
    walks = {}
    for direction, stream in zip(("tx", "rx"), found.streams, strict=True):
        walks[direction] = Walk(stream, session, line.tracks[direction].content() or None)
        walks[direction].guarded, walks[direction].sequence = True, line.tracks[direction].number
        if old:
            stream.problems[:] = [one for one in stream.problems if one.code != "no-syn"]
            walks[direction].problems = list(stream.problems)
        if not stream.empty:
            walks[direction].run()
    return _judged(line, walks, directions, session, found)


def _judged(
    line: Line, walks: dict[str, Walk], directions: Sequence[str], session: Session, found: Connection
) -> Shown:
    """Assert that the directions are equal to what they should be."""
    asked = [walks[direction] for direction in directions]
    problems = [p for walk in asked for p in walk.problems if p.code not in END]
    idle = all(walk.stream.empty for walk in asked)
    outcome = "equal" if idle else oracle.outcome(tuple(asked), problems)  # type: ignore[arg-type]
    connection = {
        "client": found.client,
        "server": found.server,
        "outcome": outcome,
        "problems": [vars(problem) for problem in problems],
        "from_client": oracle.direction(walks["tx"], walks["rx"], session),
        "from_server": oracle.direction(walks["rx"], walks["tx"], session),
    }
    document = {"outcome": outcome, "connections": [connection], "leak": None, "problems": []}
    base = {direction: walk.stream.base or 0 for direction, walk in walks.items()}
    shown = Shown(document, base)
    if outcome == "inconclusive" and {p.code for p in problems} == {"no-syn"}:
        raise Unseen(f"connection of port {line.port}: {shown.words}")
    if shown.words:
        clear = [
            words
            for direction in directions
            if (words := plaintext(walks[direction].stream.data, line.tracks[direction].content()))
        ]
        raise AssertionError("; ".join([*clear, f"connection of port {line.port}: {shown.words}"]))
    for direction in directions:
        proven, total = shown.direction(direction)["payload_bytes"], len(line.tracks[direction].content())
        assert proven == total, f"{direction}: {proven} of {total} bytes are proven on the wire"
    return shown
