"""No false alarm: random captures of correct senders, each equal by both engines.

WIRE_CASES=N asks for N captures instead of 250.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.lib.wiregen.engines import both, parting
from tests.lib.wiregen.good import good_case

CHUNKS = 20
CHUNK = max(1, int(os.environ.get("WIRE_CASES", "250")) // CHUNKS)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_a_good_capture_is_equal(chunk: int, tmp_path: Path) -> None:
    """A capture of a correct sender is equal, by the core as by the oracle."""
    seeds = range(chunk * CHUNK, (chunk + 1) * CHUNK)
    for seed, ours, theirs in both(((seed, good_case(seed)) for seed in seeds), tmp_path):
        assert ours.get("outcome") == "equal", f"good_case({seed}): {ours}"
        assert not list(parting(ours, theirs)), f"good_case({seed})"
