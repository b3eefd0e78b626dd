"""Connections of unusual shape: how they are written, how records lie in frames, where numbers begin."""

from __future__ import annotations

import hashlib
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from offload.card.counters import Snapshot
from offload.card.profile import Cell
from offload.suite.traffic import handoff, rawkeys
from offload.suite.traffic.drive import Ended, Sending, Transfer, send, sending, take
from offload.suite.traffic.impair import Chosen
from tests.lib.flow import proof
from tests.lib.flow.flow import Flow, Several, Traffic
from tests.lib.impair.impairment import impaired
from tests.lib.wire.wire import Segment, Watch

RECORD = 16384  # bytes of payload in a full record
WHOLE = RECORD + 29  # the same on the wire: header, nonce and tag (RFC 5288 section 3)
TURN = 1 << 32
MOST = 0.9  # of the bytes that a card must decrypt without impairment; blktests nvme/056 has the same level
# 1 byte to a full record: powers of two and what is half-way between them
GEOMETRIC = tuple(sorted({1 << n for n in range(15)} | {3 << n for n in range(13)}))
SMALL = tuple(11 + n % 30 for n in range(150))  # one record each, many of them in a segment
# MSG_MORE joins the writes of a part to records: up to 10 writes (6.12.95 writes beyond its array above 16)
JOINED = ((100, 200, 300), (16000, 1001), (1, 2, 3, 4, 5, 6, 7, 8, 9), (20000, 11))


def storm(name: str) -> Several:
    """96 KiB in which something is lost; after a turn 192 KiB, in which the card must be resynchronized."""
    return Several((sending(f"{name} storm", 6 * RECORD), sending(f"{name} calm", 12 * RECORD)))


def methods(name: str) -> Several:
    """Every way to write, on one connection; the sizes of the records tell which is which."""
    parts = [Sending(f"{name} write", GEOMETRIC), Sending(f"{name} small", SMALL)]
    parts += [Sending(f"{name} more {n}", sizes, "more") for n, sizes in enumerate(JOINED)]
    parts += [
        Sending(f"{name} gather", (16383, 5, 8190, 33, 778, 33000), "gather"),
        Sending(f"{name} splice", (5003, 16384, 40001, 4096), "splice"),
        Sending(f"{name} file", (1, 4097, 16385, 30001), "sendfile", offset=4095),
    ]
    return Several(tuple(parts))


def begun(name: str, plan: Several) -> Several:
    """The same behind 256 KiB: the start of a stream may be software's, one natural resync (RX_START)."""
    return Several((Sending(f"{name} start", (RECORD,) * 16), *plan.parts))


def records(plan: Several) -> set[int]:
    """The sizes of the records that must come of a plan: a part of MSG_MORE is one write."""
    writes = [(part.total,) if part.how == "more" else part.sizes for part in plan.parts]
    sizes = {size for part in writes for size in part}
    return ({RECORD} if max(sizes) >= RECORD else set()) | {size % RECORD for size in sizes} - {0}


def frames(name: str) -> Several:
    """Many records in a segment, many segments for a record."""
    return Several((Sending(f"{name} small", SMALL * 2, "cork"), Sending(f"{name} large", (RECORD,) * 6)))


def file_again(name: str, how: str, changed: bool) -> Several:
    """64 KiB, so that TCP's window is open, then one record from a file, which then changes or not."""
    part = Sending(f"{name} file", (RECORD,), how, offset=777, alter=(0, RECORD) if changed else None)
    return Several((Sending(f"{name} before", (RECORD,) * 4), part))


def hazard(found: Mapping[str, Any] | None) -> dict[str, bool]:
    """Return for the evidence whether something else was sent again, and if it was under the same key stream.

    The file's bits were all inverted, so then those of the ciphertext are.
    """
    if found is None:
        return {"zerocopy_hazard": False}
    one, other = (bytes.fromhex(found[name]) for name in ("expected", "got"))
    inverted = {a ^ b for a, b in zip(one, other, strict=True)} == {255}
    return {"zerocopy_hazard": True, "same_key_stream": inverted}


