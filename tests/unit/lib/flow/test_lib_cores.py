"""What the suite measures for a figure alone: sizes and windows that a bench can do; no sample is a skip."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from offload.errors import RigError, TimedOut
from offload.suite.measure.plan import FILMS, Setting
from tests.lib.flow import cores
from tests.unit.hw_tests import Tests

GBIT, CRAWL = 125e6, 1e6  # bytes per second


@pytest.mark.parametrize("moves", [CRAWL / 100, CRAWL, GBIT, 100 * GBIT])
@pytest.mark.parametrize("streams", [1, 8, 1024])
def test_each_connection_gets_its_answers(moves: float, streams: int) -> None:
    """A window holds several answers for each connection, or is as long as it may be."""
    (found,), seconds = cores.fitted([Setting("video", "tx", streams, FILMS[0])], 3.0, moves)
    assert found.size is not None and cores.SMALLEST <= found.size <= FILMS[0]
    enough = seconds * moves >= cores.ANSWERS * streams * found.size * 0.999
    assert enough or (seconds, found.size) == (cores.LONGEST, cores.SMALLEST)


def test_a_fast_bench_is_asked_for_what_was_wanted() -> None:
    """A bench of 100 Gbit/s changes nothing; a slow one asks for each size once."""
    wanted = tuple(Setting("nginx", "tx", 8, size) for size in (64 << 10, 1 << 20, 4 << 20))
    assert cores.fitted(wanted, 3.0, 100 * GBIT) == (wanted, 3.0)
    slow, seconds = cores.fitted(wanted, 0.4, CRAWL)
    assert [setting.size for setting in slow] == [16 << 10] and seconds < 1.0


def rig() -> Any:
    """A rig whose testbed is nothing."""
    return SimpleNamespace(bench=None, port=4433, pace=CRAWL)


@pytest.fixture
def testbed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Real hosts, on which nothing is measured."""

    @contextmanager
    def nothing(rig: Any) -> Iterator[Any]:
        yield SimpleNamespace(port=4500)

    monkeypatch.setattr(cores, "played", lambda bench: False)
    monkeypatch.setattr(cores, "testbed_of", nothing)


def raised(monkeypatch: pytest.MonkeyPatch, exc: Exception) -> None:
    """A measurement that ends so."""

    def measure(testbed: Any, plan: Any) -> Any:
        raise exc

    monkeypatch.setattr(cores, "measure", measure)


def test_no_sample_is_a_skip(testbed: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """A bench too slow for a sample skips the test and says so; one that breaks is an error."""
    at = rig()
    raised(monkeypatch, TimedOut("wrk: not one answer in 8 s", "use a larger --seconds"))
    with pytest.raises(pytest.skip.Exception, match="^no sample: wrk: not one answer in 8 s$"):
        cores.measured(at, ("sw",), Setting("video", "tx", 8, FILMS[0]))
    assert at.port == 4500, "a port that was used is not used again"
    raised(monkeypatch, RigError("the connection to dut was lost"))
    with pytest.raises(RigError, match="lost"):
        cores.measured(at, ("sw",), Setting("stream", "tx", 1, None))


def test_what_is_measured_blocks_nothing(hw_tests: Tests) -> None:
    """No required promise rests on a test that such a skip could leave unproved."""
    from offload.suite.report.criteria import load

    files = ("test_50_cpu.py", "test_66_ipsec_cost.py")
    names = ("test_channels_cost", "test_files_cost")
    measuring = {
        test: of
        for test, (of, _) in hw_tests["nicsim"].items()
        if any(part in test for part in (*files, *names))
    }
    assert len(measuring) >= 8
    assert not {test for test, of in measuring.items() if of and load().promises[of].blocker}
