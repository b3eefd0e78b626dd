"""Which lab has the old connections of a kind: one each, evenly, silent ones in the first labs."""

from __future__ import annotations

from collections import Counter
from types import SimpleNamespace
from typing import Any

import pytest

from offload.card.profile import find
from tests.lib.labs.homes import at_home, by_line, homes, number, silent_labs
from tests.lib.scenario.array.covering import array
from tests.lib.scenario.old import kind
from tests.lib.scenario.space import load

PROFILE = find("connectx-6-dx")
SPACE = load(PROFILE)


@pytest.fixture(scope="module")
def standard() -> Any:
    """The scenarios of depth standard."""
    return array("standard", PROFILE)


@pytest.mark.parametrize(("labs", "working"), [(8, 3), (8, 1), (2, 3), (1, 1), (6, 3)])
def test_each_kind_is_in_one_lab_and_labs_have_alike(standard: Any, labs: int, working: int) -> None:
    """Silent labs among each other, and the others too; each kind of a silent scenario is in a silent lab."""
    at = homes(standard, labs, working)
    old = [one for one in standard if one["age"] == "old"]
    assert at.keys() == {kind(one) for one in old} and set(at.values()) == set(range(labs))
    among = silent_labs(labs, working)
    silent = {kind(one) for one in old if one["event"] in ("idle", "idle-minute")}
    assert silent and all(at[one] < among for one in silent)
    assert labs <= working or all(at[one] >= among for one in at.keys() - silent)
    counted = Counter(at[kind(one)] for one in old)
    for several in (range(among), range(among, labs)) if labs > working else (range(labs),):
        loads = [counted[lab] for lab in several]
        assert max(loads) - min(loads) <= 2


def test_places_depend_on_the_scenarios_and_not_on_their_order(standard: Any) -> None:
    """Each process finds them for itself, and all find the same."""
    assert homes(standard, 8, 3) == homes(standard[::-1], 8, 3)


def test_a_line_is_where_its_kind_is() -> None:
    """Scenarios on new connections are at home nowhere."""
    wanted = [SPACE.parse(line) for line in ("seed=1,age=old", "seed=2,age=old,mtu=600", "seed=3")]
    assert set(by_line(wanted, 4, 1)) == {one.line() for one in wanted[:2]}
    assert len(set(by_line(wanted, 4, 1).values())) == 1


def config(working: int, **told: Any) -> Any:
    """The configuration of a test process."""
    made = SimpleNamespace(getoption=lambda name: {"--working": working}[name])
    return SimpleNamespace(**vars(made), workerinput=told) if told else made


def test_a_lab_has_its_own_and_a_run_in_one_lab_has_all(standard: Any) -> None:
    """The labs of a run have everything once, together."""
    labs = [at_home(config(3, workercount=8, workerid=f"gw{n}"), standard) for n in range(8)]
    found = Counter(one.line() for lab in labs for one in lab)
    assert found == Counter(one.line() for one in standard if one["age"] == "old") and all(labs)
    for n, lab in enumerate(labs):
        assert {homes(standard, 8, 3)[kind(one)] for one in lab} == {n}
    assert at_home(config(0), standard) is standard
    assert at_home(config(0, workercount=8, workerid="gw1"), standard) is standard


def test_a_lab_s_number() -> None:
    """As pytest-xdist names them."""
    assert [number("gw0"), number("gw12")] == [0, 12]
