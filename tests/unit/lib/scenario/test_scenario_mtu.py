"""The path of scenarios: its MTU stays while they want it, and is what was found for everything else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from offload.card.profile import find
from tests.lib.scenario import mtu as mtus
from tests.lib.scenario import stand as stands
from tests.lib.scenario.mtu import Mtu, in_turn
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


def test_old_connections_are_opened_on_the_path_as_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are older than the change. The end of the stand puts path and switches back, in any case."""
    path = Bench(monkeypatch)
    monkeypatch.setattr(stands, "open_kinds", lambda life, kinds: path.did.extend(kinds) or {})
    monkeypatch.setattr(stands, "kind", lambda scenario: "opened")
    switch: Any = SimpleNamespace(restore=lambda: path.did.append("switched back"))
    nobody: Any = None
    stand = Stand(nobody, nobody, switch, switch, ())
    stand.mtu = path.mtu
    stand.ready(SPACE.parse("mtu=600"))
    stand.ready(SPACE.parse("mtu=600,age=old"))
    assert path.did == [600, "not 600", "opened", 600]
    stand.old = {nobody: [nobody]}
    with pytest.raises(AttributeError):
        stand.end()
    assert path.did[4:] == ["not 600", "switched back", "switched back"]


def test_scenarios_of_one_path_follow_each_other() -> None:
    """In their own order otherwise, and those that leave the path as it is first."""
    wanted = [SPACE.parse(f"seed={seed},mtu={mtu}") for seed, mtu in enumerate([9000, 1500, 600, 1500, 9000])]
    assert [one.seed for one in in_turn(wanted)] == [1, 3, 2, 0, 4]
