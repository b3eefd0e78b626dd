"""A diagnosis for programs: one JSON document (schema/doctor-1.schema.json); keys are only ever added."""

from __future__ import annotations

import json
from typing import Any

from offload.doctor.examine import EXITS, Device, Diagnosis
from offload.doctor.reasons import Finding, plain
from offload.doctor.table import Verdict

SCHEMA = 1


def as_json(diagnosis: Diagnosis) -> str:
    """The whole answer; ASCII only, so nothing in it can steer a terminal."""
    state = diagnosis.state()
    machine, trial = diagnosis.machine, diagnosis.trial
    document = {
        "schema": SCHEMA,
        "state": state,
        "exit": EXITS[state],
        "kernel": {
            "release": plain(machine.release),
            "package": plain(machine.kernel.package),
            "machine": plain(machine.machine),
            "config": machine.path or None,
            "tls": machine.module,
        },
        "openssl": {
            "library": trial.library or None,
            "asked": sorted(trial.asked),
            "unasked": sorted(trial.plain),
            "why_not_tried": trial.why or trial.error or None,
        },
        "devices": [_device(device) for device in diagnosis.devices],
        "findings": [_finding(finding) for finding in diagnosis.findings],
        "fine": list(diagnosis.fine),
        "warnings": list(diagnosis.warnings),
    }
    return json.dumps(document, indent=2) + "\n"


def _device(device: Device) -> dict[str, Any]:
    nic, profile = device.nic, device.found.profile
    return {
        "dev": nic.dev,
        "state": device.state(),
        "driver": nic.driver,
        "firmware": nic.firmware,
        "pci": nic.pci,
        "kind": nic.kind,
        "profile": profile.id if profile else None,
        "simulated": device.found.simulated,
        "directions": {d: {"state": word, "code": code or None} for d, (word, code) in device.states.items()},
        "findings": [_finding(finding) for finding in device.findings],
        "fine": list(device.fine),
        "table": [_cell(cell) for cell in device.cells],
        "tools": [{"tool": t.tool, "said": dict(t.said), "why_not": t.why or None} for t in device.tools],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "name": finding.name,
        "level": finding.level,
        "dev": finding.dev or None,
        "directions": list(finding.directions),
        "what": finding.what,
        "evidence": finding.evidence,
        "consequence": finding.consequence,
        "remedy": finding.remedy,
        "detail": list(finding.detail),
    }


def _cell(verdict: Verdict) -> dict[str, Any]:
    """One row of the truth table."""
    cell = verdict.cell
    return {**cell._asdict(), "who": verdict.who, "why": verdict.why or None}
