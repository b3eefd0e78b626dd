"""Which tests would a run have? Asked of pytest, before anything is booted."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Sequence

from offload.cmd import run
from offload.errors import CommandFailed, ConfigError
from offload.paths import ROOT
from offload.suite.report.crossed import scenario_of

SUITE, SCENARIOS = "tests/hw", "tests/hw/test_70_scenarios.py"


def each(option: str, values: Iterable[str]) -> list[str]:
    """Return an option once for each of its values."""
    return [word for value in values for word in (option, value)]


def check_scenarios(profile: str, scenarios: Sequence[str]) -> None:
    """ConfigError, in the words of the suite, for a scenario that this card cannot be asked."""
    options = ["-q", "--collect-only", "--no-header", "--profile", profile, *each("--scenario", scenarios)]
    rc, _, err, _ = run([sys.executable, "-m", "pytest", *options, SCENARIOS], timeout=120, cwd=str(ROOT))
    if rc != 0:
        said = err.decode("utf-8", "replace").partition("ERROR: ")[2].strip()
        raise ConfigError(said or "cannot collect the scenarios")


def collect(kernel: str, profile: str, tests: Iterable[str] = ()) -> tuple[str, ...]:
    """Return the ids of the tests that a run with this profile has. CommandFailed if they cannot be read.

    Of the scenarios those of these tests, if there are any.
    """
    options = ["-q", "--collect-only", "--no-header", "--profile", profile, "--kernel", kernel]
    options += each("--scenario", filter(None, map(scenario_of, tests)))
    argv = [sys.executable, "-m", "pytest", *options, SUITE]
    rc, out, err, _ = run(argv, timeout=120, cwd=str(ROOT))
    if rc != 0:
        raise CommandFailed(argv, rc, out, err)
    return tuple(line for line in out.decode("utf-8", "replace").splitlines() if "::" in line)
