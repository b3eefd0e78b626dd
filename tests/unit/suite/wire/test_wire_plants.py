"""Payload in clear is found wherever it is planted; `python -m tests.lib.wiregen.plants` plants 10,000."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lib.wiregen.engines import both, parting
from tests.lib.wiregen.plants import planted

CHUNK = 32


@pytest.mark.parametrize("chunk", range(4))
def test_payload_anywhere_is_never_equal(chunk: int, tmp_path: Path) -> None:
    """Payload at a random place of a random frame is never equal, by either engine."""
    seeds = range(chunk * CHUNK, (chunk + 1) * CHUNK)
    for seed, ours, theirs in both(((seed, planted(seed)) for seed in seeds), tmp_path):
        assert ours["outcome"] != "equal", f"planted({seed})"
        assert not list(parting(ours, theirs)), f"planted({seed})"
