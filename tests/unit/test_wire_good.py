"""No false alarm: a thousand random captures of correct senders, each equal by both engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lib.wiregen.engines import both, parting
from tests.lib.wiregen.good import good_case

CHUNK = 50


@pytest.mark.parametrize("chunk", range(20))
def test_a_good_capture_is_equal(chunk: int, tmp_path: Path) -> None:
    """Without a NIC a capture of a correct sender is equal, by the core as by the oracle."""
    seeds = range(chunk * CHUNK, (chunk + 1) * CHUNK)
    for seed, ours, theirs in both(((seed, good_case(seed)) for seed in seeds), tmp_path):
        assert ours.get("outcome") == "equal", f"good_case({seed}): {ours}"
        assert not list(parting(ours, theirs)), f"good_case({seed})"
