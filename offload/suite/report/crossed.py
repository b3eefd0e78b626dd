"""Which conditions the scenarios of a run have crossed: pairs and triples, covered, possible, impossible.

A pure function of the events: the plan says what could be crossed (`conditions`), and the evidence `scenario`
of each passed test what it met. Both are hostile input, as every event is.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, product
from math import prod
from typing import Any

from offload.suite.report.events import Log

SCENARIO = re.compile(r"\[(seed=\d+(?:,[^\[\],= ]+=[^\[\],= ]+)*)\]\Z")
MOST = 500  # values in all dimensions; conditions.yaml has about 80
MOST_TRIPLES = 20_000  # it has some hundred
Condition = tuple[str, str]
Why = dict[frozenset[Condition], str]
Group = tuple[Condition, ...]  # two or three conditions, in the order of the dimensions


def scenario_of(test: str) -> str:
    """The line of the scenario that a test ran, from its id; empty for any other test."""
    found = SCENARIO.search(test)
    return found[1] if found else ""


@dataclass(frozen=True)
class Conditions:
    """What a plan says of the conditions: the values by dimension, and what is not made, and why."""

    depth: str
    sha256: str
    scenarios: int
    dimensions: Mapping[str, tuple[str, ...]]
    triples: tuple[tuple[str, ...], ...]
    impossible: Mapping[frozenset[Condition], str]
    no_lab: Mapping[frozenset[Condition], str]
    not_yet: Mapping[frozenset[Condition], str]

    @cached_property
    def conditions(self) -> tuple[Condition, ...]:
        """Every value of every dimension."""
        return tuple((name, value) for name, values in self.dimensions.items() for value in values)

    def groups(self, names: Iterable[str]) -> Iterator[Group]:
        """Every combination of the values of some dimensions."""
        order = [name for name in self.dimensions if name in set(names)]
        for values in product(*(self.dimensions[name] for name in order)):
            yield tuple(zip(order, values, strict=True))

    def why_not(self, group: Group) -> str:
        """Why nobody can make these together; empty if somebody can. Every part of the section asks this."""
        if group not in self._whys:
            self._whys[group] = self._why_not(group)
        return self._whys[group]

    @cached_property
    def _whys(self) -> dict[Group, str]:
        return {}

    def _why_not(self, group: Group) -> str:
        alone = (self.no_lab.get(frozenset({one}), "") for one in group)
        together = (self.impossible.get(frozenset(pair), "") for pair in combinations(group, 2))
        return next(filter(None, (*alone, *together)), "")


def plan_of(log: Log) -> Conditions | None:
    """Return what the plan of a run says; None if it says nothing that can be read."""
    plans = (event.get("conditions") for event in log.events if event["event"] == "plan")
    raw = next((plan for plan in plans if isinstance(plan, Mapping)), None)
    if raw is None:
        return None
    try:
        return _read(raw)
    except (AttributeError, KeyError, TypeError, ValueError, IndexError):
        return None


def _read(raw: Mapping[str, Any]) -> Conditions:
    """The same, of a mapping. An error of Python's own if it is not what declared.py wrote."""
    names = {_text(name): tuple(map(_text, values)) for name, values in raw["dimensions"].items()}
    triples = tuple(tuple(map(_text, group)) for group in raw["triples"])
    if sum(map(len, names.values())) > MOST or any(len(set(group)) != 3 for group in triples):
        raise ValueError("too many values, or no triple")
    if sum(prod(len(names[name]) for name in group) for group in triples) > MOST_TRIPLES:
        raise ValueError("too many triples")
    reasons = [_text(why) for why in raw["reasons"]]
    barred: Why = {}
    alone: Why = {}
    later: Why = {}
    for one, value, other, second, why in raw["impossible"]:
        barred[frozenset({(_text(one), _text(value)), (_text(other), _text(second))})] = reasons[why]
    for into, rows in ((alone, raw["no_lab"]), (later, raw["not_yet"])):
        into.update({frozenset({(_text(one), _text(value))}): reasons[why] for one, value, why in rows})
    count = raw["scenarios"]
    if type(count) is not int:
        raise TypeError("scenarios is no number")
    return Conditions(_text(raw["depth"]), _text(raw["sha256"]), count, names, triples, barred, alone, later)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("not text")
    return value[:200]


def met(space: Conditions, tests: Sequence[Mapping[str, Any]]) -> list[Group]:
    """Return what each scenario that passed has met, as far as the space knows it."""
    found = []
    for test in tests:
        scenario = test["evidence"].get("scenario")
        seen = scenario.get("met") if isinstance(scenario, Mapping) else None
        if test["outcome"] == "pass" and isinstance(seen, Mapping):
            found.append(tuple((name, seen[name]) for name in space.dimensions if _known(space, name, seen)))
    return found


def _known(space: Conditions, name: str, seen: Mapping[str, Any]) -> bool:
    return isinstance(seen.get(name), str) and seen[name] in space.dimensions[name]


def shares(log: Log) -> tuple[str, dict[str, float]] | None:
    """The depth of a run, and the percent of possible pairs and triples that it crossed; None without."""
    space = plan_of(log)
    if space is None:
        return None
    rows = met(space, log.results())
    pairs, triples = _sum(_matrix(space, _pairs(rows))), _sum(_triples(space, rows))
    return space.depth, {"pairs": pairs["percent"], "triples": triples["percent"]}


