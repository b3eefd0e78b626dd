"""The order of a parallel run: each test once, silent ones early, a file in one lab, the last one last."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from offload.card.profile import find
from tests.lib.labs.homes import by_line
from tests.lib.labs.order import SILENT, Order, pytest_xdist_make_scheduler
from tests.lib.scenario import events
from tests.lib.scenario.plugin import RUN
from tests.lib.scenario.space import Scenario, load

Began = tuple[int, int, str]  # when, in which lab, which test
SCENARIO = "tests/hw/test_70_scenarios.py::test_scenario_holds[seed={}{}]"


class Config:
    """The options of a run with so many labs."""

    def __init__(self, labs: int, working: int) -> None:
        self.stash: dict[Any, Any] = {}
        self._options = {"tx": [f"{labs}*popen"], "maxschedchunk": None, "--working": working}

    def getoption(self, name: str) -> Any:
        return self._options[name]

    getvalue = getoption


class Lab:
    """A worker that runs what it is given, and the first only when it knows the second or is to end."""

    def __init__(self, number: int) -> None:
        self.given: list[int] = []
        self.shutting_down = False
        self.gateway = SimpleNamespace(id=f"gw{number}")

    def send_runtest_some(self, indices: list[int]) -> None:
        assert not self.shutting_down, "a test after the end"
        self.given += indices

    def shutdown(self) -> None:
        self.shutting_down = True

    def runs(self) -> bool:
        return len(self.given) > 1 or bool(self.given and self.shutting_down)


def began(
    tests: list[str], labs: int, working: int, seconds: Mapping[str, int], wanted: Sequence[Scenario] = ()
) -> list[Began]:
    """Run tests by the clock of their seconds: when each one began, in which lab."""
    order = Order(Config(labs, working), None, wanted)  # type: ignore[arg-type]
    order.log = lambda *_: None  # type: ignore[assignment]
    nodes: list[Any] = [Lab(number) for number in range(labs)]
    for node in nodes:
        order.add_node(node)
        order.add_node_collection(node, tests)
    order.schedule()
    found, until, now = [], dict.fromkeys(range(labs), -1), 0
    while any(node.given for node in nodes):
        for at, node in enumerate(nodes):
            if until[at] < 0 and node.runs():
                found.append((now, at, tests[node.given[0]]))
                until[at] = now + seconds.get(tests[node.given[0]], 1)
        busy = [at for at in until if until[at] >= 0]
        assert busy, "no lab runs anything, and tests are left"
        done = min(busy, key=lambda at: until[at])
        now, until[done] = until[done], -1
        order.mark_test_complete(nodes[done], nodes[done].given.pop(0))
    assert order.tests_finished and not order.has_pending
    return found


def suite(files: int, each: int, plain: int, silent: int) -> list[str]:
    """A suite of files, scenarios, some of them silent, and one test that is to be the last."""
    scenarios = [SCENARIO.format(n, "") for n in range(plain)]
    scenarios += [SCENARIO.format(n, ",event=idle-minute") for n in range(0, silent, 2)]
    scenarios += [SCENARIO.format(n, ",event=idle,age=old") for n in range(1, silent, 2)]
    random.Random(7).shuffle(scenarios)
    ordinary = [f"tests/hw/test_{f}.py::test_{n}" for f in range(files) for n in range(each)]
    return [*ordinary, *scenarios, "tests/hw/test_90_log.py::test_log"]


@settings(deadline=None)  # a busy machine makes any example slow
@given(st.tuples(*(st.integers(0, 9),) * 4), st.integers(2, 6), st.integers(1, 4))
def test_each_test_runs_once(sizes: tuple[int, int, int, int], labs: int, working: int) -> None:
    """However many there are of which kind, and if there are more labs than tests."""
    tests = suite(*sizes)
    seconds = {test: 1 + at * 7 % 5 for at, test in enumerate(tests)}
    assert sorted(test for _, _, test in began(tests, labs, working, seconds)) == sorted(tests)


def test_silent_scenarios_leave_labs_to_work() -> None:
    """They begin at once, the long ones first, in the labs that have no turn; none is left for the end."""
    tests = suite(6, 10, 400, 30)
    seconds = {test: 60 if "minute" in test else 10 if "idle" in test else 3 for test in tests}
    found = began(tests, 6, 3, seconds)
    silent = [(when, at, test) for when, at, test in found if "idle" in test]
    assert len(silent) == 30 and [when for when, _, _ in silent][:3] == [0, 0, 0]
    assert {at for _, at, _ in silent} == {at for _, at, _ in silent[:3]}, "other labs were silent, too"
    for when, at, _ in silent:
        others = {lab for begin, lab, test in silent if begin <= when < begin + seconds[test]} - {at}
        assert len(others) < 3, f"{len(others) + 1} labs are silent at {when}"
    minutes = ["minute" in test for _, _, test in silent]
    assert minutes == sorted(minutes, reverse=True)
    last = max(when + seconds[test] for when, _, test in silent)
    assert last == sum(seconds[test] for _, _, test in silent) / 3, "something else ran between them"
    assert last < max(when + seconds[test] for when, _, test in found) - 10


def test_conditions_that_are_silent_are_those_of_the_scenarios() -> None:
    """The longest silence comes first."""
    longest = sorted(events.SILENCE, key=events.SILENCE.__getitem__, reverse=True)
    assert [f"event={name}" for name in longest] == list(SILENT)


def test_two_labs_run_silent_scenarios_one_at_a_time() -> None:
    """Fewer labs than may work: one is silent, the other one works, and they do not all come at the end."""
    tests = suite(2, 10, 80, 6)
    seconds = {test: 10 if "idle" in test else 1 for test in tests}
    found = began(tests, 2, 3, seconds)
    assert "idle" in found[0][2] and {at for _, at, test in found if "idle" in test} == {0}


def test_tests_of_a_file_stay_in_one_lab() -> None:
    """Files are handed out one by one; only where none is left do labs share one."""
    tests = suite(8, 10, 40, 0)
    found = began(tests, 2, 3, {})
    labs: dict[str, set[int]] = {}
    for _, at, test in found:
        labs.setdefault(test.partition("::")[0], set()).add(at)
    assert list(labs) == list(dict.fromkeys(test.partition("::")[0] for test in tests))
    assert sum(len(at) > 1 for at in labs.values()) == 1 and labs["tests/hw/test_70_scenarios.py"] == {0, 1}


def test_last_test_is_the_last_to_begin() -> None:
    """It looks at what all others left behind."""
    tests = suite(3, 4, 20, 4)
    assert began(tests, 4, 3, {})[-1][2] == tests[-1]


@pytest.mark.parametrize("working", [0, 3])
def test_order_is_for_runs_that_say_how_many_work(working: int) -> None:
    """Other parallel runs keep pytest-xdist's own order."""
    config: Any = Config(2, working)
    config.stash[RUN] = [SPACE.parse("seed=1,age=old")]
    made = pytest_xdist_make_scheduler(config, None)
    assert isinstance(made, Order) == bool(working)
    assert not working or vars(made)["_homes"] == by_line(config.stash[RUN], 2, working)


