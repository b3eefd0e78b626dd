"""The path of scenarios: its MTU stays while they want it, and is what was found for everything else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, cast

import pytest

from offload.card.profile import find
from tests.lib.scenario import mtu as mtus
from tests.lib.scenario import stand as stands
from tests.lib.scenario.mtu import Mtu, in_turn
from tests.lib.scenario.old import kind
from tests.lib.scenario.space import load
from tests.lib.scenario.stand import Stand

SPACE = load(find("connectx-6-dx"))


class Bench:
    """A path that notes what it is given; one that refuses an MTU."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, refuses: int = 0) -> None:
        self.did, self.refuses = list[Any](), refuses
        monkeypatch.setattr(mtus, "path_mtu", self.path_mtu)
        rig: Any = SimpleNamespace(bench=self)
        self.mtu = Mtu(rig)

    @contextmanager
    def path_mtu(self, bench: Any, mtu: int) -> Iterator[Callable[[], None]]:
        if mtu == self.refuses:
            raise ZeroDivisionError
        self.did.append(mtu)
        yield lambda: self.did.append("forgotten")
        self.did.append(f"not {mtu}")


def test_it_changes_only_when_another_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Between two scenarios that have one, the kernels forget what the first taught them."""
    path = Bench(monkeypatch)
    for wanted in ("1500", "600", "600", "9000", "1500", "1500"):
        path.mtu.at(wanted)
    assert path.did == [600, "forgotten", "not 600", 9000, "not 9000"]


def test_it_is_as_found_at_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once; and the next scenario sets it again."""
    path = Bench(monkeypatch)
    path.mtu.at("600")
    path.mtu.as_found()
    path.mtu.as_found()
    path.mtu.at("600")
    assert path.did == [600, "not 600", 600]


def test_one_that_is_refused_leaves_the_path_as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """And the next scenario asks again."""
    path = Bench(monkeypatch, refuses=9000)
    path.mtu.at("600")
    for _ in range(2):
        with pytest.raises(ZeroDivisionError):
            path.mtu.at("9000")
    path.mtu.at("1500")
    assert path.did == [600, "not 600"]


class Stood(Stand):
    """A stand on such a path, which notes what it opens, closes and puts back."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *kinds: str) -> None:
        path = Bench(monkeypatch)
        self.did = path.did
        nobody: Any = SimpleNamespace(close=lambda *_, **__: self.did.append("closed"))
        switch: Any = SimpleNamespace(restore=lambda: self.did.append("switched back"))
        super().__init__(nobody, nobody, switch, switch, ())
        self.mtu, self.wanted = path.mtu, Counter(kind(SPACE.parse(line)) for line in kinds)
        monkeypatch.setattr(stands, "open_kinds", self.open)

    def open(self, life: Any, kinds: Any) -> dict[Any, Any]:
        self.did.append(len(kinds))
        return {one: [SimpleNamespace(pair=None, software=set())] for one in kinds}


def test_old_connections_are_opened_on_the_path_as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are older than the change. The end of the stand puts path and switches back, in any case."""
    stand = Stood(monkeypatch)
    for line in ("mtu=600", "mtu=600,age=old", "mtu=600,age=old"):
        stand.ready(SPACE.parse(line))
    assert stand.did == [600, "not 600", 1, 600, "forgotten"]
    del stand.did[:]
    stand.renew()
    assert stand.did == ["closed", "not 600", 1], "also after a failure"
    stand.mtu.at("600")
    stand.life = cast(Any, None)
    with pytest.raises(AttributeError):
        stand.end()
    assert stand.did[3:] == [600, "not 600", "switched back", "switched back"]


def test_a_pair_that_was_used_up_comes_back_when_the_path_is_as_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Or when a scenario needs one: the path would change for each, which takes longer than a scenario."""
    lines = ("age=old", "age=old,number=2^8", "age=old,number=2^16")
    stand = Stood(monkeypatch, *lines, *lines)
    assert stand.refill()
    for number in ("2^8", "2^16"):
        scenario = SPACE.parse(f"mtu=600,age=old,number={number}")
        stand.ready(scenario)
        stand.done(scenario)
    assert not stand.refill() and not stand.refill(SPACE.parse("mtu=600,age=old")), "nobody needs them yet"
    assert stand.did == [3, 600, "closed", "forgotten", "closed"]
    assert stand.refill(scenario) and stand.did[5:] == ["not 600", 2]
    stand.ready(scenario)
    stand.done(scenario)
    stand.mtu.as_found()
    assert stand.refill() and not stand.refill()


def test_a_pair_that_no_scenario_needs_any_more_stays_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    """A scenario counts when it begins, once: also if another lab was to have it, or if it runs twice."""
    line = "age=old,number=2^8"
    stand, scenario = Stood(monkeypatch, line, line), SPACE.parse(line)
    assert stand.refill()
    for more in (True, False):
        assert not stand.refill(scenario), "it is there"
        stand.ready(scenario)
        stand.done(scenario)
        assert stand.refill() is more
    stand.ready(scenario)
    assert stand.refill(SPACE.parse("age=old,number=2^16")) and not stand.wanted
    assert stand.did == [1, "closed", 1, "closed", 1, 1]


def test_a_test_opens_no_more_than_its_scenario_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever else is lacking: contexts are counted from its start to its end, also if it runs twice."""
    stand = Stood(monkeypatch, "age=old", "age=old,number=2^8")
    scenario = SPACE.parse("age=old,number=2^16")
    for _ in range(2):
        stand.ready(scenario)
        stand.renew()
        stand.done(scenario)
    assert [what for what in stand.did if isinstance(what, int)] == [1, 1, 1, 1]


def test_scenarios_of_one_path_follow_each_other() -> None:
    """In their own order otherwise, and those that leave the path as it is first."""
    wanted = [SPACE.parse(f"seed={seed},mtu={mtu}") for seed, mtu in enumerate([9000, 1500, 600, 1500, 9000])]
    assert [one.seed for one in in_turn(wanted)] == [1, 3, 2, 0, 4]
