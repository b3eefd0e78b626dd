"""Shrinking a failing scenario on a card that is made up: the fewest conditions, and no run too many."""

from __future__ import annotations

import pytest

from offload.card.profile import find
from tests.lib.scenario.shrink import shrink
from tests.lib.scenario.space import Scenario, load

SPACE = load(find("connectx-6-dx"))
LINE = (
    "seed=7,cell=1.2-aes-gcm-256,ip=v6,mtu=9000,tso=off,record=16384,connections=9,"
    "trouble=lost-tag,event=toggle"
)

ODD = {"cell": "1.2-aes-gcm-256", "ip": "v6", "mtu": "9000", "record": "16384", "connections": "9"}
ODD |= {"tso": "off", "trouble": "lost-tag", "event": "toggle"}


def fails_with(**wanted: str) -> list[str]:
    """A card that fails under exactly these conditions: the lines that were run on it."""
    ran: list[str] = []

    def fails(scenario: Scenario) -> str:
        ran.append(scenario.line())
        return "broken" if all(scenario[name] == value for name, value in wanted.items()) else ""

    found = shrink(SPACE.parse(LINE), "first", fails, SPACE)
    assert found.runs == len(ran) and SPACE.allows(found.scenario)
    return [found.scenario.line(), found.words, str(found.runs)]


def test_what_fails_everywhere_has_no_condition_left() -> None:
    """One run tells it."""
    assert fails_with() == ["seed=7", "broken", "1"]


@pytest.mark.parametrize(("name", "value"), sorted(ODD.items()))
def test_one_condition_of_eight_is_found_in_seven_runs(name: str, value: str) -> None:
    """Half of what is left goes at once, and no scenario is run twice."""
    line, _, runs = fails_with(**{name: value})
    assert line == f"seed=7,{name}={value}" and int(runs) <= 7


def test_a_crossing_of_two_is_found() -> None:
    wanted = {"cell": "1.2-aes-gcm-256", "trouble": "lost-tag"}
    assert fails_with(**wanted)[0] == "seed=7,cell=1.2-aes-gcm-256,trouble=lost-tag"


def test_what_fails_once_only_stays_as_it_was() -> None:
    assert fails_with(event="never") == [LINE, "first", "15"]


def test_no_more_runs_than_asked_for() -> None:
    ran: list[Scenario] = []

    def fails(scenario: Scenario) -> str:
        ran.append(scenario)
        return "broken" if scenario["event"] == "toggle" else ""

    found = shrink(SPACE.parse(LINE), "first", fails, SPACE, tries=2)
    assert (len(ran), found.runs) == (2, 2) and found.scenario.line() != LINE
    assert found.scenario["event"] == "toggle" and found.scenario["cell"] == "1.2-aes-gcm-128"


def test_a_plainer_scenario_that_nobody_makes_is_not_tried() -> None:
    line = "seed=7,record=16,place=hundreds-in-tso"

    def fails(scenario: Scenario) -> str:
        assert scenario["record"] == "16" or scenario["place"] == "plain", scenario.line()
        return "broken" if scenario["place"] != "plain" else ""

    assert shrink(SPACE.parse(line), "first", fails, SPACE).scenario.line() == line


def test_what_something_else_needed_goes_when_that_is_gone() -> None:
    """`record` comes before `place`, which needs it: both are plain at the end."""
    line = "seed=7,cell=1.2-aes-gcm-256,record=16,place=many-in-frame,trouble=reorder"
    found = shrink(SPACE.parse(line), "first", lambda one: str(one["cell"] != "1.2-aes-gcm-128" or ""), SPACE)
    assert found.scenario.line() == "seed=7,cell=1.2-aes-gcm-256"
    found = shrink(SPACE.parse(line), "first", lambda one: "x" * (one["trouble"] == "reorder"), SPACE)
    assert found.scenario.line() == "seed=7,trouble=reorder"
