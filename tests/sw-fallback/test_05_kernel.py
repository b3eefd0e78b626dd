"""Without a NIC that offloads, the lab's kernel has the options that every test depends on."""

from __future__ import annotations

from pathlib import Path

import pytest

from offload.debian.kernels import fetch

WANTED = Path(__file__).parents[2] / "ci/kernel.config"


def options(text: str) -> dict[str, str]:
    """The options that a kernel configuration sets."""
    lines = [line for line in text.splitlines() if line.startswith("CONFIG_")]
    return dict(line.split("=", 1) for line in lines)


def test_kernel_has_what_the_tests_need(pytestconfig: pytest.Config) -> None:
    """Without a NIC that offloads each option of ci/kernel.config is set, at least as a module."""
    has = options(fetch(pytestconfig.getoption("--kernel"), say=lambda _: None).config.read_text())
    enough = {"y": ("y",), "m": ("m", "y")}
    missing = {
        k: has.get(k, "not set")
        for k, v in options(WANTED.read_text()).items()
        if has.get(k) not in enough[v]
    }
    assert not missing
