"""The arrays of scenarios: each depth crosses what it says, begins with the one before, and is steady."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations
from pathlib import Path

import pytest

from offload.card.profile import find
from offload.suite.report import crossed
from offload.suite.report.criteria import load as criteria
from tests.lib.scenario.array.covering import FIRST, Depth, array, halves, pairs, triples
from tests.lib.scenario.declared import declared
from tests.lib.scenario.space import Scenario, load
from tests.unit.suite.report.test_report_crossed import log, scenario

CARDS = ("connectx-6-dx", "chelsio-t6")
ROOT = Path(__file__).parents[4]


def rows(depth: Depth, card: str) -> tuple[Scenario, ...]:
    return array(depth, find(card))


@pytest.mark.parametrize("card", CARDS)
def test_each_depth_crosses_what_it_says(card: str) -> None:
    """Standard meets all pairs, each in both halves of the card; deep the triples too, quick a fifth of the
    pairs."""
    space = load(find(card))
    twos, threes = pairs(space), triples(space)
    met = {
        depth: {two for row in rows(depth, card) for two in combinations(row.values, 2)} for depth in Depth
    }
    deep = {three for row in rows(Depth.DEEP, card) for three in combinations(row.values, 3)}
    assert met[Depth.STANDARD] >= set(twos)
    for half, both in (("tx", ("tx", "both")), ("rx", ("rx", "both"))):
        mine = [row.values for row in rows(Depth.STANDARD, card) if row["direction"] in both]
        wanted = {(one, other) for (_, of), one, other in halves(space) if of == half}
        assert {two for values in mine for two in combinations(values, 2)} >= wanted
        assert bool(wanted) == (half in find(card).directions())
    assert deep >= set(threes)
    assert len(met[Depth.QUICK] & set(twos)) > len(twos) // 5
    assert all(space.allows(row) for row in rows(Depth.DEEP, card))


@pytest.mark.parametrize("card", CARDS)
def test_each_depth_begins_with_the_one_before(card: str) -> None:
    """Whoever goes deeper repeats what was seen, and each scenario is there once."""
    quick, standard, deep = (rows(depth, card) for depth in Depth)
    assert len(quick) == FIRST and quick == standard[:FIRST] and standard == deep[: len(standard)]
    assert len({row.values for row in deep}) == len(deep)


def test_the_quick_set_forges_and_has_nothing_slow() -> None:
    """The shortest run forges a tag and a body, and opens few connections."""
    space, quick = load(find(CARDS[0])), rows(Depth.QUICK, CARDS[0])
    assert {"forged-tag", "forged-body"} <= {row["trouble"] for row in quick}
    assert "carrier" in {row["event"] for row in quick}
    assert space.slow == {
        ("connections", "130"),
        ("connections", "260"),
        ("event", "idle"),
        ("event", "idle-minute"),
    }
    assert all(space.slow.isdisjoint(row.values) for row in quick)


@pytest.mark.parametrize("card", CARDS)
def test_the_quick_set_has_what_tests_of_one_shape_had(card: str) -> None:
    """Each direction meets both odd MTUs, records within a segment, no options, and SACK with a loss."""
    quick = rows(Depth.QUICK, card)
    for direction in find(card).directions():
        mine = [row for row in quick if row["direction"] in (direction, "both")]
        assert {row["mtu"] for row in mine} == {"600", "1500", "9000"}
        assert {"1", "16", "16383"} & {row["record"] for row in mine}
        assert any(row["tcp"] == "bare" and row["trouble"] != "none" for row in mine)
        assert any(row["tcp"] == "sack-live" and row["trouble"] != "none" for row in mine)


@pytest.mark.parametrize("card", CARDS)
def test_there_are_few(card: str) -> None:
    """An array is not much longer than the two largest dimensions ask for."""
    sizes = sorted(len(values) for values in load(find(card)).made.values())
    assert len(rows(Depth.STANDARD, card)) <= 1.1 * sizes[-1] * sizes[-2]


def test_another_process_makes_the_same() -> None:
    """The arrays hang on nothing but the data: not on the order of a set, nor on the clock."""
    program = (
        "from offload.card.profile import find\nfrom tests.lib.scenario.array.covering import array\n"
        "print(*(row.line() for row in array('quick', find('connectx-6-dx'))), sep='\\n')"
    )
    said = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert said.stdout.split() == [row.line() for row in rows(Depth.QUICK, CARDS[0])]


def test_every_possible_triple_of_the_report_can_be_made() -> None:
    """A triple is impossible only if a pair in it is: so the report counts (crossed.py)."""
    whole = load(find(CARDS[0])).some_day()
    twos, threes = pairs(whole), triples(whole)
    for group in whole.triples:
        order = [name for name in whole.made if name in group]
        for values in _products(whole.made, order):
            three = tuple(zip(order, values, strict=True))
            assert (three in threes) == all(two in twos for two in combinations(three, 2)), three


def _products(made: dict[str, tuple[str, ...]], order: list[str]) -> list[tuple[str, ...]]:
    one, other, third = (made[name] for name in order)
    return [(a, b, c) for a in one for b in other for c in third]


@pytest.mark.parametrize("card", CARDS)
def test_the_arrays_reach_the_bars(card: str) -> None:
    """Each depth reaches its bar on each card if all its scenarios pass, with some to spare."""
    for depth, bars in criteria().promises["conditions.crossed"].crossed.items():
        made = rows(Depth(depth), card)
        plan = declared(load(find(card)), depth, len(made))
        said, shares = crossed.shares(
            log(*(scenario(dict(row.values)) for row in made), conditions=plan)
        ) or ("", {})
        assert said == depth and all(shares[name] > bar + 2 for name, bar in bars.items()), (card, shares)
