"""Is every record in a capture what a correct sender would have put there? The readable verifier."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from offload.suite.wire import canary, classify, classify_header, files, keylog, streams
from offload.suite.wire.ask import Ask
from offload.suite.wire.classify import Verdict
from offload.suite.wire.handshake import Session, negotiate
from offload.suite.wire.needles import WINDOW, Needles
from offload.suite.wire.records import Difference, Walk
from offload.suite.wire.streams import MAX_HELD, Capture, Connection, Problem, Retransmission

ORDER = [
    *("no-hello", "version", "cipher", "no-key", "no-syn", "second-syn", "stray-data", "cut-segment"),
    *("urgent", "second-fin", "too-much-reorder", "handshake-too-long", "clear-alert", "clear-record"),
    *("change-cipher-spec", "renegotiation", "early-data", "gap", "reset", "no-close", "tail"),
    *("data-after-fin", "payload-not-covered"),
]
CAPTURE_ORDER = ["capture-damaged", "too-many-connections", "ambiguous-payload", "no-tls", "unread-tcp"]
EQUAL, DIFFERENT, INCONCLUSIVE = "equal", "different", "inconclusive"


def verify(ask: Ask) -> dict[str, Any]:
    """The verdict document of wire.md; ConfigError if the question or a file makes no sense."""
    log = keylog.load(ask.keylog)
    payload, reply = given(ask.payload), given(ask.reply)
    capture = streams.load(ask.capture, ask.port, ask.checksums)
    listed = [c for c in capture.connections if c.listed]
    if not listed:
        capture.problems.append(Problem("no-tls"))
    if len(listed) > 1 and (payload is not None or reply is not None):
        capture.problems.append(Problem("ambiguous-payload"))
        payload = reply = None
    if unread := capture.unread_between(listed):
        capture.problems.append(Problem("unread-tcp", at=min(unread)))
    needles = Needles(payload, reply)
    connections = [connection(c, log, payload, reply, needles) for c in listed]
    leak = canary.search(capture, needles) if needles else None
    return {
        "schema": 1,
        "engine": "python",
        "outcome": overall(capture, connections, leak),
        "capture": capture.stats,
        "keylog": {"keys": log.keys, "bad": log.bad},
        "problems": [asdict(p) for p in sorted(capture.problems, key=lambda p: CAPTURE_ORDER.index(p.code))],
        "leak": leak and asdict(leak),
        "connections": connections,
    }


def given(source: Path | bytes | None) -> bytes | None:
    """The bytes of a payload; ConfigError if its file cannot be read."""
    return files.content(source, MAX_HELD) if isinstance(source, Path) else source


def overall(capture: Capture, connections: list[dict[str, Any]], leak: canary.Leak | None) -> str:
    """The outcome of the whole capture."""
    outcomes = [c["outcome"] for c in connections]
    if leak or DIFFERENT in outcomes:
        return DIFFERENT
    return INCONCLUSIVE if capture.problems or INCONCLUSIVE in outcomes else EQUAL


def connection(
    source: Connection, log: keylog.Keylog, payload: bytes | None, reply: bytes | None, needles: Needles
) -> dict[str, Any]:
    """One connection of the document."""
    session = negotiate(source.from_client.data, source.from_server.data, log)
    walks = (
        Walk(source.from_client, session, payload, needles),
        Walk(source.from_server, session, reply, needles),
    )
    problems = [Problem(session.problem)] if session.problem else []
    for walk in walks:
        walk.run()
        problems += walk.problems
    return {
        "client": source.client,
        "server": source.server,
        "first_frame": source.first_frame,
        "version": session.version,
        "cipher": session.suite.cipher if session.suite else "",
        "suite": session.suite_code,
        "outcome": outcome(walks, problems),
        "problems": [asdict(p) for p in sorted(problems, key=place)],
        "from_client": direction(walks[0], walks[1], session),
        "from_server": direction(walks[1], walks[0], session),
    }


def place(problem: Problem) -> tuple[int, int]:
    """Where a problem is listed: the connection's, the client's, the server's, each in one order."""
    return ("", "client", "server").index(problem.direction), ORDER.index(problem.code)


def outcome(walks: tuple[Walk, Walk], problems: list[Problem]) -> str:
    """The outcome of one connection."""
    if any(walk.first or walk.stream.retransmission for walk in walks):
        return DIFFERENT
    proven = any(walk.tally.right for walk in walks)
    return EQUAL if proven and not problems else INCONCLUSIVE


def direction(walk: Walk, other: Walk, session: Session) -> dict[str, Any]:
    """One direction of the document."""
    stream, tally = walk.stream, walk.tally
    proof = "none" if walk.schedule is None else "tag" if walk.payload is None else "payload"
    closed = (
        "close_notify"
        if tally.close_notify
        else "fin"
        if stream.fin is not None
        else "rst"
        if stream.rst
        else ""
    )
    return {
        "bytes": len(stream.data),
        "records": tally.records,
        "protected": tally.protected,
        "app_records": tally.app_records,
        "app_bytes": tally.app_bytes,
        "proof": proof,
        "payload_bytes": tally.payload_bytes,
        "authentic_bytes": tally.authentic_bytes,
        "retransmissions": stream.retransmissions,
        "retransmitted_bytes": stream.retransmitted_bytes,
        "out_of_order": stream.out_of_order,
        "strange": stream.strange,
        "cut_bytes": stream.cut_bytes,
        "epochs": tally.epochs,
        "nonce_first": tally.nonce_first,
        "closed": closed,
        "sizes": {str(size): count for size, count in sorted(tally.sizes.items())},
        "different_records": tally.different,
        "first_difference": difference(walk, other),
        "retransmission": stream.retransmission and retransmission(stream.retransmission, walk.payload),
    }


def difference(walk: Walk, other: Walk) -> dict[str, Any] | None:
    """The first difference of a direction, explained."""
    first = walk.first
    if first is None:
        return None
    if first.what == "content":
        verdict = classify.explain(walk, other)
    elif first.what == "nonce":
        verdict = classify_header.nonce(first)
    elif first.what == "start":
        verdict = classify_header.start(first.record, walk.session.version == "1.3")
    elif first.what == "header":
        verdict = classify_header.implausible(walk, first.record)
    elif first.found is not None:
        detail = f"{first.found.of} offset {first.found.offset}"
        got = needle(walk, first)
        verdict = Verdict("plaintext", detail, field="payload", at=max(0, first.found.at), got=got)
    elif first.what in ("missing", "excess"):
        verdict = uncovered(walk, first)
    else:
        verdict = Verdict("malformed" if first.what == "malformed" else "truncation", field="length")
    return verdict.document(first)


def needle(walk: Walk, first: Difference) -> bytes:
    """The bytes of the payload or the reply that were found in the clear."""
    assert first.found is not None
    return walk.needles.sources[first.found.of][first.found.offset :][:WINDOW]


def uncovered(walk: Walk, first: Difference) -> Verdict:
    """Payload and application data of different lengths; `at`: the payload offset where one ends."""
    payload = walk.payload or b""
    if first.what == "excess":
        return Verdict("excess", field="payload", at=len(payload), got=(first.plain or b"")[:16])
    at = walk.tally.app_bytes
    return Verdict("truncation", field="payload", at=at, expected=payload[at : at + 16])


def retransmission(found: Retransmission, payload: bytes | None) -> dict[str, Any]:
    """Bytes that were sent again differently, as the document shows them."""
    return {
        "offset": found.offset,
        "frame": found.frame,
        "expected": found.expected.hex(),
        "got": found.got.hex(),
        "class": classify_header.retransmission(found, payload),
    }