def sha256(plan: Several, count: int) -> str:
    """Return the SHA-256 of the first bytes of a plan, hexadecimal."""
    return hashlib.sha256(plan.content()[:count]).hexdigest()


def stream(seen: Sequence[Segment]) -> bytes:
    """The bytes of one direction, from its first segment on; the first copy of each counts."""
    pieces = [((one.seq - seen[0].seq) % TURN, one.payload) for one in seen]
    out = bytearray(max(at + len(data) for at, data in pieces))
    for at, data in reversed(pieces):
        out[at : at + len(data)] = data
    return bytes(out)


def starts(data: bytes) -> list[int]:
    """Where the records of a TLS stream begin, and where the last one ends."""
    found = [0]
    while found[-1] + 5 <= len(data):
        found.append(found[-1] + 5 + int.from_bytes(data[found[-1] + 3 : found[-1] + 5], "big"))
    return found


@dataclass(frozen=True)
class Wrap:
    """Where the sequence number began again at 0: offset in the stream, record, offset in it, its length."""

    offset: int
    record: int
    at: int
    length: int


def wrap(watch: Watch, port: int) -> Wrap:
    """Find the wrap in what was sent to a port; AssertionError if there is none, or not inside a record."""
    seen = [one for one in watch.segments("wire") if one.target == port]
    offset, begins = TURN - seen[0].seq, starts(stream(seen))
    before, after = (sum((one.seq >= seen[0].seq) == side for one in seen) for side in (True, False))
    assert before and after and offset < begins[-1], "the sequence number did not wrap"
    record = bisect_left(begins, offset + 1) - 1
    found = Wrap(offset, record, offset - begins[record], begins[record + 1] - begins[record])
    assert 13 < found.at < found.length - 16, f"the wrap is not inside the payload of a record: {found}"
    return found


def sent(traffic: Traffic, cell: Cell, plan: Several, isn: int) -> Flow:
    """Send from the DUT to a sink behind stunnel; its SYN has the sequence number `isn`."""
    before, steps = traffic.rig.counters(), [send(part) for part in plan.parts]
    with traffic.behind_stunnel(take()) as (port, far):
        near = traffic.dut.pump.handoff(traffic.argv(cell, port), *steps, env=handoff.begin_at(isn))
        return traffic.ended(near, far, before)


@dataclass(frozen=True)
class Received(Flow):
    """A connection, and how much the DUT's card decrypted after the turn (if there was none: in all)."""

    calm: int


Steps = tuple[Mapping[str, Any], ...]


def steps_of(plan: Several, turn: int) -> tuple[Steps, Steps]:
    """Return what the sender does, at a gate first, and the taker.

    The last `turn` parts are sent when the taker has said, by a byte behind a gate, that it has the rest.
    """
    parts = [send(replace(part, gate=-1 if n else 0)) for n, part in enumerate(plan.parts)]
    if not turn:
        return tuple(parts), (take(),)
    first, word = sum(part.total for part in plan.parts[:-turn]), send(Sending("word", (1,), gate=0))
    return (*parts[:-turn], take(1), *parts[-turn:]), (take(first), word, take())


def run(traffic: Traffic, near: Transfer, far: Transfer, cell: Cell, turn: int, before: Snapshot) -> Received:
    """Let the sender go once both ends are up, and the taker at the turn; wait for the end."""
    source, sink = (near, far) if cell.direction == "tx" else (far, near)
    between = before
    with suppress(Ended):  # the reports say more
        source.opened()
        sink.opened()
        source.go()
        if turn:
            sink.at_gate()
            between = traffic.rig.counters()
            sink.go()
    flow = traffic.ended(near, far, before)
    name = "rx_tls_decrypted_bytes"
    calm = (flow.moved.get(name) or 0) - ((between - before).get(name) or 0)
    return Received(flow.dut, flow.far, flow.moved, calm)


