"""What the report counts as crossed: from events alone, by passed scenarios only; hostile events too."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from offload.card.profile import find
from offload.suite.report import crossed, facts
from offload.suite.report.criteria import load
from offload.suite.report.document import build
from offload.suite.report.events import Log
from offload.suite.report.render import crossed_page
from offload.suite.report.verdict import judge
from tests.lib.scenario.space import load as load_space
from tests.unit.suite.report import crossed_documents as made
from tests.unit.suite.report import report_whole

LINE = "seed=7,direction=rx,trouble=lost-tag"


def log(*tests: dict[str, Any], conditions: Any = made.PLAN) -> Log:
    """A run of these scenarios."""
    plan = {"event": "plan", "tests": [], "deselected": [], "conditions": conditions}
    return Log([plan, *tests])


def scenario(met: Any, outcome: str = "pass", line: str = LINE) -> dict[str, Any]:
    head = {"event": "test", "id": f"test_crosses[{line}]", "outcome": outcome, "seconds": 1.0, "reason": ""}
    return head | {"promise": "conditions.crossed", "evidence": made.scenario(met)}


def test_pairs_and_triples_are_counted() -> None:
    """What two scenarios met is covered, what nobody can make is neither possible nor open."""
    found = crossed.section(log(scenario(made.SENT), scenario(made.FORGED)))
    # 6 + 4 + 6 pairs; impossible: one of direction and trouble, and all five with the event `pci`
    assert found["pairs"] == {"covered": 6, "possible": 10, "percent": 60.0, "impossible": 6}
    (triple,) = found["triples"]
    assert (triple["covered"], triple["possible"], triple["impossible"]) == (2, 5, 7)
    assert found["scenarios"] == {"planned": 2, "passed": 2, "failed": 0, "not_made": 0}
    lost = {"trouble": ["lost"]}
    assert found["never"] == [
        {"dimension": "direction", "value": "tx", "with": lost},
        {"dimension": "direction", "value": "rx", "with": {"trouble": ["none", "lost"]}},
        {"dimension": "trouble", "value": "lost", "with": {"event": ["none"]}},
    ]
    whys = {row["value"]: row.get("why", "") for row in found["conditions"]}
    assert (whys["pci"], whys["lost"]) == ("no lab: no machine makes it", "not yet: one day")
    assert found["impossible"] == [
        {"why": "no machine makes it", "pairs": 5},
        {"why": "the peer judges it", "pairs": 1},
    ]


@pytest.mark.parametrize("outcome", ["fail", "skip", "error", "xfail"])
def test_only_what_passed_is_covered(outcome: str) -> None:
    """A scenario that failed, or was not made, covers nothing and is counted as what it is."""
    found = crossed.section(log(scenario(made.SENT, outcome)))
    assert found["pairs"]["covered"] == 0 and len(found["never"]) == 5
    assert found["scenarios"]["not_made" if outcome == "skip" else "failed"] == 1


def test_a_condition_that_was_not_met_is_not_covered() -> None:
    """A value that is missing, unknown or no text covers nothing; the others do."""
    for trouble in ({}, {"trouble": "hail"}, {"trouble": 3}, {"trouble": ["none"]}):
        met = {"direction": "tx", "event": "none", "mood": "good", **trouble}
        assert crossed.section(log(scenario(met)))["pairs"]["covered"] == 1


def test_three_dimensions_are_three() -> None:
    """A plan that names a dimension twice for its triples cannot be read."""
    twice = {**made.PLAN, "triples": [["direction", "event", "direction"]]}
    assert not crossed.section(log(scenario(made.SENT), conditions=twice))


def test_the_shares_are_those_of_the_section() -> None:
    """The bars are held against what the report shows."""
    run = log(scenario(made.SENT), scenario(made.FORGED))
    assert crossed.shares(run) == (made.PLAN["depth"], {"pairs": 60.0, "triples": 40.0})
    assert crossed.shares(log(conditions=None)) is None
    bars = {made.PLAN["depth"]: {"pairs": 60, "triples": 40}}
    assert crossed.short(run, bars) == ""
    bars[made.PLAN["depth"]]["triples"] = 41
    assert "40 % of the possible triples of conditions ran" in crossed.short(run, bars)


@pytest.mark.parametrize(
    ("change", "state", "gap", "words"),
    [
        ({}, "kept", "", ""),
        ({"depth": ""}, "not proved", "conditions not crossed", "only selected scenarios ran"),
        (
            {"depth": "deep"},
            "not proved",
            "conditions not crossed",
            "60 % of the possible pairs .* wants 90",
        ),
        ({"dimensions": 3}, "not proved", "conditions not crossed", "does not record"),
    ],
)
def test_too_little_limits_the_certificate(change: dict[str, Any], state: str, gap: str, words: str) -> None:
    """A run that crossed too little is certified with a limitation, and says what it lacks."""
    events = copy.deepcopy(report_whole.events())
    (plan,) = [event for event in events if event["event"] == "plan"]
    plan["conditions"] |= change
    document = build(_stamped(events), load(), report_whole.FACTS)
    (promise,) = [one for one in document["promises"] if one["id"] == "conditions.crossed"]
    assert (promise["state"], promise["gap"]) == (state, gap)
    assert document["verdict"] == ("certified with limitations" if gap else "certified")
    assert not words or crossed.re.search(words, promise["reason"])


def test_a_failed_scenario_prevents_a_certificate_and_one_not_made_does_not() -> None:
    """Coverage only limits, a failure blocks."""
    for outcome, word in (("fail", "failed"), ("skip", "certified")):
        events = copy.deepcopy(report_whole.events())
        mine = [event for event in events if event.get("promise") == "conditions.crossed"]
        mine[1] |= {"outcome": outcome, "reason": "the rule met no frame"}
        events[-2]["exit"] = int(outcome == "fail")
        verdict = judge(_stamped(events), load(), report_whole.FACTS)
        assert verdict.word == word, verdict.reasons  # one of two is 30 %, and more than quick wants


def _stamped(events: list[dict[str, Any]]) -> Log:
    return Log([event | {"seq": n, "time": "2026-01-02T03:04:05Z"} for n, event in enumerate(events)])


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 9) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=6,
)


# a busy machine makes any example slow
@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow], max_examples=60)
@given(st.sampled_from([*made.PLAN, "met", "scenario"]), JSON)
def test_hostile_events_end_nothing(key: str, value: Any) -> None:
    """Events of a stranger give a section or none, never a traceback."""
    test, plan = scenario(value if key == "met" else made.SENT), {**made.PLAN, key: value}
    if key == "scenario":
        test["evidence"] = {"scenario": value}
    found = crossed.section(log(test, conditions=plan))
    assert not found or found["pairs"]["covered"] <= found["pairs"]["possible"]
    assert list(crossed_page.lines(found)) if found else not crossed_page.page(found)
    crossed.section(log(conditions=value))


def test_too_many_values_are_not_counted() -> None:
    """A plan that would take minutes to count is read as none."""
    many = [str(number) for number in range(160)]
    wide = {**made.PLAN, "dimensions": {"direction": many, "trouble": many, "event": many}}
    assert crossed.section(log(conditions=wide)) == {}
    assert crossed.section(log(conditions={**wide, "triples": [], "dimensions": {"a": many * 4}})) == {}


def test_the_line_of_a_scenario_is_found_in_the_id_of_its_test() -> None:
    """A replay finds the scenario of a failed test, and none in another one."""
    assert crossed.scenario_of(f"tests/hw/test_70_scenarios.py::test_crosses[{LINE}]") == LINE
    drawn = load_space(find("connectx-6-dx")).draw(5).line()
    assert (
        crossed.scenario_of(f"t.py::t[{drawn}]") == drawn
        and crossed.scenario_of("t.py::t[seed=4]") == "seed=4"
    )
    assert not any(
        map(crossed.scenario_of, ("t.py::t", "t.py::t[tx]", "t.py::t[seed=4,x]", "t.py::t[seed=4]x"))
    )


def test_summary_and_page_say_it() -> None:
    """Terminal and page name the share, and what no scenario can make."""
    document = build(log(scenario(made.SENT)), load(), facts.of(find("connectx-6-dx")))
    said = list(crossed_page.lines(document["crossed"]))
    assert said[:2] == ["depth quick: 1 of 2 scenarios passed", "3 of 10 pairs (30 %), 6 impossible"]
    assert "never made: trouble lost, event pci" in said and "--depth standard" in said[-1]
    rows = {
        (row["dimension"], row["value"]): row["words"]
        for row in crossed_page.page(document["crossed"])["rows"]
    }
    assert rows["direction", "rx"] == "trouble none, forged; event none"
    assert rows["event", "pci"] == "no lab: no machine makes it"