SPACE = load(find("connectx-6-dx"))


def crossed(old: int, silent: int, plain: int) -> list[Scenario]:
    """Scenarios in mixed order: on old connections of several kinds, silent ones among them, and on new
    ones."""
    kinds = ("ip=v6-extension", "cell=1.2-aes-gcm-256", "number=2^8", "tcp=bare", "number=2^16", "ip=v4")
    lines = [f"seed={n},age=old,{kinds[n % len(kinds)]}" for n in range(old)]
    lines += [f"seed={n},age=old,event=idle-minute,{kinds[n % 3]}" for n in range(100, 100 + silent)]
    lines += [f"seed={n},connections=9" for n in range(200, 200 + plain)]
    random.Random(5).shuffle(lines)
    return [SPACE.parse(line) for line in lines]


@pytest.mark.parametrize(("labs", "working"), [(8, 3), (6, 3), (2, 3), (4, 1)])
def test_old_connections_are_used_in_the_lab_that_has_them(labs: int, working: int) -> None:
    """All of them where every lab has enough else to do."""
    wanted = crossed(40, 6, 300)
    tests = [SCENARIO.format(one.seed, one.line().removeprefix(f"seed={one.seed}")) for one in wanted]
    seconds = {test: 5 if "idle-minute" in test else 1 for test in tests}
    found = began([*tests, "tests/hw/test_90_log.py::test_log"], labs, working, seconds, wanted)
    at = by_line(wanted, labs, working)
    where = {test.partition("[")[2][:-1]: lab for _, lab, test in found}
    assert len(at) == 46 and {line: where[line] for line in at} == dict(at)
    assert len(set(where.values())) == labs


def test_a_lab_takes_another_s_only_if_nothing_else_is_left() -> None:
    """A lab that is late keeps nobody waiting: its scenarios run elsewhere, and each once."""
    wanted = crossed(24, 2, 4)
    tests = [SCENARIO.format(one.seed, one.line().removeprefix(f"seed={one.seed}")) for one in wanted]
    at = by_line(wanted, 2, 1)
    slow = next(test for test in tests if at.get(test.partition("[")[2][:-1]) == 0)
    found = began([*tests, "tests/hw/test_90_log.py::test_log"], 2, 1, {slow: 1000}, wanted)
    assert sorted(test for _, _, test in found) == sorted([*tests, "tests/hw/test_90_log.py::test_log"])
    away = [test for _, lab, test in found if at.get(test.partition("[")[2][:-1], lab) != lab]
    other = [test for _, lab, test in found if lab == 1 and test in tests]
    assert away and other[-len(away) :] == away
