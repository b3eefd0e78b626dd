"""From recorded events to credit: which tests caught which bad cards, and which checks failed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from offload.suite.report import events
from tests.lib.catalogue.plugin import CHECKS
from tests.lib.catalogue.rows import short
from tests.nicsim.escape_checks import Check

PLACE = re.compile(r"^(tests/\S+\.py):(\d+): ", re.M)  # the last of them in a traceback: where it ended


@dataclass(frozen=True)
class Result:
    """What one test made of one bad card; `place`: where it ended, as (file, line).

    `fired`: every check that failed, if the copy of escape_run.py ran: also one whose failure is caught, and
    told by another.
    """

    test: str
    promise: str
    outcome: str
    place: tuple[str, int] | None
    fired: tuple[str, ...] = ()


@dataclass(frozen=True)
class Card:
    """A bad card, and the tests that ran against it."""

    id: str
    results: tuple[Result, ...]


@dataclass(frozen=True)
class Facts:
    """Who is to be thanked. `caught`, `alone` (of several that ran): cards by test; `single`: by promise.

    `deciding`: cards by check that failed. `escaped`: cards that no test failed.
    `elsewhere`: failures in no check.
    """

    caught: Mapping[str, Sequence[str]]
    alone: Mapping[str, Sequence[str]]
    single: Mapping[str, str]
    deciding: Mapping[str, Sequence[str]]
    escaped: Sequence[str]
    elsewhere: Sequence[str]


def cards(folder: Path, wanted: Iterable[str]) -> Iterator[Card]:
    """Read the events of each wanted card that the folder has; a run that did not come to its end is none."""
    for name in wanted:
        path = folder / f"{name}.jsonl"
        found = events.read(path).events if path.is_file() else []
        if any(event["event"] == "run-end" for event in found):
            yield Card(name, tuple(_result(event) for event in found if event["event"] == "test"))


def _result(event: Mapping[str, Any]) -> Result:
    places = PLACE.findall(str(event.get("details", "")))
    place = (places[-1][0], int(places[-1][1])) if places else None
    test = short(str(event["id"]))
    fired = tuple(event.get("evidence", {}).get(CHECKS, ()))
    return Result(test, str(event.get("promise") or ""), event["outcome"], place, fired)


def fired(result: Result, lines: Mapping[tuple[str, int], str]) -> tuple[str, ...]:
    """The checks that failed in a test: those noted, else the one at the place where it ended."""
    ended = lines.get(result.place, "") if result.place else ""
    return result.fired or ((ended,) if ended else ())


def by_line(known: Iterable[Check]) -> dict[tuple[str, int], str]:
    """The name of the check at each line of each file."""
    return {(c.file, line): str(c) for c in known for line in range(c.first, c.last + 1)}


def credit(found: Sequence[Card], known: Iterable[Check]) -> Facts:
    """Give each test and check its cards."""
    tests = list(dict.fromkeys(r.test for card in found for r in card.results))
    caught: dict[str, list[str]] = {test: [] for test in tests}
    alone: dict[str, list[str]] = {test: [] for test in tests}
    guards: dict[str, dict[str, None]] = {}
    deciding: dict[str, list[str]] = {}
    escaped, elsewhere = [], []
    lines = by_line(known)
    for card in found:
        failed = [r for r in card.results if r.outcome == "fail"]
        escaped += [] if failed else [card.id]
        for result in failed:
            caught[result.test].append(card.id)
            alone[result.test] += [card.id] if len(failed) == 1 < len(card.results) else []
            guards.setdefault(result.promise, {})[result.test] = None
            checks = fired(result, lines)
            if not checks:
                elsewhere.append(f"{card.id}: {result.test} at {':'.join(map(str, result.place or ('?',)))}")
            for check in checks:
                deciding.setdefault(check, [])
                deciding[check] += [] if card.id in deciding[check] else [card.id]
    single = {promise: next(iter(by)) for promise, by in guards.items() if len(by) == 1}
    return Facts(caught, alone, single, deciding, escaped, elsewhere)
