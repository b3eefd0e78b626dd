"""For all unit tests: small children, and temporary files in memory where there is room for them."""

from __future__ import annotations

import gc
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from offload.card import profile
from tests.lib.rig import warm_pytest

if TYPE_CHECKING:
    from tests.unit import hw_tests as collected

# labgrid's: pyproject.toml leaves it out for this project alone; both take most of the time of a small child
LEFT_OUT = "-p no:labgrid -p no:hypothesispytest -p no:unraisableexception"
MEMORY, ROOM = "/dev/shm", 1 << 30  # a run writes 80 MiB
PREFIX, OLD = "ktls-unit-", 3600  # seconds: what a failed or killed run left goes after an hour

SHIPPED = Path(__file__).parents[2] / "nic-profiles"

os.environ["PYTEST_ADDOPTS"] = LEFT_OUT
really_load = profile.load


@cache
def shipped(file: Path, _: Path) -> profile.Profile:
    """A profile of ours, read once for each current folder, which its path depends on: it is frozen."""
    return really_load(file)


def load_once(path: str | Path) -> profile.Profile:
    """What stands for profile.load: thousands of calls read the same dozen files, 4 ms each."""
    file = Path(path)
    return shipped(file, Path.cwd()) if file.parent == SHIPPED else really_load(path)


profile.load = load_once


@pytest.fixture
def pytester(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """Loads no more than we do: a worker has no plug-in of Hypothesis, and one that begins breaks it."""
    monkeypatch.setenv("PYTEST_ADDOPTS", LEFT_OUT)
    return pytester


@pytest.fixture(scope="session")
def warm_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Python that knows only `-m pytest`, for tests that start many: it starts in a tenth of the time."""
    with warm_pytest.warm(tmp_path_factory.mktemp("warm")) as program:
        yield program


@pytest.fixture(scope="session")
def hw_tests(tmp_path_factory: pytest.TempPathFactory) -> collected.Tests:
    """Every test of tests/hw by profile, with its promise and needs; collected once for all workers."""
    from tests.unit import hw_tests as collected  # not on Python 3.9

    return collected.shared(tmp_path_factory.getbasetemp())


def fit(place: str) -> bool:
    """Whether tests may write there, and start what they wrote: in many containers it is small and noexec."""
    try:
        found = os.statvfs(place)
    except OSError:
        return False
    free = found.f_bavail * found.f_frsize
    return free >= ROOM and not found.f_flag & os.ST_NOEXEC and os.access(place, os.W_OK)


def age(folder: Path) -> float:
    """Seconds since another run's folder has changed; 0 if that run ends at this moment and takes it away."""
    try:
        return time.time() - folder.stat().st_mtime
    except FileNotFoundError:
        return 0


def pytest_configure(config: pytest.Config) -> None:
    """Let no fsync wait for a disk. The folder goes unless a test failed; its workers are told of it."""
    if hasattr(config, "workerinput") or config.option.basetemp or not fit(MEMORY):
        return
    for old in Path(MEMORY).glob(f"{PREFIX}*"):
        if age(old) > OLD:
            shutil.rmtree(old, ignore_errors=True)
    folder = config.option.basetemp = tempfile.mkdtemp(prefix=PREFIX, dir=MEMORY)
    config.add_cleanup(lambda: shutil.rmtree(folder) if not failed(config) else None)


@pytest.hookimpl(trylast=True)
def pytest_collection_finish() -> None:
    """Let the collector pass by what stays to the end, which takes a tenth of the run's processor time."""
    gc.collect()
    gc.freeze()


def failed(config: pytest.Config) -> int:
    """How many tests failed, or broke; 1 if nobody counted."""
    reporter = config.pluginmanager.getplugin("terminalreporter")
    return sum(len(reporter.stats.get(word, ())) for word in ("failed", "error")) if reporter else 1
