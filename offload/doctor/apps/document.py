"""The answer about a program, for programs: one JSON document (schema/doctor-app-1.schema.json)."""

from __future__ import annotations

import json
from typing import Any

from offload.doctor.apps.judge import Answer, Ruling
from offload.doctor.apps.model import Said
from offload.doctor.examine import EXITS
from offload.doctor.reasons import Finding, plain

SCHEMA = 1


def as_json(answer: Answer) -> str:
    """The whole answer; ASCII only, so nothing in it can steer a terminal."""
    state, app, device = answer.state(), answer.app, answer.device
    files = app.files
    document = {
        "schema": SCHEMA,
        "state": state,
        "exit": EXITS[state],
        "kernel": plain(answer.diagnosis.machine.release),
        "app": {
            "name": app.name,
            "version": ".".join(map(str, app.version)) or None,
            "library": plain(app.library) or None,
            "files": [plain(path) for path in files.read] if files else [],
        },
        "device": {
            "dev": device.nic.dev,
            "state": device.state(),
            "simulated": device.found.simulated,
            "profile": device.found.profile.id if device.found.profile else None,
        }
        if device
        else None,
        "findings": [_finding(row) for row in answer.findings],
        "services": [_service(ruling) for ruling in answer.rulings],
    }
    return json.dumps(document, indent=2) + "\n"


def _service(ruling: Ruling) -> dict[str, Any]:
    service = ruling.service
    return {
        "name": plain(service.name),
        "where": service.where,
        "side": service.side,
        "address": plain(service.address) or None,
        "state": ruling.state(),
        "asks": {"on": True, "off": False}.get(service.ask.text),
        "said": {
            "ktls": _said(service.ask),
            "versions": _said(service.versions),
            "ciphers": _said(service.ciphers),
            "ciphersuites": _said(service.suites),
        },
        "directions": {d: {"state": word, "code": code or None} for d, (word, code) in ruling.states.items()},
        "findings": [_finding(row) for row in ruling.findings],
        "table": [{**w.cell._asdict(), "who": w.who, "why": plain(w.why) or None} for w in ruling.cells],
    }


def _said(said: Said) -> dict[str, str | None]:
    """A setting as it stands, and where."""
    return {"text": plain(said.text) or None, "where": plain(said.where)}


def _finding(row: Finding) -> dict[str, Any]:
    """One finding; its service is where it stands."""
    return {key: value for key, value in row._asdict().items() if key != "dev"}
