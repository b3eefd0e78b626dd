"""What the embedded lab costs stands beside its bar: more is better for a speed, less for everything else."""

from __future__ import annotations

import pytest

from benchmarks import lab


@pytest.mark.parametrize(
    ("name", "bar", "held", "missed"),
    [
        ("hw, MB/s", 50.0, [10, 50, 90], [49.9, 49.9, 90]),
        (lab.OF_PLAIN, 0.75, [0.1, 0.75, 1.0], [0.74, 0.74, 1.0]),
        ("boot to bench, s", 10.0, [9, 10, 20], [1, 10.1, 20]),
        ("VM memory, MiB", 2048.0, [2048], [2049]),
    ],
)
def test_a_bar_is_held_or_missed_by_the_median(
    name: str, bar: float, held: list[float], missed: list[float], capsys: pytest.CaptureFixture[str]
) -> None:
    """The exit code follows from it, and the line says so."""
    assert (lab.BARS | lab.CARD_BARS)[name] == bar
    for values, word in ((held, "held"), (missed, "MISSED")):
        assert lab.report(name, values, {name: bar}) is (word == "held")
        assert capsys.readouterr().out.endswith(f"bar {bar:g}: {word}\n")


def test_a_figure_without_a_bar_is_always_held(capsys: pytest.CaptureFixture[str]) -> None:
    """It is printed alone."""
    assert lab.report("round trip of true, ms", [99.0], lab.BARS)
    assert "bar" not in capsys.readouterr().out
