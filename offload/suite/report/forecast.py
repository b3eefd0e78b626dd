"""Which promises can a bench prove? Reported before a run, from what each test asks and the bench lacks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offload.suite.report.criteria import Criteria
from offload.suite.report.facts import Facts

SCHEMA = "ktls-offload/forecast/1"


@dataclass(frozen=True)
class Forecast:
    """The promises that are asked of a card: required and optional ones, and what each that fails lacks."""

    required: tuple[str, ...]
    optional: tuple[str, ...]
    gaps: Mapping[str, tuple[str, ...]]

    def lines(self) -> list[str]:
        """In words for a person, before the run."""
        return [
            *_reported(self.required, self.gaps, "required", "so the run will be incomplete at best"),
            *_reported(self.optional, self.gaps, "optional", "which does not limit a certificate"),
        ]


def foresee(document: Mapping[str, Any], criteria: Criteria, facts: Facts) -> Forecast:
    """Return what a bench can prove. A promise with a single test that is skipped is not proved
    (verdict.py)."""
    asked = [one for one in criteria.promises.values() if facts.applies(one.applies)]
    lacks: Mapping[str, str] = document["lacks"]
    gaps: dict[str, tuple[str, ...]] = {}
    for test in document["tests"]:
        missing = tuple(lacks[need] for need in test["needs"] if lacks.get(need))
        known = gaps.get(test["promise"], ())
        if missing:
            gaps[test["promise"]] = (*known, *(words for words in missing if words not in known))
    required = tuple(one.id for one in asked if one.required)
    optional = tuple(one.id for one in asked if not one.required)
    return Forecast(required, optional, gaps)


def _reported(names: Sequence[str], gaps: Mapping[str, Sequence[str]], kind: str, then: str) -> list[str]:
    """The promises of a kind: how many can be proved, and the others by what is lacking."""
    short = [name for name in names if gaps.get(name)]
    if not short:
        return [f"this bench can prove all {len(names)} {kind} promises"] if names else []
    by: dict[str, list[str]] = {}
    for name in short:
        by.setdefault("; ".join(gaps[name]), []).append(name)
    head = f"this bench cannot prove {len(short)} of {len(names)} {kind} promises, {then}:"
    return [head, *(f"  {words}: {', '.join(promises)}" for words, promises in by.items())]
