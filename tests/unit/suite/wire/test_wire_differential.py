"""Core and oracle are one verifier: the same document for random captures, good and damaged.

WIRE_CASES=N compares N captures instead of 500; `python -m tests.lib.wiregen.differ` does it for hours.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lib.wiregen.any_case import any_case
from tests.lib.wiregen.engines import both, parting

CHUNKS = 20
CHUNK = max(1, int(os.environ.get("WIRE_CASES", "500")) // CHUNKS)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_both_engines_say_the_same(chunk: int, tmp_path: Path) -> None:
    """The native core and the Python oracle give the same document."""
    seeds = range(chunk * CHUNK, (chunk + 1) * CHUNK)
    for seed, ours, theirs in both(((seed, any_case(seed)) for seed in seeds), tmp_path):
        assert not list(parting(ours, theirs)), f"any_case({seed})"
