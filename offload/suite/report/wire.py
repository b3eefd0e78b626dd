"""What the wire showed: per cell, each proof of wire.md with what it covers and the first difference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offload.suite.report.criteria import Criteria
from offload.suite.report.facts import Cell, Facts

PROOFS = ("A", "B", "C", "where")
ENGINES = ("core", "python")
LONGEST = 1000  # characters of a difference that the report shows
# States of a proof in a cell, the worst first; for all cells together one that is missing outweighs the good.
STATES = ("different", "failed", "inconclusive", "limited", "proven", "not tested", "not asked")
OVERALL = ("different", "failed", "inconclusive", "not tested", "limited", "proven", "not asked")
RANK = {state: rank for rank, state in enumerate(STATES)}
RANK_OVERALL = {state: rank for rank, state in enumerate(OVERALL)}


@dataclass(frozen=True)
class Shown:
    """The evidence `wire` of one test; `records` and `bytes` are those proven, 0 where it said no number."""

    proof: str
    outcome: str
    engine: str
    records: int
    bytes: int
    difference: str

    @property
    def whole(self) -> bool:
        """Say whether something was compared at all, and all of it was equal."""
        amount = {"A": self.bytes, "B": self.records, "C": self.bytes, "where": self.records + self.bytes}
        return self.outcome == "equal" and amount.get(self.proof, 0) > 0


def shown(evidence: Mapping[str, Any]) -> Shown | None:
    """Return what a test's evidence says of the wire; None if it says nothing that has this shape."""
    found = evidence.get("wire")
    if not isinstance(found, Mapping):
        return None
    proof, outcome, engine, words = (
        _text(found.get(k)) for k in ("proof", "outcome", "engine", "difference")
    )
    engine = engine if engine in ENGINES else ""
    return Shown(proof, outcome, engine, _count(found.get("records")), _count(found.get("bytes")), words)


def contradiction(test: Mapping[str, Any]) -> str:
    """Return how the evidence `wire` of a passed test denies that it passed; else nothing."""
    if test["outcome"] != "pass" or "wire" not in test["evidence"]:
        return ""
    found = shown(test["evidence"])
    if found is None or found.outcome not in ("equal", "different", "inconclusive"):
        return "the evidence of the wire does not have the form that the report reads"
    if found.outcome == "equal":
        return ""
    detail = f": {found.difference}" if found.difference else ""
    return f"its evidence reports that the wire is {found.outcome}{detail}"


def proves(test: Mapping[str, Any], proof: str | None) -> bool:
    """Say whether a passed test shows this proof; A and None need no evidence `wire`."""
    if proof in (None, "A"):
        return True
    found = shown(test["evidence"])
    return found is not None and found.proof == proof and found.whole


def table(tests: Sequence[Mapping[str, Any]], criteria: Criteria, facts: Facts) -> list[dict[str, Any]]:
    """Return a row per cell of the profile, and one for the tests that name none; see the report's schema."""
    rows = []
    for cell in facts.cells:
        mine = [test for test in tests if cell_of(test) == cell]
        asked = {proof: _asked(proof, cell, criteria, facts) for proof in PROOFS}
        rows.append(_row(cell, mine, criteria, facts, asked))
    rest = [test for test in tests if cell_of(test) not in facts.cells]
    unseen = {proof: not any(row["proofs"][proof]["tests"] for row in rows) for proof in PROOFS}
    asked = {proof: unseen[proof] and _asked(proof, None, criteria, facts) for proof in PROOFS}
    last = _row(("", "", ""), rest, criteria, facts, asked)
    used = any(found["state"] != "not asked" for found in last["proofs"].values())
    return [*rows, last] if used else rows


