"""A bench of real hosts instead of the lab VM: `--lab FILE` says which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offload.errors import ConfigError
from offload.lab.bench import RealLab
from offload.lab.source import load_any


def choose(config: pytest.Config) -> None:
    """Take the profile from the lab file, if none was named. UsageError for a wrong file, or two benches."""
    if config.getoption("--attach"):
        raise pytest.UsageError("either --lab FILE or --attach NAME")
    try:
        port = load_any(Path(config.getoption("--lab"))).dut.port
    except ConfigError as exc:
        raise pytest.UsageError(str(exc)) from None
    config.option.profile = config.option.profile or (port.profile if port else "")


def real(config: pytest.Config, say: Callable[[str], None]) -> Any:
    """Return the bench, open."""
    return RealLab.open(Path(config.getoption("--lab")), say)
