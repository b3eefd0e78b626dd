"""Does what a verb prints for programs fit its published schema? A report, too."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema

OFFLOAD = Path(__file__).parents[2] / "offload"
HERE = OFFLOAD / "schema"
FOLDERS = {
    "doctor": OFFLOAD / "doctor/schema", "ls": HERE, "status": HERE,
    "lab-status": HERE, "driver-status": HERE,
}  # fmt: skip
# their own tests look at each key
OTHERS = {"switch": HERE, "error": HERE, "report": OFFLOAD / "report/schema"}


def schema(verb: str) -> dict[str, Any]:
    """The schema of `ktls-offload VERB --json`."""
    loaded: dict[str, Any] = json.loads(((FOLDERS | OTHERS)[verb] / f"{verb}-1.schema.json").read_text())
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
