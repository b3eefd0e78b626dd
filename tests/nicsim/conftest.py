"""Labs whose card can be made bad, and the hardware suite run against it from outside."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from offload.errors import ConfigError
from tests.lib.catalogue import rows as catalogue
from tests.lib.catalogue.rows import Step
from tests.lib.catalogue.run import Stand
from tests.lib.catalogue.suite import Suite
from tests.lib.rig.rig import Labs


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add what selects rows of the catalogue."""
    group = parser.getgroup("ktls-offload rig")
    group.addoption("--slice", default="", metavar="DATE|all", help="which bad cards: of a day, or all")


def steps_of(config: pytest.Config) -> list[Step]:
    """What is run of the catalogue, good cards in between."""
    kernel = config.getoption("--kernel")
    rows = catalogue.chosen(catalogue.of_kernel(kernel), day(config), kernel)
    return [catalogue.spared(step, day(config)) for step in catalogue.steps(rows)]


def day(config: pytest.Config) -> str:
    """The day whose slice is run, or `all`."""
    try:
        return catalogue.today(config.getoption("--slice"))
    except ConfigError as exc:
        raise pytest.UsageError(str(exc)) from None


def pytest_report_header(config: pytest.Config) -> str:
    """Say which rows are run, and how to run them all."""
    rows = [step.row for step in steps_of(config) if step.row]
    turn = [row.id for row in rows if not row.security]
    every = f"the {len(rows) - len(turn)} that security hangs on, and of {day(config)} {', '.join(turn)}"
    of = len(catalogue.of_kernel(config.getoption("--kernel")))
    return f"bad cards: {len(rows)} of {of}: {every} (--slice all runs every one)"


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Make a test per step."""
    if "step" in metafunc.fixturenames:
        metafunc.parametrize("step", steps_of(metafunc.config), ids=lambda step: step.id)


@pytest.fixture(scope="module")
def stand(
    pytestconfig: pytest.Config, labs: Labs, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stand]:
    """A lab of its own whose card is made bad and good again."""
    labs.close()
    say = pytestconfig.pluginmanager.getplugin("terminalreporter").write_line
    folder, attach = tmp_path_factory.mktemp("catalogue"), pytestconfig.getoption("--attach")
    with Stand(pytestconfig.getoption("--kernel"), folder, partial(say), attach) as found:
        yield found


@pytest.fixture
def suite(pytestconfig: pytest.Config, labs: Labs, tmp_path: Path) -> Iterator[Suite]:
    """The hardware suite against the lab of this run."""
    name = labs.get("nicsim").lab.name
    found = Suite(tmp_path, "connectx-6-dx", pytestconfig.getoption("--kernel"), name)
    yield found
    found.close()
