"""The suite that stays up imports the plug-ins of tests/hw in another order than pytest does."""

from __future__ import annotations

import subprocess
import sys

from offload.paths import ROOT

IMPORTED = """
import sys
import tests.lib.catalogue.plugin
before = dict(sys.modules)
from tests.conftest import pytest_plugins
early = [before[name] for name in pytest_plugins if name in before]
assert early, "no plug-in came early: this test tests nothing"
print(*(one.__name__ for one in early if "PYTEST_DONT_REWRITE" not in (one.__doc__ or "")))
"""


def test_its_early_plugins_are_not_rewritten() -> None:
    """pytest refuses a plug-in that was imported before conftest names it, unless it says so."""
    argv = [sys.executable, "-c", IMPORTED]
    said = subprocess.run(argv, cwd=ROOT, capture_output=True, text=True, check=True)
    assert said.stdout.split() == []
