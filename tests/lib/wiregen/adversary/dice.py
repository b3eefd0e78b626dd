"""Choices of the hostile card: drawn by Hypothesis, so that a finding shrinks to the smallest one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any, TypeVar

from hypothesis import strategies as st

T = TypeVar("T")


class Dice:
    """Draws from Hypothesis; long contents come from a drawn seed, since their bytes do not matter."""

    def __init__(self, draw: Callable[[st.SearchStrategy[Any]], Any]) -> None:
        self.draw = draw

    def int(self, low: int, high: int) -> int:
        """A number from low to high, both included."""
        return int(self.draw(st.integers(low, high)))

    def pick(self, choices: Sequence[T]) -> T:
        """One of these; the first is the simplest."""
        return choices[self.int(0, len(choices) - 1)]

    def flip(self) -> bool:
        """Yes or no; no is the simpler."""
        return bool(self.draw(st.booleans()))

    def noise(self, size: int) -> bytes:
        """Random bytes, `size` of them."""
        return Random(self.int(0, 255)).randbytes(size)