def short(log: Log, bars: Mapping[str, Mapping[str, float]]) -> str:
    """Say how too little was crossed for the depth of the run, by the bars of each; empty if it is enough."""
    found = shares(log)
    if found is None:
        return "the run does not record which conditions were possible"
    depth, reached = found
    if depth not in bars:
        return "only selected scenarios ran"
    for name, bar in bars[depth].items():
        if reached[name] < bar:
            share = f"{reached[name]:g} % of the possible {name} of conditions ran"
            return f"{share}, {depth} wants {bar:g}"
    return ""


def section(log: Log) -> dict[str, Any]:
    """The section of the report; empty for a run without scenarios."""
    space = plan_of(log)
    if space is None:
        return {}
    results = log.results()
    rows = met(space, results)
    pairs = _pairs(rows)
    matrix = _matrix(space, pairs)
    return {
        "depth": space.depth,
        "sha256": space.sha256,
        "scenarios": {"planned": space.scenarios, **_outcomes(results)},
        "pairs": _sum(matrix),
        "triples": _triples(space, rows),
        "dimensions": matrix,
        "conditions": _conditions(space, rows, pairs),
        "impossible": _reasons(space),
        "never": _never(space, pairs),
    }


def _two(space: Conditions) -> Iterator[tuple[str, ...]]:
    yield from combinations(space.dimensions, 2)


def _matrix(space: Conditions, pairs: set[Group]) -> list[dict[str, Any]]:
    """Of each two dimensions, how many pairs are covered."""
    return [{"of": list(names), **_count(space, names, pairs)} for names in _two(space)]


def _triples(space: Conditions, rows: Sequence[Group]) -> list[dict[str, Any]]:
    """Of each three dimensions that the plan names, how many triples are covered."""
    return [{"of": list(n), **_count(space, n, _closed(rows, frozenset(n)))} for n in space.triples]


def _pairs(rows: Iterable[Group]) -> set[Group]:
    """Every pair of conditions that some scenario has met together."""
    return {pair for row in rows for pair in combinations(row, 2)}


def _closed(rows: Iterable[Group], names: frozenset[str]) -> set[Group]:
    """Every group of conditions that some scenario has met in these dimensions."""
    return {tuple(one for one in row if one[0] in names) for row in rows}


def _count(space: Conditions, names: Iterable[str], closed: set[Group]) -> dict[str, Any]:
    """How many combinations of some dimensions are covered, possible and impossible."""
    groups = list(space.groups(names))
    possible = [group for group in groups if not space.why_not(group)]
    covered = sum(group in closed for group in possible)
    return _share(covered, len(possible)) | {"impossible": len(groups) - len(possible)}


def _share(covered: int, possible: int) -> dict[str, Any]:
    share = round(100 * covered / possible, 1) if possible else 100.0
    return {"covered": covered, "possible": possible, "percent": share}


def _sum(counts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Several counts as one."""
    total: Counter[str] = Counter()
    for count in counts:
        total.update({name: count[name] for name in ("covered", "possible", "impossible")})
    return _share(total["covered"], total["possible"]) | {"impossible": total["impossible"]}


def _outcomes(tests: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The scenarios that passed, that failed, and whose conditions were not met."""
    words = Counter(str(test["outcome"]) for test in tests if scenario_of(str(test["id"])))
    return {
        "passed": words["pass"],
        "failed": words["fail"] + words["xfail"] + words["error"],
        "not_made": words["skip"],
    }


def _conditions(space: Conditions, rows: Sequence[Group], pairs: set[Group]) -> list[dict[str, Any]]:
    """Each value: in how many passed scenarios it was met, with how many others, or why it is not made."""
    times = Counter(one for row in rows for one in row)
    found = []
    for one in space.conditions:
        others = [_ordered(space, one, other) for other in space.conditions if other[0] != one[0]]
        possible = [pair for pair in others if not space.why_not(pair)]
        why, kind = space.no_lab.get(frozenset({one}), ""), "no lab"
        if not why:
            why, kind = space.not_yet.get(frozenset({one}), ""), "not yet"
        row = {"dimension": one[0], "value": one[1], "scenarios": times[one]}
        row |= _share(sum(pair in pairs for pair in possible), len(possible))
        found.append(row | ({"why": f"{kind}: {why}"} if why else {}))
    return found


def _ordered(space: Conditions, one: Condition, other: Condition) -> Group:
    names = list(space.dimensions)
    return (one, other) if names.index(one[0]) < names.index(other[0]) else (other, one)


def _reasons(space: Conditions) -> list[dict[str, Any]]:
    """Why pairs are impossible, and how many for each reason."""
    whys = Counter(
        why for names in _two(space) for pair in space.groups(names) if (why := space.why_not(pair))
    )
    return [{"why": why, "pairs": count} for why, count in whys.most_common()]


def _never(space: Conditions, pairs: set[Group]) -> list[dict[str, Any]]:
    """The possible pairs that no passed scenario met: of each value, those of later dimensions, once each."""
    found: dict[Condition, dict[str, list[str]]] = {}
    for names in _two(space):
        for pair in space.groups(names):
            if pair not in pairs and not space.why_not(pair):
                one, (other, value) = pair
                found.setdefault(one, {}).setdefault(other, []).append(value)
    return [{"dimension": one[0], "value": one[1], "with": rest} for one, rest in found.items()]
