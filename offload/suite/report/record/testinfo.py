"""What a test says of itself: its promise, its cell, its evidence, and what a former run found in it."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import pytest

from offload.suite.report import former

EVIDENCE = pytest.StashKey[dict[str, Any]]()
RIG = pytest.StashKey[dict[str, Any]]()
REPLAY = pytest.StashKey[tuple[former.Former, tuple[str, ...]]]()
CONDITIONS = pytest.StashKey[dict[str, Any]]()  # what the scenarios of this run are drawn from (crossed.py)
GUEST = pytest.StashKey[int]()  # process id of the VM that this process tests
NO_RIG: dict[str, Any] = {"rig": {}, "profile": "", "kernel": "", "simulated": False}


class CardSilent(AssertionError):
    """The card is why something broke, in whatever step: the rig and the peer were shown to be alive."""


def former_of(item: pytest.Item) -> Mapping[str, Any] | None:
    """Return what a former run found in this test, if it is repeated."""
    then, wanted = item.config.stash.get(REPLAY, (None, ()))
    return then.tests[item.nodeid] if then is not None and item.nodeid in wanted else None


def promise_of(item: pytest.Item) -> str | None:
    """Return the promise id that a test declares, the nearest marker first."""
    marker = item.get_closest_marker("promise")
    return str(marker.args[0]) if marker and marker.args else None


def cell_of(item: pytest.Item) -> dict[str, Any] | None:
    """Return the cell of the truth table that a test belongs to."""
    marker = item.get_closest_marker("promise")
    params = getattr(getattr(item, "callspec", None), "params", {})
    cell = marker.kwargs.get("cell") if marker and "cell" in marker.kwargs else params.get("cell")
    if dataclasses.is_dataclass(cell) and not isinstance(cell, type):
        return dataclasses.asdict(cell)
    if isinstance(cell, tuple | list):
        cell = dict(zip(("direction", "version", "cipher"), cell, strict=False))
    return dict(cell) if isinstance(cell, Mapping) else None
