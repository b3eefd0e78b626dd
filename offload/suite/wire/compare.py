"""Proof C: are the TCP streams of two captures the same, both directions, handshake included?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from offload.suite.wire.streams import Capture, Connection, Stream, load

PIECE = 1 << 16
SHOWN = 16  # bytes of each side
DIRECTIONS = ("client", "server")


def compare(a: Path, b: Path, port_a: int | None = None, port_b: int | None = None) -> dict[str, Any]:
    """Compare the connections of two captures in their order, each with its whole streams.

    The answer: {"schema": 1, "outcome": "equal" | "different" | "inconclusive",
    "problems": [{"capture": "a" | "b", "connection": n, "direction", "code", "at": offset or frame}],
    "connections": [{"a": "client -> server", "b": ..., "from_client": {"a": n, "b": n, "equal": n},
    "from_server": ...}], "first_difference": None | {"connection": n, "direction", "offset", "a": hex,
    "b": hex, "record": None | {"number", "type", "at"}}}. Connections are numbered from 1, those without
    any payload are not counted; n in a direction are bytes. ConfigError for a file that is no capture.
    """
    one, two = load(a, port=port_a), load(b, port=port_b)
    damage = [_problem(p.code, name, at=p.at) for name, c in (("a", one), ("b", two)) for p in c.problems]
    left, right = _speaking(one), _speaking(two)
    amount = list(_amount(left, right))
    if amount:
        return _document([*damage, *amount], [], None)
    pairs = list(enumerate(zip(left, right, strict=True), 1))
    doubts = [doubt for number, pair in pairs for doubt in _doubts(number, *pair)]
    return _document([*damage, *doubts], [_entry(*pair) for _, pair in pairs], _first(pairs))


def _speaking(capture: Capture) -> list[Connection]:
    return [c for c in capture.connections if c.from_client.data or c.from_server.data]


def _document(
    problems: list[dict[str, Any]], entries: list[dict[str, Any]], first: dict[str, Any] | None
) -> dict[str, Any]:
    outcome = "different" if first else "inconclusive" if problems else "equal"
    return {
        "schema": 1,
        "outcome": outcome,
        "problems": problems,
        "connections": entries,
        "first_difference": first,
    }


def _problem(
    code: str, capture: str = "", connection: int = 0, direction: str = "", at: int = 0
) -> dict[str, Any]:
    return {"capture": capture, "connection": connection, "direction": direction, "code": code, "at": at}


def _amount(left: Sequence[Connection], right: Sequence[Connection]) -> Iterator[dict[str, Any]]:
    """Yield what keeps the connections from being compared at all; `at` is how many there are."""
    for name, found in (("a", left), ("b", right)):
        if not found:
            yield _problem("empty", name)
    if left and right and len(left) != len(right):
        yield _problem("other-number", "a", at=len(left))
        yield _problem("other-number", "b", at=len(right))


def _stream(connection: Connection, direction: str) -> Stream:
    return connection.from_client if direction == "client" else connection.from_server


def _entry(one: Connection, other: Connection) -> dict[str, Any]:
    entry: dict[str, Any] = {"a": f"{one.client} -> {one.server}", "b": f"{other.client} -> {other.server}"}
    for direction in DIRECTIONS:
        ours, theirs = _stream(one, direction).data, _stream(other, direction).data
        entry[f"from_{direction}"] = {"a": len(ours), "b": len(theirs), "equal": common(ours, theirs)}
    return entry


def _doubts(number: int, one: Connection, other: Connection) -> Iterator[dict[str, Any]]:
    """Yield what is missing from a pair of connections."""
    for name, connection in (("a", one), ("b", other)):
        for direction in DIRECTIONS:
            for code in _missing(_stream(connection, direction)):
                yield _problem(code, name, number, direction, len(_stream(connection, direction).data))


def _missing(stream: Stream) -> Iterator[str]:
    """Yield why a stream may not be all that was sent."""
    yield from (problem.code for problem in stream.problems)
    if stream.retransmission:
        yield "retransmission"
    if stream.gap:
        yield "gap"
    elif stream.fin is None:
        yield "reset" if stream.rst else "no-close"
    elif stream.fin < len(stream.data):
        yield "data-after-fin"


def _first(pairs: Sequence[tuple[int, tuple[Connection, Connection]]]) -> dict[str, Any] | None:
    """Return the first difference, client before server; a stream that may go on differs from none."""
    for number, (one, other) in pairs:
        for direction in DIRECTIONS:
            ours, theirs = _stream(one, direction), _stream(other, direction)
            at = common(ours.data, theirs.data)
            shorter = ours if len(ours.data) <= len(theirs.data) else theirs
            if at == len(shorter.data) and (len(ours.data) == len(theirs.data) or not _ended(shorter)):
                continue
            return {
                "connection": number,
                "direction": direction,
                "offset": at,
                "a": bytes(ours.data[at : at + SHOWN]).hex(),
                "b": bytes(theirs.data[at : at + SHOWN]).hex(),
                "record": record(ours.data if at < len(ours.data) else theirs.data, at),
            }
    return None


def _ended(stream: Stream) -> bool:
    return stream.fin is not None and not stream.gap


def common(a: bytes, b: bytes) -> int:
    """Return how many bytes are equal from the beginning."""
    at, end = 0, min(len(a), len(b))
    while at < end and a[at : at + PIECE] == b[at : at + PIECE]:
        at += PIECE
    while at < end and a[at] == b[at]:
        at += 1
    return min(at, end)


def record(data: bytes, offset: int) -> dict[str, int] | None:
    """Return in which TLS record (number, type) an offset lies and at which byte; None if it is no TLS."""
    at = number = 0
    while at + 5 <= len(data) and data[at] in range(20, 24) and data[at + 1] == 3:
        size = 5 + int.from_bytes(data[at + 3 : at + 5], "big")
        if offset < at + size:
            return {"number": number, "type": data[at], "at": offset - at}
        at, number = at + size, number + 1
    return None


def text(document: dict[str, Any]) -> str:
    """Return the answer in words; the last line is the verdict."""
    lines = [line for number, c in enumerate(document["connections"], 1) for line in _pair(number, c)]
    lines += [f"! {_doubt(problem)}" for problem in document["problems"]]
    return "\n".join([*lines, f"verdict: {verdict(document)}"]) + "\n"


def verdict(document: dict[str, Any]) -> str:
    """Return the outcome and what it rests on, in one line."""
    found, problems = document["first_difference"], document["problems"]
    if found:
        return f"DIFFERENT: {_difference(found)}"
    if problems:
        return f"INCONCLUSIVE, which is not a pass: {_doubt(problems[0])}"
    total = sum(c[f"from_{direction}"]["equal"] for c in document["connections"] for direction in DIRECTIONS)
    count = len(document["connections"])
    return f"EQUAL: {count:,} connection{'s' if count > 1 else ''}, {total:,} bytes, both directions"


def _pair(number: int, connection: dict[str, Any]) -> Iterator[str]:
    yield f"connection {number:,}: {connection['a']}, and {connection['b']}"
    for direction, words in (("client", "client -> server"), ("server", "server -> client")):
        found = connection[f"from_{direction}"]
        same = found["a"] == found["b"] == found["equal"]
        size = f"{found['a']:,}" if found["a"] == found["b"] else f"{found['a']:,} and {found['b']:,}"
        yield f"  {words}  {size} bytes, " + ("equal" if same else f"the first {found['equal']:,} equal")


def _difference(found: dict[str, Any]) -> str:
    direction = "client -> server" if found["direction"] == "client" else "server -> client"
    where = f"connection {found['connection']:,}, {direction}, stream offset {found['offset']:,}"
    if found["record"]:
        within = found["record"]
        where += f" (record {within['number']:,}, type {within['type']}, byte {within['at']:,})"
    return f"{where}: {found['a'] or 'the end'} against {found['b'] or 'the end'}"


CAUSES = {
    "capture-damaged": "it ends inside a frame, or is damaged there (frame {at:,})",
    "too-many-connections": "more than 65,536 connections: give --port-a, --port-b",
    "empty": "it contains no TCP connection with payload",
    "gap": "bytes are missing from the capture after stream offset {at:,}",
    "no-syn": "its beginning is not in the capture",
    "no-close": "its end is not in the capture",
    "reset": "it was reset, not closed",
    "retransmission": "a retransmission differs from the original",
    "data-after-fin": "more bytes follow its end",
    "too-much-reorder": "more than 65,536 segments waited for an earlier one",
    "other-number": "{at:,} connections; compare them one at a time: give --port-a, --port-b",
}


def _doubt(problem: dict[str, Any]) -> str:
    direction = {"client": ", client -> server", "server": ", server -> client", "": ""}[problem["direction"]]
    where = f", connection {problem['connection']:,}" if problem["connection"] else ""
    words = CAUSES.get(problem["code"], problem["code"]).format(at=problem["at"])
    return f"capture {problem['capture'].upper()}{where}{direction}: {words} [{problem['code']}]"
