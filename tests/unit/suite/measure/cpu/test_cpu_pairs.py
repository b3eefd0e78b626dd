"""Pairs: whose turn it is, the ratio and its interval, and when it is too wide to conclude."""

from __future__ import annotations

import math
from random import Random
from statistics import NormalDist

import pytest

from offload.errors import RigError
from offload.suite.measure.cpu.pairs import DRAWS, Ratio, Turn, interval, paired, student, taken, turns


def test_arms_take_turns_and_the_warm_up_does_not_count() -> None:
    """The arms go A/B/A/B, the first round for nothing."""
    found = list(turns(["A", "B"], 2))
    assert [turn.arm for turn in found] == ["A", "B"] * 3
    assert [turn.counts for turn in found] == [False, False, True, True, True, True]
    assert found[2] == Turn(1, "A", True)


def test_only_results_that_count_are_kept() -> None:
    """Every turn is run, in order; warm-up results are dropped."""
    order: list[str] = []

    def arm(name: str):  # type: ignore[no-untyped-def]
        return lambda: order.append(name) or len(order)

    found = taken({"A": arm("A"), "B": arm("B")}, rounds=2, warm=2)
    assert order == ["A", "B"] * 4
    assert found == {"A": [5, 7], "B": [6, 8]}


def test_an_arm_that_fails_ends_the_turns() -> None:
    """A broken run leaves no pairs behind that look whole."""

    def fail() -> int:
        raise RigError("no traffic")

    with pytest.raises(RigError, match="no traffic"):
        taken({"A": lambda: 1, "B": fail}, 2)


def test_the_ratio_is_known_where_pairs_agree() -> None:
    """Drift that meets both of a pair leaves no trace in the ratio."""
    base = [10.0 * (1 + 0.1 * n) for n in range(8)]
    found = paired(("sw", base), ("hw", [0.6 * value for value in base]))
    assert found.ratio == pytest.approx(0.6) and found.low == pytest.approx(0.6) == found.high
    assert found.differ and not found.wide
    assert found.say() == "hw is 0.600 of sw (95 % interval 0.600 to 0.600, 8 pairs): 40.0 % less"


def test_the_ratio_turns_round_with_the_arms() -> None:
    """hw to sw is one over sw to hw."""
    random = Random(5)
    one, two = ([random.uniform(1, 1.2) for _ in range(9)] for _ in range(2))
    there, back = paired(("a", one), ("b", two)), paired(("b", two), ("a", one))
    assert there.ratio * back.ratio == pytest.approx(1)


def test_the_same_seed_gives_the_same_interval() -> None:
    """An interval can be recomputed from the figures."""
    row = [1.0, 1.02, 0.99, 1.01, 1.03, 0.98]
    args = ("a", [1.0] * 6), ("b", row)
    assert paired(*args) == paired(*args)
    assert paired(*args, seed=2) != paired(*args)


@pytest.mark.parametrize(
    ("low", "high", "pairs", "wide", "differ", "said"),
    [
        (0.59, 0.61, 10, False, True, "40.0 % less"),
        (1.72, 1.88, 10, False, True, "80.0 % more"),
        (
            0.56,
            0.64,
            10,
            True,
            True,
            "the interval is too wide to conclude by how much, though less it is",
        ),
        (0.99, 1.01, 10, False, False, "no difference shown"),
        (
            0.50,
            0.70,
            10,
            True,
            True,
            "the interval is too wide to conclude by how much, though less it is",
        ),
        (
            1.50,
            2.10,
            10,
            True,
            True,
            "the interval is too wide to conclude by how much, though more it is",
        ),
        (0.80, 1.30, 10, True, False, "the interval is too wide to conclude by how much"),
        (0.60, 0.60, 4, True, False, "too few pairs to conclude; 5 are needed"),
    ],
)
def test_the_rule_of_too_wide(
    low: float, high: float, pairs: int, wide: bool, differ: bool, said: str
) -> None:
    """An interval over 10 % of the ratio, or from fewer than 5 pairs, concludes nothing."""
    ratio = Ratio("sw", "hw", round((low + high) / 2, 6), low, high, pairs)
    assert (ratio.wide, ratio.differ) == (wide, differ)
    assert ratio.say().endswith(f"pairs): {said}")


def test_a_figure_of_years_ago_is_the_same_today() -> None:
    """Resamples that are kept give the interval of resamples that are drawn one by one."""
    for count in (2, 7, 40):
        row, random = [Random(count).gauss(0, 1) for _ in range(count)], Random(5)
        means = sorted(sum(random.choices(row, k=count)) / count for _ in range(DRAWS))
        tail = NormalDist().cdf(-math.sqrt(count / (count - 1)) * student(0.975, count - 1))
        ends = means[int(tail * DRAWS)], means[DRAWS - 1 - int(tail * DRAWS)]
        assert interval(row, 5) == ends == interval(row, 5)


def test_sameness_needs_the_whole_interval() -> None:
    """Two arms are the same within 2 % only if the interval says so."""
    assert Ratio("a", "b", 1.0, 0.985, 1.015, 10).within(0.02)
    assert not Ratio("a", "b", 1.0, 0.975, 1.015, 10).within(0.02)
    assert not Ratio("a", "b", 1.0, 0.985, 1.025, 10).within(0.02)
    assert not Ratio("a", "b", 1.0, 1.0, 1.0, 4).within(0.02)


@pytest.mark.parametrize(
    ("base", "arm", "why"),
    [
        ([], [], "0 figures of sw and 0 of hw: no pairs"),
        ([1.0, 2.0], [1.0], "2 figures of sw and 1 of hw: no pairs"),
        ([1.0, 0.0], [1.0, 1.0], "sw: a figure of 0, wanted one above 0"),
        ([1.0, 1.0], [1.0, -2.0], "hw: a figure of -2, wanted"),
        ([1.0, 1.0], [1.0, math.nan], "hw: a figure of nan, wanted"),
        ([1.0, math.inf], [1.0, 1.0], "sw: a figure of inf, wanted"),
    ],
)
def test_figures_that_do_not_pair_are_refused(base: list[float], arm: list[float], why: str) -> None:
    """A ratio needs pairs of figures above 0."""
    with pytest.raises(RigError, match=why):
        paired(("sw", base), ("hw", arm))


def test_one_pair_knows_nothing() -> None:
    """One pair has a ratio, and an interval without end."""
    found = paired(("sw", [2.0]), ("hw", [1.0]))
    assert found.ratio == pytest.approx(0.5) and (found.low, found.high) == (0.0, math.inf)
    assert found.say().endswith("too few pairs to conclude; 5 are needed")


@pytest.mark.parametrize(("degrees", "t"), [(4, 2.776), (7, 2.365), (9, 2.262), (29, 2.045)])
def test_quantiles_of_student(degrees: int, t: float) -> None:
    """The tails are those of the tables, within half a percent."""
    assert student(0.975, degrees) == pytest.approx(t, rel=0.005)


def test_the_interval_holds_what_it_promises(monkeypatch: pytest.MonkeyPatch) -> None:
    """About 95 of 100 intervals of 6 normal values hold the truth (plain percentiles: 85)."""
    monkeypatch.setattr("offload.suite.measure.cpu.pairs.DRAWS", 400)
    random = Random(11)
    rows = [[random.gauss(0, 1) for _ in range(6)] for _ in range(400)]
    held = sum(low <= 0 <= high for low, high in (interval(row, 3) for row in rows))
    assert 0.91 <= held / 400 <= 0.98
