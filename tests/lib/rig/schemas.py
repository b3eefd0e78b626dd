"""Does what a verb prints for programs fit its published schema? A report, too."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

ROOT = Path(__file__).parents[3]
FILES = {
    "doctor": "offload/doctor/schema/doctor-1.schema.json",
    "cards": "offload/card/schema/cards-1.schema.json",
    "ls": "offload/connections/schema/ls-1.schema.json",
    "status": "offload/switch/schema/status-1.schema.json",
    "lab-status": "offload/suite/bench/schema/lab-status-1.schema.json",
    "driver-status": "offload/driver/schema/driver-status-1.schema.json",
}
# their own tests look at each key
OTHERS = {
    "switch": "offload/switch/schema/switch-1.schema.json",
    "error": "offload/cli/schema/error-1.schema.json",
    "report": "offload/suite/report/schema/report-2.schema.json",
}


def schema(verb: str) -> dict[str, Any]:
    """The schema of `ktls-offload VERB --json`."""
    loaded: dict[str, Any] = json.loads((ROOT / (FILES | OTHERS)[verb]).read_text())
    return loaded


@cache
def checker(verb: str) -> jsonschema.Draft202012Validator:
    """The schema, made ready once."""
    return jsonschema.Draft202012Validator(schema(verb))


def fits(verb: str, text: str) -> dict[str, Any]:
    """The document; jsonschema.ValidationError with the place if it does not fit."""
    document: dict[str, Any] = json.loads(text)
    checker(verb).validate(document)
    return document
