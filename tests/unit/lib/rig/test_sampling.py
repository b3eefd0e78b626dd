"""--sample: what a stage leaves out today has its turn, and no promise of a card is left out whole."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.suite.report.criteria import Criterion, Level
from tests import conftest
from tests.lib.rig import sampling


def criterion(name: str, **keys: Any) -> Criterion:
    """A promise that a certificate requires, by one test, unless told otherwise."""
    base = {"title": name, "blocker": True, "applies": "always", "tests": 1, "cells": None, "levels": {}}
    return Criterion(name, **(base | keys))


CELLS = [("tx", "1.2", "aes-gcm-128"), ("tx", "1.3", "aes-gcm-128")]


def item(name: str, promise: str | None, turns: str = "", once: str = "", **params: Any) -> Any:
    """A collected test, as far as sampling looks at it."""
    said = {"promise": promise, "turns": turns, "once": once}
    marks = {word: SimpleNamespace(args=(arg,), kwargs={}) for word, arg in said.items() if arg}
    return SimpleNamespace(
        nodeid=f"tests/hw/test_x.py::{name}",
        path=Path("tests/hw/test_x.py"),
        callspec=SimpleNamespace(params=params),
        get_closest_marker=marks.get,
    )


ITEMS = [item(f"payload-{n}-{cell}", "payload.tx", cell=cell) for cell in CELLS for n in range(3)]
ITEMS += [
    item(f"life-{n}-{direction}", "lifecycle.many", direction=direction)
    for direction in ("tx", "rx")
    for n in range(2)
]
ITEMS += [item(f"none-{n}", None) for n in range(4)]


CRITERIA = {
    "payload.tx": criterion("payload.tx", cells="promised"),
    "payload.rx": criterion("payload.rx", tests=3),
    "counters": criterion("counters", levels={"percent": Level(min=90)}),
    "nice": criterion("nice", blocker=False),
    "crossed": criterion("crossed", unproved="limits"),
}
RUN = [
    *ITEMS,
    *(item(f"receives-{n}", "payload.rx") for n in range(5)),
    *(item(f"counts-{n}", "counters") for n in range(3)),
    *(item(f"{name}-{n}", name) for name in ("nice", "crossed") for n in range(2)),
]


def kinds(items: list[Any]) -> set[str]:
    """What these tests say something of."""
    return {sampling.kind_of(one) for one in items}


def test_each_is_one_test_of_each_promise_cell_and_direction() -> None:
    """No day leaves out a promise, a cell of it or a direction, and each day takes one test."""
    for day in range(12):
        found = sampling.one_of_each(ITEMS, day)
        assert len(found) == len(kinds(ITEMS)) == len(kinds(found)) == 5
        assert found == [one for one in ITEMS if one in found], "in the order in which they were collected"


def test_each_test_has_its_day() -> None:
    """As many days as a promise has tests run them all."""
    ran = {one.nodeid for day in range(4) for one in sampling.one_of_each(ITEMS, 739_000 + day)}
    assert ran == {one.nodeid for one in ITEMS}


def test_promises_leaves_out_nothing_that_is_no_promise() -> None:
    """Tests that no promise has run each day, those of a promise take turns as with `each`."""
    each, found = sampling.sampled(ITEMS, "each"), sampling.sampled(ITEMS, "promises")
    none = [one for one in ITEMS if sampling.promise_of(one) is None]
    assert len(none) == 4 and [one for one in found if one not in none] == [o for o in each if o not in none]
    assert [one for one in found if one in none] == none


def test_those_that_take_turns_have_their_day() -> None:
    """One test of a name each day, of whichever file, each one soon; what has no name runs each day."""
    items = [item(f"boot-{n}", None, "boot") for n in range(3)] + [item("rest", None)]
    items[1].path = Path("tests/hw/test_y.py")
    ran = [sampling.one_of_each(items, day, rest=True) for day in range(739_000, 739_003)]
    assert all(len(found) == 2 and items[3] in found for found in ran)
    assert {one.nodeid for found in ran for one in found} == {one.nodeid for one in items}


def test_a_day_asks_each_promise_what_kernels_differ_in() -> None:
    """What is the same on every kernel stays out; of the rest no promise, cell or direction ever does."""
    same = [item(f"same-{n}", "same.everywhere", once="yes") for n in range(3)]
    days = [sampling.sampled([*ITEMS, *same], f"2026-11-{day}") for day in range(10, 24)]
    assert all(kinds(day) == kinds(ITEMS) and len(day) == len(kinds(day)) for day in days)
    assert {one.nodeid for day in days for one in day} == {one.nodeid for one in ITEMS}


def test_no_day_is_a_usage_error() -> None:
    """A word that is no day is said to be none."""
    with pytest.raises(pytest.UsageError, match='"eech": wanted each, promises, required, today, or a date'):
        sampling.sampled(ITEMS, "eech")


def test_required_is_what_the_criteria_ask() -> None:
    """Each cell, as many tests as are asked, all that may measure a level; nothing that is optional."""
    for day in range(12):
        found = [one.nodeid.partition("::")[2] for one in sampling.of_required(RUN, day, CRITERIA)]
        count = {name: sum(one.startswith(name) for one in found) for name in ("payload", "rec", "counts")}
        assert len(found) == 8 and count == {"payload": 2, "rec": 3, "counts": 3}, (day, found)
        assert len({one.partition("(")[2] for one in found if one.startswith("payload")}) == 2


def test_required_takes_turns() -> None:
    days = [sampling.of_required(RUN, 739_000 + day, CRITERIA) for day in range(5)]
    assert {one.nodeid for day in days for one in day} == {
        one.nodeid for one in RUN if one.nodeid.partition("::")[2].startswith(("payload", "rec", "counts"))
    }


@pytest.mark.parametrize("word", ["each", "promises", "required"])
def test_a_word_may_have_its_day(word: str) -> None:
    """A run of another day can be repeated."""
    items = [item(f"sends-{n}", "payload.tx") for n in range(3)]
    days = [sampling.sampled(items, f"{word}:2026-11-{day}") for day in (20, 21, 22, 23)]
    assert [len(day) for day in days] == [1] * 4 and days[0] == days[3] != days[1] != days[2]


def test_what_a_sample_leaves_out_is_reported() -> None:
    """A report of a sample names what was not run, so that nobody takes it for the whole."""
    items, reported = [item(f"sends-{n}", None) for n in range(9)], list[Any]()
    config = SimpleNamespace(
        getoption=lambda name, *_: {"--profile": "connectx-6-dx", "--sample": "2026-11-23"}.get(name, ""),
        hook=SimpleNamespace(pytest_deselected=lambda items: reported.extend(items)),
    )
    whole = list(items)
    conftest.pytest_collection_modifyitems(config, items)  # type: ignore[arg-type]
    assert items and reported and [one for one in whole if (one in items) == (one in reported)] == []
