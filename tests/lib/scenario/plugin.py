"""Which scenarios tests with the marker `scenarios` run (--depth, --scenario), and what ends after them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from offload.card.profile import find
from offload.errors import ConfigError
from offload.suite.report.crossed import scenario_of
from offload.suite.report.record.testinfo import CONDITIONS, REPLAY
from tests.lib.labs.homes import at_home
from tests.lib.life.life import Contexts
from tests.lib.scenario.array.covering import Depth, array
from tests.lib.scenario.declared import declared
from tests.lib.scenario.mtu import in_turn
from tests.lib.scenario.space import Scenario, load
from tests.lib.scenario.stand import Used, ended

DEPTHS = tuple(str(depth) for depth in Depth)
RUN = pytest.StashKey[tuple[Scenario, ...]]()
ARRAY = "scenarios"  # where a worker of pytest-xdist finds their lines


@pytest.fixture(scope="module")
def used(request: pytest.FixtureRequest) -> Iterator[Used]:
    """The labs on which scenarios ran: the connections that became old there are closed at the end."""
    labs = Used(at_home(request.config, request.config.stash.get(RUN, ())))
    yield labs
    for rig in labs.rigs:
        ended(rig)
        Contexts(rig).forget()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add --depth and --scenario."""
    group = parser.getgroup("ktls-offload rig")
    group.addoption("--depth", choices=DEPTHS, default="quick", help="how much is crossed (default quick)")
    group.addoption(
        "--scenario", action="append", metavar="LINE|SEED", default=[], help="only this one; may be repeated"
    )


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker."""
    config.addinivalue_line("markers", "scenarios: one test per scenario of --depth, as argument `scenario`")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give each lab of a parallel run the scenarios of its depth: to find them takes seconds."""
    if node.config.getoption("--working") and not asked(node.config):
        node.workerinput[ARRAY] = [one.line() for one in chosen(node.config)]


@pytest.hookimpl(tryfirst=True)
def pytest_collection(session: pytest.Session) -> None:
    """Refuse a scenario that cannot be before anything is collected."""
    if session.config.getoption("--scenario"):
        chosen(session.config)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test per scenario."""
    if metafunc.definition.get_closest_marker("scenarios") is None:
        return
    promises = find(metafunc.config.getoption("--profile")).promises
    found = chosen(metafunc.config) if promises else ()
    metafunc.parametrize("scenario", found, ids=[one.line() for one in found])


def chosen(config: pytest.Config) -> tuple[Scenario, ...]:
    """The scenarios of this run; what they are drawn from is kept for the report. UsageError."""
    # not as the kernel has it: connections.py knows the records of TLS 1.2 only, and TLS 1.3 has other places
    try:
        profile = find(config.getoption("--profile"))
        space = load(profile)
        found = tuple(dict.fromkeys(space.parse(line) for line in asked(config)))
        whole = not found
        given = getattr(config, "workerinput", {}).get(ARRAY, ())
        found = found or tuple(map(space.parse, given)) or array(config.getoption("--depth"), profile)
    except ConfigError as exc:
        raise pytest.UsageError(str(exc)) from None
    found = in_turn(found)
    config.stash[RUN] = found
    config.stash[CONDITIONS] = declared(space, config.getoption("--depth") if whole else "", len(found))
    return found


def asked(config: pytest.Config) -> list[str]:
    """The lines that were asked for: by --scenario, or as the tests of a former run."""
    _, again = config.stash.get(REPLAY, (None, ()))
    return [*config.getoption("--scenario"), *filter(None, map(scenario_of, again))]
