"""What the verdict has to know of a profile: its cells, which of them it promises, its known limitations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from offload.profile import Profile

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
    name = profile.title()
    return Facts(profile.id, name, profile.vendor, profile.driver, cells, promised, limitations, reasons)


def to_event(facts: Facts) -> dict[str, Any]:
    """Return the fields of a `profile` event, from which `from_event` makes the same facts again."""
    return {
        "id": facts.id,
        "name": facts.name,
        "vendor": facts.vendor,
        "driver": facts.driver,
        "cells": [[*cell, cell in facts.promised, facts.reasons.get(cell, "")] for cell in facts.cells],
        "limitations": dict(facts.limitations),
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
    reasons = {cell: row[4] for cell, row in zip(cells, rows, strict=True) if row[4]}
    return Facts(str(key), str(name), str(vendor), str(driver), cells, promised, named, reasons)


def _is_row(row: Any) -> bool:
    return (
        isinstance(row, list)
        and len(row) == 5
        and all(isinstance(text, str) for text in (*row[:3], row[4]))
        and isinstance(row[3], bool)
    )
