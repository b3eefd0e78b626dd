"""Which of two arms costs more, and how sure is that: turns A/B/A/B, the paired ratio and its interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from random import Random
from statistics import NormalDist
from typing import TypeVar

from offload.errors import RigError

T = TypeVar("T")
Draw = Callable[[Sequence[float]], Sequence[float]]
WIDE = 0.10  # of the ratio: a wider interval says too little about its size
FEW = 5  # pairs: fewer have too few resamples that differ (5 have 126)
DRAWS = 5000
KEPT = 32  # values: resamples of more are not kept in memory
LEVEL = 0.95


@dataclass(frozen=True)
class Turn:
    """One run of one arm; those of a warm-up round do not count."""

    round: int
    arm: str
    counts: bool


@dataclass(frozen=True)
class Ratio:
    """What `arm` took for every unit that `base` took, over pairs of neighbors, with its interval (95 %).

    Rule: too wide to conclude if the interval is wider than 10 % of the ratio, or from fewer than 5 pairs.
    If it is not, and 1 lies in it, no difference was shown.
    """

    base: str
    arm: str
    ratio: float
    low: float
    high: float
    pairs: int

    @property
    def wide(self) -> bool:
        """Whether it is too wide to conclude."""
        return self.pairs < FEW or self.high - self.low > WIDE * self.ratio

    @property
    def differ(self) -> bool:
        """Whether a difference was shown: enough pairs, and 1 lies outside."""
        return self.pairs >= FEW and not self.low <= 1 <= self.high

    def within(self, margin: float) -> bool:
        """Whether the arms are the same within a margin: the whole interval lies in 1 +- margin."""
        return self.pairs >= FEW and 1 - margin <= self.low and self.high <= 1 + margin

    def say(self) -> str:
        """One sentence for people."""
        known = f"{self.arm} is {self.ratio:.3f} of {self.base}"
        known += f" (95 % interval {self.low:.3f} to {self.high:.3f}, {self.pairs} pairs)"
        if self.pairs < FEW:
            return f"{known}: too few pairs to conclude; {FEW} are needed"
        if self.wide:
            still = f", though {'less' if self.high < 1 else 'more'} it is" if self.differ else ""
            return f"{known}: the interval is too wide to conclude by how much{still}"
        if not self.differ:
            return f"{known}: no difference shown"
        return f"{known}: {100 * abs(1 - self.ratio):.1f} % {'less' if self.ratio < 1 else 'more'}"


def turns(arms: Sequence[str], rounds: int, warm: int = 1) -> Iterator[Turn]:
    """Yield A, B, A, B, ...: `warm` rounds that do not count, then `rounds` that do."""
    for number in range(warm + rounds):
        for arm in arms:
            yield Turn(number, arm, number >= warm)


def taken(arms: Mapping[str, Callable[[], T]], rounds: int, warm: int = 1) -> dict[str, list[T]]:
    """Run the arms in turns; the results that count, by arm, in order: the n-th of two arms are a pair."""
    found: dict[str, list[T]] = {arm: [] for arm in arms}
    for turn in turns(list(arms), rounds, warm):
        result = arms[turn.arm]()
        if turn.counts:
            found[turn.arm].append(result)
    return found


def paired(base: tuple[str, Sequence[float]], arm: tuple[str, Sequence[float]], seed: int = 1) -> Ratio:
    """The ratio of two arms (name, figures in order): geometric mean over pairs, with a bootstrap interval.

    The same seed gives the same interval. RigError if they do not pair, or a figure is not above 0.
    """
    names, values = (base[0], arm[0]), (base[1], arm[1])
    if len(values[0]) != len(values[1]) or not values[0]:
        raise RigError(f"{len(values[0])} figures of {names[0]} and {len(values[1])} of {names[1]}: no pairs")
    for name, row in zip(names, values, strict=True):
        wrong = [value for value in row if not (math.isfinite(value) and value > 0)]
        if wrong:
            raise RigError(f"{name}: a figure of {wrong[0]:g}, wanted one above 0")
    logs = [math.log(b / a) for a, b in zip(*values, strict=True)]
    low, high = interval(logs, seed)
    mean = sum(logs) / len(logs)
    return Ratio(*names, math.exp(mean), math.exp(min(low, mean)), math.exp(max(high, mean)), len(logs))


def interval(values: Sequence[float], seed: int, level: float = LEVEL) -> tuple[float, float]:
    """Percentile bootstrap of the mean, with tails made longer for few values.

    The plain percentile interval of n values is too narrow by sqrt((n-1)/n) and by z for t; Hesterberg, "What
    Teachers Should Know About the Bootstrap" (2015), section 4.1, expands the percentiles by just that.
    """
    count = len(values)
    if count == 1:
        return -math.inf, math.inf
    made: Iterable[Draw] = (draws if count <= KEPT else _drawn)(count, seed, DRAWS)
    sums = sorted([sum(draw(values)) for draw in made])
    tail = NormalDist().cdf(-math.sqrt(count / (count - 1)) * student((1 + level) / 2, count - 1))
    low = int(tail * DRAWS)
    return sums[low] / count, sums[DRAWS - 1 - low] / count


@lru_cache(maxsize=16)
def draws(count: int, seed: int, number: int) -> tuple[Draw, ...]:
    """That number of resamples of `count` values; the choice depends on nothing else, and drawing is slow."""
    return tuple(_drawn(count, seed, number))


def _drawn(count: int, seed: int, number: int) -> Iterator[Draw]:
    random, places = Random(seed), range(count)
    return (itemgetter(*random.choices(places, k=count)) for _ in range(number))


def student(level: float, degrees: int) -> float:
    """The quantile of Student's t, by Abramowitz and Stegun 26.7.5: within 1 % from 3 degrees on."""
    z, n = NormalDist().inv_cdf(level), degrees
    return (
        z
        + (z**3 + z) / (4 * n)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * n**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * n**3)
    )
