"""Connections that are older than the scenarios that use them: two of each kind, opened before the first."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass

from tests.lib.impair import shapes_path as path
from tests.lib.life.life import Life
from tests.lib.scenario.connections import Line, obeyed, opened
from tests.lib.scenario.layout import first_number
from tests.lib.scenario.setting import buffers, listening, tcp, version
from tests.lib.scenario.space import Scenario, cell_of
from tests.lib.scenario.troubles import FORGED

OLD = 2  # connections of each kind


@dataclass(frozen=True, order=True)
class Kind:
    """What nobody changes later: TCP's settings, cell, IP, listener's options, the first record's number."""

    tcp: tuple[tuple[str, int], ...]
    cell: str
    family: int
    options: tuple[tuple[int, int, str], ...]
    number: int


def kind(scenario: Scenario) -> Kind:
    """The kind of old connections that a scenario needs."""
    if scenario["tcp"] == "sack-live":  # the wire makes it so, on a connection like any other
        scenario = scenario.plainer("tcp")
    settings = tuple(sorted(tcp(scenario).items()))
    family, options = version(scenario["ip"]), listening(scenario)
    return Kind(settings, scenario["cell"], family, options, first_number(scenario))


def spent(scenario: Scenario) -> bool:
    """Whether its old connections serve no other: one is dead, or a number was carried over."""
    return scenario["number"] != "0" or scenario["trouble"].startswith(FORGED)


def open_kinds(life: Life, kinds: Iterable[Kind]) -> dict[Kind, list[Line]]:
    """Open the connections of these kinds."""
    found: dict[Kind, list[Line]] = {}
    for settings, several in itertools.groupby(sorted(kinds), key=lambda one: one.tcp):
        with ExitStack() as undo:
            if settings:
                undo.enter_context(path.tcp_settings(life.rig.bench, **dict(settings)))
            for one in several:
                cell, alike = cell_of(one.cell, "tx"), {"family": one.family, "number": one.number}
                found[one] = opened(life, OLD, cell, **alike, options=one.options)
    lines = [line for several in found.values() for line in several]
    for line in lines:
        line.old = True
    if lines:
        obeyed(buffers(lines))
    return found
