"""The third party: what a verifier may say of a capture, by wire.md and what honest ends really sent.

It knows the true streams, so it needs no key and no cipher, and shares nothing with either engine.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

from tests.lib.wiregen.adversary.reader import Kind, Packet, read
from tests.lib.wiregen.adversary.receiver import Connection, Finding, Rule, connections
from tests.lib.wiregen.adversary.records import judge_end, read_records
from tests.lib.wiregen.adversary.table import Hand

ROW = 31  # bytes of payload in a row that hold a whole needle of 16
LEAST = 16
BEFORE_TCP = {4: (6,), 6: (6, 0, 43, 44, 60)}


@dataclass(frozen=True)
class Opinion:
    """Outcomes that are right, and why."""

    allowed: frozenset[str]
    reason: str


def opinion(hand: Hand) -> Opinion:
    """Return the answers that are right for this capture."""
    findings = list(all_findings(hand))
    rules = {rule for rule, _ in findings}
    allowed = {"equal"} if rules <= {Rule.UNSURE} else set()
    if rules & {Rule.PROBLEM, Rule.NOT_EQUAL, Rule.UNSURE} and Rule.DIFFERENT not in rules:
        allowed.add("inconclusive")
    if rules & {Rule.DIFFERENT, Rule.NOT_EQUAL, Rule.UNSURE}:
        allowed.add("different")
    return Opinion(frozenset(allowed), "; ".join(f"{rule.name}: {why}" for rule, why in findings) or "legal")


def all_findings(hand: Hand) -> Iterator[Finding]:
    """Every right answer about a capture."""
    packets = [(i, read(shot.data, shot.orig)) for i, shot in enumerate(hand.shots, 1)]
    dropped = {i for i, packet in packets if hand.checksums and not packet.checked}
    segments = [(i, p) for i, p in packets if p.kind is Kind.TCP and i not in dropped]
    asked = [(i, p) for i, p in segments if hand.port is None or hand.port in p.ports]
    found = connections(asked)
    listed = [one for one in found if one.listed]
    if len(listed) != 1:
        yield Rule.NOT_EQUAL, f"{len(listed)} connections"
    for one in listed:
        yield from of_connection(one, hand, len(listed) == 1)
        yield from unread(one, packets)
    laid = {i for one in listed for i in one.frames - one.left}
    yield from in_clear(hand, packets, laid, len(listed) == 1)


def of_connection(one: Connection, hand: Hand, alone: bool) -> Iterator[Finding]:
    """A connection that is listed: it must be the true one, with its own bytes and nothing else."""
    yield from one.findings
    truth = hand.truth
    true_ends = tuple((truth.net.addr[side], truth.net.port[side]) for side in (0, 1))
    if one.ends != true_ends:
        yield Rule.NOT_EQUAL, "a connection that nobody made"
        return
    for side, asked in ((0, hand.payload), (1, hand.reply)):
        flow = one.flows[side]
        if not flow.greeted or flow.base != (truth.net.isn[side] + 1) % 2**32:
            yield Rule.NOT_EQUAL, f"direction {side} has not its SYN"
            continue
        yield from of_direction(one, side, hand, asked and alone)


def known_to(hand: Hand) -> list[bytes]:
    """The application data that the verifier got."""
    asked = zip(hand.truth.app, (hand.payload, hand.reply), strict=True)
    return [app for app, is_asked in asked if is_asked]


def of_direction(one: Connection, side: int, hand: Hand, asked: bool) -> Iterator[Finding]:
    """A direction: its records and its end."""
    flow, truth = one.flows[side], hand.truth
    stream = flow.stream()
    if flow.fin is not None and flow.next > flow.fin:
        yield Rule.NOT_EQUAL, f"data behind FIN at {flow.fin}"
        return
    reading = read_records(stream, truth.records[side], truth.tls13)
    judge_end(reading, flow, len(truth.app[side]), asked)
    yield from reading.findings
    if flow.gap():
        behind = {at: byte for at, byte in flow.seen.items() if at >= flow.next}
        true = truth.streams[side]
        if any(at >= len(true) or true[at] != byte for at, byte in behind.items()):
            yield Rule.NOT_EQUAL, "false bytes behind a hole"
    if not reading.sealed[: reading.done] and side == 1:
        yield Rule.UNSURE, "nothing protected by the server"
    if any(
        longest_row(data, app) >= ROW for data in [*reading.clear, reading.rest] for app in known_to(hand)
    ):
        yield Rule.NOT_EQUAL, "payload in a clear record"


def unread(one: Connection, packets: list[tuple[int, Packet]]) -> Iterator[Finding]:
    """Frames between the two hosts that hold TCP, but not as a segment."""
    hosts = {one.ends[0][0], one.ends[1][0]}
    for i, packet in packets:
        if packet.kind is Kind.TCP or {packet.src, packet.dst} != hosts:
            continue
        data, at = packet.data, packet.ip
        if len(data) >= at + (20 if packet.version == 4 else 40):
            protocol = data[at + (9 if packet.version == 4 else 6)]
            if data[at] >> 4 == packet.version and protocol in BEFORE_TCP[packet.version]:
                yield Rule.PROBLEM, f"frame {i}: TCP of the hosts that is no segment"


def in_clear(hand: Hand, packets: list[tuple[int, Packet]], laid: set[int], alone: bool) -> Iterator[Finding]:
    """Payload in plaintext in any byte of any frame."""
    known = known_to(hand)
    for i, packet in packets:
        most = max((longest_row(packet.data, app) for app in known), default=0)
        if most >= ROW:
            yield (
                (Rule.NOT_EQUAL if i in laid or not alone else Rule.DIFFERENT),
                f"frame {i}: payload in clear",
            )
        elif most >= LEAST:
            yield Rule.UNSURE, f"frame {i}: {most} bytes of payload in clear"


@lru_cache(16)
def windows(app: bytes, size: int) -> frozenset[bytes]:
    """Every piece of this length."""
    return frozenset(app[at : at + size] for at in range(len(app) - size + 1))


def longest_row(data: bytes, app: bytes) -> int:
    """How many bytes in a row are application data (which is random); 0 if fewer than a needle."""
    half = LEAST // 2  # a row of sixteen holds nine pieces of eight: look at every ninth
    if not any(data[at : at + half] in windows(app, half) for at in range(0, len(data) - half + 1, half + 1)):
        return 0
    known, most, row = windows(app, LEAST), 0, 0
    for at in range(len(data) - LEAST + 1):
        row = row + 1 if data[at : at + LEAST] in known else 0
        most = max(most, row)
    return most + LEAST - 1 if most else 0
