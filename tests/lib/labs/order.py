"""Chooses the next test of each lab in a parallel run: silent scenarios early, a file's tests in one lab.

A silent scenario keeps its lab for up to a minute, and needs no processor in it. The silent ones begin at
once, in as many labs as have no turn to work (turns.py). So no lab waits for one at the end of the run.
A scenario on old connections runs in the lab that has them (homes.py); another lab takes it only if nothing
else is left.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import pytest
from xdist.scheduler import LoadScheduling

from offload.suite.report.crossed import scenario_of
from tests.lib.labs.homes import by_line, number, silent_labs
from tests.lib.scenario.plugin import RUN
from tests.lib.scenario.space import Scenario

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

SILENT = ("event=idle-minute", "event=idle")  # the conditions in which nothing is sent, the longest first
AHEAD = 2  # tests that a lab has: the one that runs, and the next, without which pytest does not begin it


class Order(LoadScheduling):
    """Hands out one test at a time, and the last one of the suite when no other is left."""

    def __init__(self, config: pytest.Config, log: Any, scenarios: Sequence[Scenario] = ()) -> None:
        """`scenarios`: those of the whole run, which say what lab has which old connections."""
        super().__init__(config, log)
        self._working = config.getoption("--working")
        self._homes = by_line(scenarios, self.numnodes, self._working)
        self._at: dict[WorkerController, str] = {}  # the file that a lab has begun

    def check_schedule(self, node: WorkerController, duration: float = 0) -> None:
        """Give a lab its next test; let it end if there is none."""
        if self.pending and not node.shutting_down:
            self._send_tests(node, AHEAD)
        elif not node.shutting_down:
            node.shutdown()

    def _send_tests(self, node: WorkerController, num: int) -> None:
        """Give a lab so many tests, but never more than one beyond the one that it runs."""
        for _ in range(min(num, AHEAD - len(self.node2pending[node]), len(self.pending))):
            index = self._next(node)
            self.pending.remove(index)
            self.node2pending[node].append(index)
            node.send_runtest_some([index])

    def _next(self, node: WorkerController) -> int:
        """The next test of a lab: a silent one in a lab for these, else one of its file."""
        left = self._at_home(node, self.pending[:-1] or self.pending)
        silent = sorted((index for index in left if index in self._silent), key=self._silent.__getitem__)
        if silent and number(node.gateway.id) < silent_labs(self.numnodes, self._working):
            return silent[0]
        return self._of_a_file(node, [index for index in left if index not in self._silent] or silent)

    def _at_home(self, node: WorkerController, left: Sequence[int]) -> Sequence[int]:
        """Those for which this lab need open nothing; all if there are none."""
        here = number(node.gateway.id)
        return [index for index in left if self._home.get(index, here) == here] or left

    def _of_a_file(self, node: WorkerController, left: Sequence[int]) -> int:
        """The next test of the file that a lab is at, of one that nobody has begun, or of the longest."""
        files = [self._files[index] for index in left]
        if self._at.get(node) not in files:
            fresh = [name for name in files if name not in self._at.values()]
            self._at[node] = fresh[0] if fresh else max(files, key=files.count)
        return left[files.index(self._at[node])]

    @cached_property
    def _files(self) -> list[str]:
        """The file of each test."""
        return [test.partition("::")[0] for test in self.collection or []]

    @cached_property
    def _home(self) -> dict[int, int]:
        """The lab that has the old connections of a test's scenario."""
        lines = map(scenario_of, self.collection or [])
        return {at: self._homes[line] for at, line in enumerate(lines) if line in self._homes}

    @cached_property
    def _silent(self) -> dict[int, int]:
        """The tests that run a silent scenario, and the place of its condition in SILENT."""
        lines = [scenario_of(test).split(",") for test in self.collection or []]
        return {at: SILENT.index(word) for at, line in enumerate(lines) for word in line if word in SILENT}


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Order | None:
    """Hand out tests in this order if the run says how many labs work at once."""
    return Order(config, log, config.stash.get(RUN, ())) if config.getoption("--working") else None
