"""For programs: what a verb with --json prints if it failed (schema/error-1.schema.json)."""

from __future__ import annotations

import json

from offload.errors import OffloadError

SCHEMA = 1


def failed(verb: str, error: OffloadError) -> str:
    """Return what any other verb with --json prints instead of its document."""
    said = {"message": error.args[0], "hint": error.hint or None}
    return json.dumps({"schema": SCHEMA, "verb": verb, "exit": error.exit_code, "error": said})
