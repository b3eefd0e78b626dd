"""What the verdict must know of a profile: its cells, which of them it promises, its known limitations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offload.card.profile import Profile

Cell = tuple[str, str, str]  # direction, version, cipher


@dataclass(frozen=True)
class Facts:
    """A card as the verdict sees it; `cells` in the order of the profile, `limitations` message by id."""

    id: str
    name: str
    vendor: str
    driver: str
    cells: tuple[Cell, ...]
    promised: frozenset[Cell]
    limitations: Mapping[str, str] = field(default_factory=dict)
    reasons: Mapping[Cell, str] = field(default_factory=dict)  # why a cell is not promised
    # limitation -> the one test that may meet it ('' for none), the text that is then seen; not of old events
    excuses: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)  # known weaknesses that excuse nothing: what by id

    def applies(self, where: str) -> bool:
        """Say whether a criterion with this `applies` is asked of this card."""
        if where == "always":
            return True
        if where == "unpromised":
            return any(cell not in self.promised for cell in self.cells)
        return any(cell[0] == where for cell in self.promised)


def of(profile: Profile) -> Facts:
    """Return the facts of a profile."""
    cells = tuple((str(d), str(v), str(c)) for d, v, c in profile.cells())
    promised = frozenset(cell for cell in cells if profile.promised(*cell))
    limitations = {limitation.id: limitation.what for limitation in profile.limitations}
    reasons = {cell: profile.reason(*cell) for cell in cells if cell not in promised}
    excuses = {limit.id: (limit.test, limit.expect) for limit in profile.limitations}
    notes = {note.id: note.what for note in profile.notes}
    about = (profile.id, profile.title(), profile.vendor, profile.driver)
    return Facts(*about, cells, promised, limitations, reasons, excuses, notes)


def to_event(facts: Facts) -> dict[str, Any]:
    """Return the fields of a `profile` event, from which `from_event` makes the same facts again."""
    return {
        "id": facts.id,
        "name": facts.name,
        "vendor": facts.vendor,
        "driver": facts.driver,
        "cells": [[*cell, cell in facts.promised, facts.reasons.get(cell, "")] for cell in facts.cells],
        "limitations": dict(facts.limitations),
        "excuses": {limit: list(excuse) for limit, excuse in facts.excuses.items()},
        "notes": dict(facts.notes),
    }


def from_event(event: Mapping[str, Any]) -> Facts | str:
    """Return the facts in a `profile` event, or what is wrong with it."""
    name, vendor, driver = (event.get(key) for key in ("name", "vendor", "driver"))
    key, rows, limits = event.get("id"), event.get("cells"), event.get("limitations")
    texts = all(isinstance(text, str) for text in (key, name, vendor, driver))
    if not texts or not isinstance(rows, list) or not all(map(_is_row, rows)) or not isinstance(limits, dict):
        return "profile: not the facts of a profile"
    cells = tuple((row[0], row[1], row[2]) for row in rows)
    promised = frozenset(cell for cell, row in zip(cells, rows, strict=True) if row[3])
    named = {str(limit): str(message) for limit, message in limits.items()}
    notes = event.get("notes", {})
    reasons = {cell: row[4] for cell, row in zip(cells, rows, strict=True) if row[4]}
    excuses = _excuses(event.get("excuses", {}))
    if excuses is None or not isinstance(notes, dict):
        return "profile: not the facts of a profile"
    noted = {str(note): str(what) for note, what in notes.items()}
    about = (str(key), str(name), str(vendor), str(driver))
    return Facts(*about, cells, promised, named, reasons, excuses, noted)


def _excuses(found: Any) -> dict[str, tuple[str, str]] | None:
    """Return which test may meet which limitation, and what is then seen; None if it has no form."""
    if not isinstance(found, dict):
        return None
    pairs = [(str(name), pair) for name, pair in found.items()]
    good = all(isinstance(pair, list) and [type(one) for one in pair] == [str, str] for _, pair in pairs)
    return {name: (pair[0], pair[1]) for name, pair in pairs} if good else None


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, list)
        and len(row) == 5
        and all(isinstance(text, str) for text in (*row[:3], row[4]))
        and isinstance(row[3], bool)
    )
