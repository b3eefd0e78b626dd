"""The suite catches each bad card at the promise that it breaks, in words that name the defect."""

from __future__ import annotations

from tests.lib.catalogue.rows import Step
from tests.lib.catalogue.run import Stand


def test_card(stand: Stand, step: Step) -> None:
    """Without this a buyer would get a certificate for a card with this fault, or none for a good one."""
    found = stand.do(step)
    assert not found.problem, f"{found.problem}\n{found.output}"
