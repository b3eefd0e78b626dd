"""The document of wire.md in words: for a terminal, and one sentence for the evidence of a test."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

from offload.suite.wire.phrases import CAUSES, PROBLEMS

Found = Mapping[str, Any]
SHOWN = 20  # connections; those that are not equal come first
DIRECTIONS = {"client": "client -> server", "server": "server -> client"}
RANK = {"different": 0, "inconclusive": 1, "equal": 2}


def text(document: Found, width: int = 100) -> str:
    """Return the whole document in lines of at most about `width` characters; the last is the verdict."""
    connections = sorted(document["connections"], key=lambda c: RANK[c["outcome"]])
    lines = [_capture(document)]
    for connection in connections[:SHOWN]:
        lines += ["", *_connection(connection)]
    if len(connections) > SHOWN:
        lines += ["", f"and {len(connections) - SHOWN:,} more connections, none worse"]
    lines += ["", *([f"! {_leak(document['leak'])}"] if document["leak"] else [])]
    lines += [line for problem in document["problems"] for line in _problem(problem)]
    parts = [part for line in lines for part in _wrapped(line, width)]
    return "\n".join([*parts, f"verdict: {verdict(document)}"]) + "\n"


def verdict(document: Found) -> str:
    """Return the last line: the outcome and what it rests on, short enough for one line."""
    connections, outcome = document["connections"], document["outcome"]
    flows = [c[f"from_{who}"] for c in connections for who in DIRECTIONS]
    if outcome == "equal":
        given = any(flow["proof"] == "payload" for flow in flows)
        compared, tags = (sum(flow[name] for flow in flows) for name in ("payload_bytes", "authentic_bytes"))
        proven = f"{_bytes(compared)} of payload compared" if given else "no payload given for comparison"
        return f"EQUAL: {_many(len(connections), 'connection')}, {proven}, {_bytes(tags)} authentic"
    if outcome == "different":
        count = sum(c["outcome"] == outcome for c in connections)
        share = [f"{count:,} of {_many(len(connections), 'connection')}"] if count else []
        return f"DIFFERENT: {' and '.join([*share, *(['plaintext payload'] if document['leak'] else [])])}"
    codes = [problem["code"] for c in (*connections, document) for problem in c["problems"]]
    why = ", ".join(dict.fromkeys(codes)) or "no record was proven"
    return f"INCONCLUSIVE, which is not a pass: {why}"


def first_sentence(document: Found) -> str:
    """Return the one line that goes into evidence: the first difference, or the first reason for doubt."""
    if document["outcome"] != "equal":
        return f"{document['outcome']}: {_worst(document)}"
    flows = [c[f"from_{who}"] for c in document["connections"] for who in DIRECTIONS]
    records = sum(flow["app_records"] for flow in flows)
    compared = sum(flow["payload_bytes"] for flow in flows)
    return f"equal: {_many(records, 'application record')}, {_bytes(compared)} of payload compared"


def _worst(document: Found) -> str:
    """Return the first thing that stands against `equal`, with the connection that it is in."""
    for connection in document["connections"]:
        if connection["outcome"] == document["outcome"]:
            return f"{_ends(connection)}, {_reason(connection)}"
    if document["outcome"] == "different" and document["leak"]:
        return _leak(document["leak"])
    for problem in document["problems"]:
        return _sentence(problem)
    return "nothing was proven"


def _reason(connection: Found) -> str:
    """Return why a connection is not equal."""
    for who, flow in DIRECTIONS.items():
        if found := difference(connection[f"from_{who}"]):
            return f"{flow}: {found}"
    for problem in connection["problems"]:
        return _sentence(problem)
    return "no record was proven in either direction"


def difference(direction: Found) -> str:
    """Return the first difference of one direction with its place; empty if there is none."""
    return next((f"{place}: {_seen(found)}{_class(found)}" for found, place in _differences(direction)), "")


def _capture(document: Found) -> str:
    """Return what was read."""
    found, keys = document["capture"], document["keylog"]
    names = {"tcp": "TCP", "other": "other", "fragments": "IP fragments", "bad_checksum": "wrong checksum"}
    parts = [f"{found[name]:,} {word}" for name, word in names.items() if found[name] or name == "tcp"]
    cut = f"; {found['truncated']:,} cut by the capture" if found["truncated"] else ""
    not_tls = f"; {_many(found['not_tls'], 'connection')} without TLS" if found["not_tls"] else ""
    bad = f", {_many(keys['bad'], 'bad line')}" if keys["bad"] else ""
    frames = f"{found['format']}: {_many(found['frames'], 'frame')} ({', '.join(parts)}){cut}{not_tls}"
    return f"{frames}; keylog: {_many(keys['keys'], 'key')}{bad}"


def _connection(connection: Found) -> Iterator[str]:
    """Yield a connection: its ends, each direction, its problems."""
    suite = f" ({connection['suite']})" if connection["suite"] else ""
    tls = f"TLS {connection['version']}" if connection["version"] else "TLS of unknown version"
    yield f"{_ends(connection)}, {tls} {connection['cipher']}{suite}".rstrip()
    for who, flow in DIRECTIONS.items():
        direction = connection[f"from_{who}"]
        state = _state(connection, who)
        yield f"  {flow}  {state:<12}  {_summary(direction)}"
        yield from (f"\t{line}" for line in _details(direction))
    for problem in connection["problems"]:
        yield from _problem(problem)


def _state(connection: Found, who: str) -> str:
    """Return one direction in one word."""
    flow = connection[f"from_{who}"]
    if flow["first_difference"] or flow["retransmission"]:
        return "DIFFERENT"
    if any(problem["direction"] in (who, "") for problem in connection["problems"]):
        return "INCONCLUSIVE"
    words = {"payload": "EQUAL", "tag": "AUTHENTIC", "none": "NOT CHECKED" if flow["bytes"] else "SILENT"}
    return words[flow["proof"]] if flow["protected"] or flow["proof"] == "none" else "NOT CHECKED"


def _summary(flow: Found) -> str:
    """Return a direction in one phrase: the difference, or else what was proven of it."""
    for found, place in _differences(flow):
        return f"{place}: {_class(found)}"
    if flow["proof"] == "none":
        return f"{_many(flow['records'], 'record')}, none of them decrypted" if flow["bytes"] else "no byte"
    if not flow["app_records"]:
        return "no application data"
    records = _many(flow["app_records"], "record")
    if flow["proof"] == "payload":
        return f"{_bytes(flow['payload_bytes'])} in {records} re-encrypted and compared"
    return f"{_bytes(flow['app_bytes'])} in {records}, every tag right, content not compared"


def _details(flow: Found) -> Iterator[str]:
    """Yield what else is worth a line: both sides of a difference, what is right, retransmissions, sizes."""
    differences = list(_differences(flow))
    for number, (found, place) in enumerate(differences):
        if number:
            yield f"{place}: {_class(found)}"
        yield from _explained(found)
    if differences and flow["records"]:
        right = flow["payload_bytes"] if flow["proof"] == "payload" else flow["authentic_bytes"]
        share = f"{flow['different_records']:,} of {_many(flow['records'], 'record')}"
        yield f"{share} differ; {_bytes(right)} of the others are right"
    others = flow["protected"] - flow["app_records"]
    if flow["proof"] != "none" and others and not differences:
        yield f"{_many(others, 'record')} of handshake and alerts, every tag right"
    if flow["retransmissions"]:
        equal = "" if flow["retransmission"] else ", equal"
        segments = _many(flow["retransmissions"], "retransmitted segment")
        yield f"{segments} ({_bytes(flow['retransmitted_bytes'])}){equal}"
    oddities = {"out_of_order": "out of order", "strange": "far outside the window, and ignored"}
    yield from (f"{_many(flow[name], 'segment')} {words}" for name, words in oddities.items() if flow[name])
    if flow["cut_bytes"]:
        yield f"{_bytes(flow['cut_bytes'])} of segments are missing, because the capture truncated its frames"
    if flow["sizes"]:
        yield f"record sizes: {_sizes(flow['sizes'])}"


def _sizes(sizes: Mapping[str, int]) -> str:
    """Return the commonest record sizes; the split is information, not a promise."""
    ranked = sorted(sizes.items(), key=lambda item: (-item[1], -int(item[0])))
    shown = [f"{count:,} x {int(size):,}" for size, count in ranked[:5]]
    rest = sum(count for _, count in ranked[5:])
    return ", ".join([*shown, f"{rest:,} of other sizes"] if rest else shown)


def _differences(flow: Found) -> Iterator[tuple[Found, str]]:
    """Yield the differences of a direction, each with its place in words."""
    found = flow["first_difference"]
    if found:
        record = f"record {found['record']:,} (sequence {found['sequence']:,})"
        yield found, f"at stream offset {found['offset']:,}: {record}, {found['field']} byte {found['at']:,}"
    found = flow["retransmission"]
    if found:
        yield (
            found,
            f"retransmitted with other bytes at stream offset {found['offset']:,} (frame {found['frame']:,})",
        )


def _seen(found: Found) -> str:
    """Return expected and got as far as they are known."""
    pairs = (("expected", found["expected"]), ("got", found["got"]))
    known = ", ".join(f"{word} {value}" for word, value in pairs if value)
    return f"{known}: " if known else ""


def _class(found: Found) -> str:
    """Return the class of a difference with its detail."""
    return f"{found['class']} ({found['detail']})" if found.get("detail") else str(found["class"])


def _explained(found: Found) -> Iterator[str]:
    """Yield what a difference means, and both sides of it below each other."""
    if found["class"] in CAUSES:
        yield f"that is: {CAUSES[found['class']]}"
    if found["expected"]:
        yield f"expected {found['expected']}"
    if found["got"]:
        yield f"got      {found['got']}"


def _leak(leak: Found) -> str:
    """Return where payload was seen in plaintext."""
    more = f" ({leak['frames']:,} frames in total)" if leak["frames"] > 1 else ""
    where = f"frame {leak['frame']:,}, byte {leak['at']:,}{more}"
    place = f"{leak['of']} offset {leak['payload_offset']:,}"
    return f"payload in PLAINTEXT, outside TLS: {where} has what is at {place}"


def _sentence(problem: Found) -> str:
    """Return a problem as a sentence."""
    words, place, _ = PROBLEMS.get(problem["code"], (problem["code"], "", ""))
    flow = f"{DIRECTIONS[problem['direction']]}: " if problem["direction"] else ""
    at = f" ({place} {problem['at']:,})" if place and problem["at"] else ""
    return f"{flow}{words}{at} [{problem['code']}]"


def _problem(problem: Found) -> list[str]:
    """Return a problem, and a hint below it if there is one."""
    hint = PROBLEMS.get(problem["code"], ("", "", ""))[2]
    return [f"! {_sentence(problem)}", *([f"\thint: {hint}"] if hint else [])]


def _ends(connection: Found) -> str:
    return f"{connection['client']} -> {connection['server']}"


def _many(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _bytes(count: int) -> str:
    return _many(count, "byte")


def _wrapped(line: str, width: int) -> list[str]:
    """Return a line in pieces that fit; what goes on is indented."""
    indent = 34 if line.startswith(("  client", "  server")) else 4
    full = line.replace("\t", " " * 4)
    return textwrap.wrap(full, max(width, 60), subsequent_indent=" " * indent, break_long_words=False) or [""]
