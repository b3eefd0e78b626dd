"""pytest plug-in of `ci/again`: what the kernel said last when a test failed; and did every test run?"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import pytest

TAIL = 20_000  # characters
LOST = pytest.StashKey[str]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the console while the lab is still there: a new one begins a new file."""
    report = yield
    rig = (getattr(item, "funcargs", None) or {}).get("rig")
    console = getattr(getattr(rig, "lab", None), "console_text", None)
    if report.failed and console is not None:
        report.sections.append(("console of the lab", console()[-TAIL:]))
    return report


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any, error: object) -> None:
    """Note a worker of a parallel run that crashed: it took the tests along that it had not come to."""
    if error:
        node.config.stash[LOST] = str(error)


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Then this is no run in which tests failed, which could be repeated: it is a run that broke."""
    if LOST in session.config.stash:
        session.exitstatus = pytest.ExitCode.INTERNAL_ERROR
