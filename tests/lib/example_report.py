"""`make example`: a complete result of a run that never was, the same bytes for the same program.

usage: python -m tests.lib.example_report build/example-report

Everything that a report can have is in it, made up by report_whole.py of tests/unit; each page says so.
"""

from __future__ import annotations

import json
import shutil
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from offload.report import facts, files, manifest
from offload.report.events import SCHEMA
from tests.unit import report_whole as made

NAME = "EXAMPLE, made up: no card and no VM"
CARD = facts.to_event(replace(made.FACTS, name=NAME, vendor="nobody"))
WHEN = "2026-01-02T03:04:05.678Z"


def events() -> list[dict[str, Any]]:
    """The events of the run, with a card and a rig that say what they are."""
    found = []
    for number, event in enumerate(made.events(worst="xfail")):
        more: dict[str, Any] = dict(event)
        if event["event"] == "profile":
            more |= CARD
        if "rig" in event and event["event"] == "run-start":
            more["rig"] = {**event["rig"], "example": NAME}
        found.append({"schema": SCHEMA, "seq": number, "time": WHEN, **more})
    return found


def write(folder: Path) -> None:
    """Make the folder anew: events, the report in every form, manifest."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    lines = [json.dumps(event, ensure_ascii=False, sort_keys=True) for event in events()]
    (folder / files.EVENTS).write_text("\n".join(lines) + "\n")
    files.write(folder)
    manifest.write(folder)


if __name__ == "__main__":
    write(Path(sys.argv[1]))
