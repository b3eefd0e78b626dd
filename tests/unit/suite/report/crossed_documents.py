"""What a run may say of its conditions, for tests of the report: three dimensions, two scenarios."""

from __future__ import annotations

from typing import Any

PLAN: dict[str, Any] = {
    "depth": "quick",
    "sha256": "c" * 64,
    "scenarios": 2,
    "dimensions": {
        "direction": ["tx", "rx"],
        "trouble": ["none", "lost", "forged"],
        "event": ["none", "pci"],
    },
    "triples": [["direction", "trouble", "event"]],
    "impossible": [["direction", "tx", "trouble", "forged", 0]],
    "not_yet_with": [],
    "no_lab": [["event", "pci", 1]],
    "not_yet": [["trouble", "lost", 2]],
    "reasons": ["the peer judges it", "no machine makes it", "one day"],
}
SENT = {"direction": "tx", "trouble": "none", "event": "none"}
FORGED = {"direction": "rx", "trouble": "forged", "event": "none"}


def scenario(met: dict[str, str]) -> dict[str, Any]:
    """The evidence of a test that met these conditions."""
    return {"scenario": {"line": "seed=1", "seed": 1, "depth": "quick", "met": met, "not_met": []}}
