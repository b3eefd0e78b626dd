"""The profile of a run on its kernel, and real hosts instead of the lab VM: `--lab FILE` says which."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from offload.card.nic import Feature, features
from offload.card.profile import FEATURES, Profile, find
from offload.debian.kernels import hands_over_tls13
from offload.errors import ConfigError, RigError
from offload.host.base import Side
from offload.suite.bench.lab.bench import RealLab
from offload.suite.bench.lab.source import load_any


def choose(config: pytest.Config) -> None:
    """Take the profile from the lab file, if none was named. UsageError for a wrong file, or two benches."""
    if config.getoption("--attach"):
        raise pytest.UsageError("either --lab FILE or --attach NAME")
    try:
        port = load_any(Path(config.getoption("--lab"))).dut.port
    except ConfigError as exc:
        raise pytest.UsageError(str(exc)) from None
    config.option.profile = config.option.profile or (port.profile if port else "")


def profile_of(config: pytest.Config) -> Profile:
    """What the card promises on the kernel of the run; TLS 1.3 never on real hosts, which have their own."""
    kernel = "" if config.getoption("--lab", "") else config.getoption("--kernel", "")
    return find(config.getoption("--profile")).on(hands_over_tls13(kernel))


def without_offload(side: Side) -> None:
    """RigError if this end's device offloads TLS, or can: what software does there proves nothing."""
    shown = features(side.host, side.dev)
    able = [f"{name} is {shown[name]}" for name in FEATURES.values() if name in shown and offers(shown[name])]
    if able:
        raise RigError(
            f"tests/sw-fallback needs a bench without a NIC that offloads: {side.dev}: {', '.join(able)}",
            "omit --attach, or: ktls-offload lab up --kind veth",
        )


def offers(feature: Feature) -> bool:
    """Say whether a feature is on, or ethtool could switch it on."""
    return feature.active or not feature.fixed


def real(config: pytest.Config, say: Callable[[str], None]) -> Any:
    """Return the bench, open."""
    return RealLab.open(Path(config.getoption("--lab")), say)
