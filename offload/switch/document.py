"""For programs: what enable, disable and restore did (schema/switch-1.schema.json)."""

from __future__ import annotations

import json
from typing import Any

from offload.card.nic import look
from offload.card.profile import DIRECTIONS, FEATURES
from offload.errors import OffloadError
from offload.host.local import LocalHost

SCHEMA = 1


def document(verb: str, dry_run: bool, devs: list[str], said: list[str], error: OffloadError | None) -> str:
    """The document: the named devices as they are now, the messages, and the error if there is one.

    ASCII only; keys are only ever added to schema 1.
    """
    found = {
        "schema": SCHEMA,
        "verb": verb,
        "dry_run": dry_run,
        "exit": error.exit_code if error else 0,
        "error": {"message": error.args[0], "hint": error.hint or None} if error else None,
        "devices": [_device(dev) for dev in devs],
        "said": said,
    }
    return json.dumps(found, indent=2)


def _device(dev: str) -> dict[str, Any]:
    """A device as it is now; no directions if it is not there or cannot be looked at."""
    try:
        nic = look(LocalHost(), dev)
    except OffloadError:
        return {"dev": dev, "directions": {}}
    rows = {d: nic.feature(d) for d in DIRECTIONS}
    return {
        "dev": nic.dev,
        "directions": {
            d: {"feature": FEATURES[d], "active": f.active, "requested": f.requested, "fixed": f.fixed}
            for d, f in rows.items()
            if f
        },
    }
