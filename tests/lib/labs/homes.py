"""Says which lab of a parallel run has the old connections of a kind: one lab opens them, the others do not.

Eight labs that each opened all 45 kinds of depth standard made 720 connections before their first scenario.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pytest

from tests.lib.scenario.events import SILENCE
from tests.lib.scenario.old import Kind, kind
from tests.lib.scenario.space import Scenario


def silent_labs(labs: int, working: int) -> int:
    """How many labs run silent scenarios first: the first ones, as many as have no turn to work."""
    return max(1, labs - working)


def homes(scenarios: Sequence[Scenario], labs: int, working: int) -> dict[Kind, int]:
    """The number of the lab that has a kind: the kind with most scenarios first, the lab with fewest takes
    it.

    A kind that a silent scenario needs is in a lab that begins with these; if others work meanwhile, they
    have the rest.
    """
    old = [one for one in scenarios if one["age"] == "old"]
    counted = Counter(map(kind, old))
    silent = {kind(one) for one in old if one["event"] in SILENCE}
    among = silent_labs(labs, working)
    load, found = [0] * labs, dict[Kind, int]()
    for one in sorted(counted, key=lambda name: (-counted[name], name)):
        fit = range(among) if one in silent else range(among if labs > working else 0, labs)
        found[one] = min(fit, key=load.__getitem__)
        load[found[one]] += counted[one]
    return found


def by_line(scenarios: Sequence[Scenario], labs: int, working: int) -> Mapping[str, int]:
    """The lab of each scenario that needs old connections, by its line."""
    at = homes(scenarios, labs, working)
    return {one.line(): at[kind(one)] for one in scenarios if one["age"] == "old"}


def at_home(config: pytest.Config, scenarios: Sequence[Scenario]) -> Sequence[Scenario]:
    """The scenarios whose old connections this process' lab has; all, if it runs alone."""
    given = getattr(config, "workerinput", {})
    if not given or not config.getoption("--working"):
        return scenarios
    at = by_line(scenarios, given["workercount"], config.getoption("--working"))
    return [one for one in scenarios if at.get(one.line()) == number(given["workerid"])]


def number(name: str) -> int:
    """The number of a lab that pytest-xdist calls gw3."""
    return int(name.removeprefix("gw"))
