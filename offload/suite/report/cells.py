"""The truth table: every cell (direction, version, cipher) of a profile, and what the tests showed of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offload.suite.report import wire
from offload.suite.report.facts import Cell, Facts

# States: hw | sw expected | limited | failed | not tested.


@dataclass(frozen=True)
class CellState:
    """One cell: promised or not, what was seen, why (empty for hw), and the tests that saw it."""

    direction: str
    version: str
    cipher: str
    promised: bool
    state: str
    reason: str
    tests: tuple[str, ...]

    @property
    def label(self) -> str:
        """Return the cell in one phrase."""
        return f"{self.direction.capitalize()} TLS {self.version} {self.cipher}"


def truth_table(tests: Sequence[Mapping[str, Any]], facts: Facts) -> tuple[CellState, ...]:
    """Return every cell of the profile with its state."""
    return tuple(
        _cell(cell, [test for test in tests if wire.cell_of(test) == cell], facts) for cell in facts.cells
    )


def _cell(cell: Cell, tests: Sequence[Mapping[str, Any]], facts: Facts) -> CellState:
    """Return one cell: a failure anywhere in it decides; else the test of the payload (or the fallback)."""
    promised = cell in facts.promised
    deciding = f"payload.{cell[0]}" if promised else "fallback.expected"
    state, reason = _state(tests, deciding, promised)
    if state == "sw expected":
        reason = facts.reasons.get(cell, "") or "the profile does not promise it"
    return CellState(*cell, promised, state, reason, tuple(str(test["id"]) for test in tests))


def contradiction(test: Mapping[str, Any], promised: bool) -> str:
    """Return how a passed test's own evidence (`offload`) denies what it is meant to prove; else nothing."""
    shown, wanted = test["evidence"].get("offload"), "hw" if promised else "sw"
    if test["outcome"] != "pass" or shown is None or shown == wanted:
        return ""
    return f"wanted TLS offload {wanted!r}, the evidence says {shown!s:.40}"


def _state(tests: Sequence[Mapping[str, Any]], deciding: str, promised: bool) -> tuple[str, str]:
    mine = [test for test in tests if test.get("promise") == deciding]
    for test in tests:
        if test["outcome"] == "fail":
            return "failed", str(test["reason"])
        if wire.contradiction(test):
            return "failed", wire.contradiction(test)
    for test in mine:
        if contradiction(test, promised):
            return "failed", contradiction(test, promised)
    if any(test["outcome"] == "pass" for test in mine):
        return (
            ("hw", "")
            if promised
            else ("sw expected", "not promised; software took over, correctly and visibly")
        )
    for word, state in (("xfail", "limited"), ("skip", "not tested"), ("error", "not tested")):
        for test in mine:
            if test["outcome"] == word:
                return state, ("the rig broke: " if word == "error" else "") + str(test["reason"])
    return "not tested", "no test covered it"
