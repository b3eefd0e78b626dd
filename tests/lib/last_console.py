"""pytest plug-in of `ci/again`: a failed test's report ends with what the lab's kernel said last."""

from __future__ import annotations

from collections.abc import Generator

import pytest

TAIL = 20_000  # characters


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Add the console while the lab is still there: a new one begins a new file."""
    report = yield
    rig = (getattr(item, "funcargs", None) or {}).get("rig")
    console = getattr(getattr(rig, "lab", None), "console_text", None)
    if report.failed and console is not None:
        report.sections.append(("console of the lab", console()[-TAIL:]))
    return report
