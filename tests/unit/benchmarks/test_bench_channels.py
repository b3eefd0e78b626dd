"""The model of many channels says what its numbers say; films stand beside plain TCP."""

from __future__ import annotations

from typing import Any

import pytest

from benchmarks import channels, video


def row(arm: str, streams: int, load: str, *values: float) -> dict[str, Any]:
    """A row of cost mode."""
    cost = [{"boot": n, "side": "sender", "per_byte": value} for n, value in enumerate(values, 1)]
    return {"arm": arm, "direction": "tx", "streams": streams, "workload": load, "cost": cost}


def test_a_core_and_its_channels() -> None:
    """A channel is one core at most, and the first count that fills the link is found."""
    assert channels.gbits(2.0, 1e9) == 4.0
    flat = dict.fromkeys((1, 2, 4, 8), 2.0)
    assert channels.needed(flat, 1e9, 4.0) == "1"
    assert channels.needed(flat, 1e9, 4.1) == "2"
    assert channels.needed(flat, 1e9, 12.0) == "3", "between the counts that were measured"
    assert channels.needed(flat, 1e9, 100.0) == "25 (as at 8)"
    assert channels.needed({1: 2.0, 2: 4.0, 4: 4.0, 8: 4.0}, 1e9, 6.0) == "3", (
        "with more of them each costs more"
    )


def test_tables() -> None:
    """Each arm is a line: what it costs, what it carries, what of TLS's cost is taken away."""
    cost = {"plain": 0.5, "user": 4.0, "sw": 3.0, "hw": 1.0, "hw-zc": 0.75}
    rows = [row(arm, n, "stream", value, value) for arm, value in cost.items() for n in (1, 2, 4, 8)]
    lines = list(channels.table({"rows": rows}, 6e9, 100.0))
    assert lines[-1] == "| hw    | 1.00 | 1.00 | 1.00 | 1.00 | 48.0 | 96.0 | 100.0 | 100.0 | 3 |"
    films = list(video.table({"rows": [row(arm, 1, "file", value) for arm, value in cost.items()]}))
    assert films[-2:] == ["| hw | 1.00 | 0.33 | 80 % |", "| hw-zc | 0.75 | 0.25 | 90 % |"]
    assert films[3] == "| user | 4.00 | 1.33 |  |"


def test_wrong_numbers_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """A rate of nothing is refused before anything boots."""
    for words in (["--rate", "0"], ["--link", "-1"], ["--rate", "nan"]):
        with pytest.raises(SystemExit):
            channels.main(words)
        assert "wanted a number above 0" in capsys.readouterr().err
