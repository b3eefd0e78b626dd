"""The answer about a process for people, and for programs (schema/doctor-pid-1.schema.json)."""

from __future__ import annotations

import json
from typing import Any

from offload.card.profile import WORDS
from offload.connections.text import place
from offload.doctor.examine import EXITS, NOT_PROMISED, READY
from offload.doctor.process.judge import Answer, Connection
from offload.doctor.reasons import Finding, load, plain
from offload.doctor.text import WIDTH, Page

SCHEMA, SHOWN = 1, 60


def as_text(answer: Answer, color: bool = False, width: int = WIDTH, verbose: bool = False) -> str:
    """The whole answer."""
    page, process = Page(color, width), answer.process
    page.lines.append(page.strong(plain(f"{process.title}: {process.exe}")))
    for one in process.libraries:
        page.wrapped("  library  ", f"{one}, {one.path}")
    page.lines.append("")
    for kind in answer.connections[:SHOWN]:
        _connection(page, kind)
    if left := len(answer.connections) - SHOWN:
        page.lines += [f"{left} more kinds: see --json"] if left > 0 else []
    if answer.others:
        many = len(answer.others)
        page.lines.append(f"{many} TCP connection{'s' if many > 1 else ''} without kernel TLS")
    page.lines += [""] if page.lines[-1] else []
    for finding in answer.findings:
        head = f"{finding.level:<8}{finding.code}  "
        page.wrapped(page.paint(head, finding.level), finding.what, len(head))
        if verbose or finding.level != "note":
            page.block(finding, verbose)
    return "\n".join(page.lines).rstrip() + "\n"


def _connection(page: Page, kind: Connection) -> None:
    """An example, how many there are like it, and a line per direction."""
    one = kind.line.socket
    more = f", and {kind.count - 1} more like it" if kind.count > 1 else ""
    ends = f"{place(one.local, one.local_port)} - {place(one.peer, one.peer_port)}"
    page.lines.append(
        page.strong(plain(f"{ends}, TLS {one.version} {one.cipher}, {one.device or 'no route'}")) + more
    )
    for direction, (state, code) in kind.states.items():
        known = code in load() and state not in (READY, NOT_PROMISED)
        said = f"{code} {load()[code].name}" if known else ""
        head = f"  {WORDS[direction]:<9} {kind.line.word(direction):<9} {state:<13}"
        page.wrapped(head.replace(state, page.paint(state, state), 1), said, len(head))


def as_json(answer: Answer) -> str:
    """The whole answer; ASCII only, so nothing in it can steer a terminal."""
    state, process = answer.state(), answer.process
    document = {
        "schema": SCHEMA,
        "state": state,
        "exit": EXITS[state],
        "process": {
            "pid": process.pid,
            "name": process.name,
            "exe": process.exe or None,
            "libraries": [
                {
                    "name": x.name,
                    "version": str(x).removeprefix(x.name).strip() or None,
                    "path": x.path,
                    "replaced": x.replaced,
                }
                for x in process.libraries
            ],
        },
        "connections": [_kind(kind) for kind in answer.connections],
        "without_kernel_tls": len(answer.others),
        "findings": [_finding(row) for row in answer.findings],
    }
    return json.dumps(document, indent=2) + "\n"


def _kind(kind: Connection) -> dict[str, Any]:
    """Connections of one kind."""
    one = kind.line.socket
    return {
        "local": {"address": one.local, "port": one.local_port},
        "peer": {"address": one.peer, "port": one.peer_port},
        "count": kind.count,
        "version": one.version,
        "cipher": one.cipher,
        "device": one.device,
        "state": kind.state(),
        "directions": {
            d: {"conf": kind.line.word(d), "state": state, "code": code or None}
            for d, (state, code) in kind.states.items()
        },
    }


def _finding(row: Finding) -> dict[str, Any]:
    return {key: value for key, value in row._asdict().items() if key != "dev"}
