"""Each kind of damage has its name: outcome, class, field, record and offset, by both engines."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lib.wiregen import any_case  # noqa: F401  (enters every kind)
from tests.lib.wiregen.damage.kinds import KINDS, damaged, missed
from tests.lib.wiregen.engines import both, parting

SEEDS = 2


def test_there_are_enough_kinds() -> None:
    """At least thirty kinds of damage have a name."""
    assert len(KINDS) >= 100


@pytest.mark.parametrize("name", sorted(KINDS))
def test_damage_is_found_and_named(name: str, tmp_path: Path) -> None:
    cases = [(seed, *damaged(name, seed)) for seed in range(SEEDS)]
    wants = {seed: want for seed, _, want in cases}
    for seed, ours, theirs in both(((seed, case) for seed, case, _ in cases), tmp_path):
        assert not list(missed(wants[seed], ours)), f"damaged({name!r}, {seed}), oracle"
        assert not list(missed(wants[seed], theirs)), f"damaged({name!r}, {seed}), core"
        assert not list(parting(ours, theirs)), f"damaged({name!r}, {seed})"