def received(
    traffic: Traffic, cell: Cell, plan: Several, *, family: int = 4, isn: int = 0, turn: int = 0
) -> Received:
    """Receive on the DUT, the server now, what the peer's kernel TLS makes of each write.

    Nothing is sent before the DUT's kernel and card can decrypt it. `isn`: as in `sent`, of the peer's SYN.
    """
    before, port, ours, theirs = traffic.rig.counters(), traffic.rig.next_port(), traffic.dut, traffic.peer
    address, (source, sink) = ours.side.v4 if family == 4 else ours.side.v6, steps_of(plan, turn)
    argv = handoff.accept(address, port, ours.at, version=cell.version, cipher=cell.cipher)
    near = ours.pump.handoff(argv, *sink)
    near.listening()
    argv = handoff.connect(
        address, port, theirs.at.ca, version=cell.version, cipher=cell.cipher, want="both" if turn else "tx"
    )
    far = theirs.pump.handoff(argv, *source, env=handoff.begin_at(isn) if isn else None)
    return run(traffic, near, far, cell, turn, before)


def numbered(traffic: Traffic, cell: Cell, plan: Several, number: int) -> Received:
    """One connection without a handshake, with a turn; the first record of the payload has this number."""
    before, ours, theirs = traffic.rig.counters(), traffic.dut, traffic.peer
    ends = ((ours.side.host, ours.at.folder), (theirs.side.host, theirs.at.folder))
    source, sink = steps_of(plan, 1)
    mine, other = (source, sink) if cell.direction == "tx" else (sink, source)
    which = {"there" if cell.direction == "tx" else "back": number}
    listener, port = theirs.pump.listen(host=theirs.side.v4)
    with rawkeys.placed(ends, cell.cipher, **which) as keys:
        far = theirs.pump.accept(listener, *other, keys=keys[1])
        near = ours.pump.connect(theirs.side.v4, port, *mine, keys=keys[0])
        try:
            return run(traffic, near, far, cell, 1, before)
        finally:
            theirs.pump.close(listener)


def changed_file(traffic: Traffic, cell: Cell, evidence: dict[str, Any], plan: Several) -> Flow:
    """Send from a file, lose a frame of it, and let it arrive when it is sent again.

    If the plan's last part is to change its file, the frame is lost until that is done.
    """
    changes, number = plan.parts[-1].alter, sum(len(part.sizes) for part in plan.parts[:-1])
    rule = Chosen("inside", number, data=True, times=100 if changes else 1)  # one record of each write
    before, steps = traffic.rig.counters(), [send(part) for part in plan.parts]
    with impaired(traffic, evidence, (rule,)) as box:
        with traffic.behind_stunnel(take()) as (port, far):
            near = traffic.dut.pump.handoff(traffic.argv(cell, port), *steps)
            with suppress(Ended):  # the reports say more
                if changes:
                    near.at_gate()
                    box.acted(1)
                    near.go()
                    near.altered()
                    box.clear()
            return traffic.ended(near, far, before)


def decrypted(flow: Received, total: int, spared: int = 0) -> None:
    """The card decrypted nearly all since the turn but for what is spared; the counters say so.

    Nearly: a segment that repeats, on a slow machine, something that was not lost is not decrypted.
    """
    assert (proof.count(flow, "TlsRxDevice"), proof.count(flow, "TlsRxSw")) == (1, 0)
    wanted = round(MOST * (total - spared))
    assert proof.count(flow, "rx_tls_decrypted_bytes") >= flow.calm >= wanted, (
        f"the card decrypted {flow.calm} of {total} bytes, {wanted} were wanted"
    )
    assert proof.count(flow, "TlsDecryptError") == 0, "the kernel met records that are not authentic"
    # with a wrong record number a card decrypts all the same: the nonce is in the record; the tag tells
    assert proof.count(flow, "rx_tls_err") == 0, "the card met records that it took for not authentic"