def totals(rows: Sequence[Mapping[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return each proof over all rows: worst state, cells proven and asked, tests, sums."""
    found = {}
    for proof in PROOFS:
        mine = [row["proofs"][proof] for row in rows]
        cells = [row["proofs"][proof]["state"] for row in rows if row["direction"]]
        found[proof] = {
            "state": min((part["state"] for part in mine), key=RANK_OVERALL.__getitem__, default="not asked"),
            "cells": cells.count("proven"),
            "asked": len(cells) - cells.count("not asked"),
            "tests": sum(len(part["tests"]) for part in mine),
            "proven": sum(part["proven"] for part in mine),
            "records": sum(part["records"] for part in mine),
            "bytes": sum(part["bytes"] for part in mine),
            "engines": sorted({engine for part in mine for engine in part["engines"]}),
        }
    return found


def cell_of(test: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """Return the cell that a test names, or three times None."""
    found = test.get("cell") or {}
    return found.get("direction"), found.get("version"), found.get("cipher")


def size(count: int) -> str:
    """Return bytes for a person: `512 B`, `18.2 MiB`."""
    if count < 1024:
        return f"{count} B"
    value = float(count)
    for unit in ("KiB", "MiB", "GiB"):
        value /= 1024
        if value < 1023.95:
            return f"{value:.1f} {unit}"
    return f"{value / 1024:,.1f} TiB"


def words(evidence: Mapping[str, Any]) -> str:
    """Return what a test's evidence says of the wire in one phrase, without the difference."""
    found = shown(evidence)
    if found is None:
        return "not of the form that the report reads"
    amounts = [
        f"{found.records:,} records" if found.records else "",
        size(found.bytes) if found.bytes else "",
    ]
    parts = [f"{found.proof} {found.outcome}", *amounts, found.engine]
    return ", ".join(part for part in parts if part)


def label(row: Mapping[str, Any]) -> str:
    """Return the cell of a row in one phrase."""
    if not row["direction"]:
        return "No single cell"
    return f"{row['direction'].capitalize()} TLS {row['version']} {row['cipher']}"


def _asked(proof: str, cell: Cell | None, criteria: Criteria, facts: Facts) -> bool:
    """Say whether some promise wants this proof in this cell; without a cell: wants it somewhere."""
    which = None if cell is None else "promised" if cell in facts.promised else "unpromised"
    return any(
        promise.proof == proof
        and promise.cells == which
        and facts.applies(promise.applies)
        and (cell is None or promise.direction in (None, cell[0]))
        for promise in criteria.promises.values()
    )


def _row(
    cell: Cell,
    tests: Sequence[Mapping[str, Any]],
    criteria: Criteria,
    facts: Facts,
    asked: Mapping[str, bool],
) -> dict[str, Any]:
    names = dict(zip(("direction", "version", "cipher"), cell, strict=True))
    proofs = {
        proof: _proof(proof, [test for test in tests if proof in _proofs(test, criteria)], asked[proof])
        for proof in PROOFS
    }
    return names | {"promised": cell in facts.promised, "proofs": proofs}


def _proofs(test: Mapping[str, Any], criteria: Criteria) -> set[str | None]:
    """Return the proofs that a test is about: by its promise, and by its evidence."""
    promise, found = criteria.promises.get(str(test.get("promise"))), shown(test["evidence"])
    return {promise.proof if promise else None, found.proof if found else None}


def _proof(proof: str, tests: Sequence[Mapping[str, Any]], asked: bool) -> dict[str, Any]:
    """Return one proof in one row: only what is proven is counted, the worst test gives state and reason."""
    if not tests:
        found = ("not tested", "no test covered it") if asked else ("not asked", "")
        return _entry(*found, [], [], "")
    said = [(test, _of(test, proof)) for test in tests]
    judged = sorted((_judge(test, mine, proof) for test, mine in said), key=lambda j: RANK[j[0]])
    good = [mine for test, mine in said if mine and _judge(test, mine, proof)[0] == "proven"]
    found = judged[0][0], next((reason for _, reason in judged if reason), "")
    words = (
        mine.difference or str(test["reason"]) or "no words for it"
        for test, mine in said
        if mine and mine.outcome == "different"
    )
    return _entry(*found, [str(test["id"]) for test in tests], good, next(words, ""))


def _entry(state: str, reason: str, tests: list[str], good: list[Shown], words: str) -> dict[str, Any]:
    return {
        "state": state,
        "reason": reason,
        "tests": tests,
        "proven": len(good),
        "records": sum(mine.records for mine in good),
        "bytes": sum(mine.bytes for mine in good),
        "engines": sorted({mine.engine for mine in good if mine.engine}),
        "difference": words,
    }


def _of(test: Mapping[str, Any], proof: str) -> Shown | None:
    """Return what a test shows for this proof; for A that is the evidence of every payload test."""
    if proof == "A" and test["evidence"].get("sha256"):
        return Shown("A", "equal", "", 0, _count(test["evidence"].get("bytes")), "")
    found = shown(test["evidence"])
    return found if found and found.proof == proof else None


def _judge(test: Mapping[str, Any], mine: Shown | None, proof: str) -> tuple[str, str]:
    """Return the state that one test gives to its proof, and why (empty if proven)."""
    outcome, reason = test["outcome"], str(test["reason"])
    if outcome in ("skip", "error"):
        return "not tested", ("skipped: " if outcome == "skip" else "the rig broke: ") + reason
    if outcome == "xfail":
        return "limited", reason
    if mine and mine.outcome in ("different", "inconclusive"):
        return mine.outcome, mine.difference or reason
    if outcome == "fail":
        return "failed", reason or "failed, and gave no reason"
    good = mine is not None and mine.whole
    return ("proven", "") if good else ("inconclusive", f"passed, but its evidence shows no proof {proof}")


def _text(value: Any) -> str:
    found = value if isinstance(value, str) else ""
    return found if len(found) <= LONGEST else found[: LONGEST - 3] + "..."


def _count(value: Any) -> int:
    good = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 63
    return int(value) if good else 0
