"""Which known kernel bug may be behind a failed test: a note on the outcome, which it never changes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from offload.errata.match import Erratum, Kernel, explain, kernel, standing

KEYS = ("id", "kind", "title", "marks", "standing", "why", "symptom", "do")
MOST = 3  # notes per test: what fits a message worse than that is no help
LONGEST = 400  # characters of a text


def notes(test: str, outcome: str, reason: str, rig: dict[str, Any]) -> list[dict[str, str]]:
    """Return what the plug-in writes into the event of a test: none for one that did not fail.

    `rig` holds the arguments of `set_rig`: `kernel`, and of its `rig` the names `kernel-package` and
    `driver`.
    """
    if outcome not in ("fail", "error"):
        return []
    parts = rig["rig"]
    at = kernel(str(rig["kernel"]), str(parts.get("kernel-package", "")))
    found = explain(reason, at, test=test, driver=str(parts.get("driver", "")))
    return [_note(erratum, at) for erratum in found[:MOST]]


def _note(erratum: Erratum, at: Kernel) -> dict[str, str]:
    stands = standing(erratum, at)
    return {
        "id": erratum.id,
        "kind": erratum.kind,
        "title": erratum.title,
        "marks": ", ".join([*erratum.cve, *([f"commit {erratum.commit}"] if erratum.commit else [])]),
        "standing": stands.word,
        "why": stands.why,
        "symptom": erratum.symptom,
        "do": erratum.do,
    }


def read(event: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the notes in the event of a test, as texts of a bounded length; what is no note is left out."""
    found = event.get("known_bugs")
    rows = [row for row in found if isinstance(row, Mapping)] if isinstance(found, list) else []
    return [{key: str(row.get(key, ""))[:LONGEST] for key in KEYS} for row in rows[:MOST]]


def question(note: Mapping[str, str]) -> str:
    """Return the note as a question, because it cannot be known for sure."""
    if note["kind"] in ("behavior", "behaviour"):  # the second in results of earlier versions
        return "known kernel behavior?"
    sure = note["standing"] == "affected"
    return "known kernel bug?" if sure else "known kernel bug, if this kernel has it?"


def line(note: Mapping[str, str]) -> str:
    """Return a note in one line."""
    marks = f" ({note['marks']})" if note["marks"] else ""
    return f"{question(note)} {note['id']}{marks}: {note['symptom']}; {note['why']}"
