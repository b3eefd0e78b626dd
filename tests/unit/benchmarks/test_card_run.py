"""A whole run of a card is recorded as its report says it, and what the record lacks is named."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from offload.card.profile import load_all
from tests.lib.catalogue import card_run
from tests.unit.suite.report import report_whole as made

ALL = {profile.id for profile in load_all()}


@pytest.fixture(autouse=True)
def record(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """An empty record, and its page."""
    file = tmp_path / "cards.jsonl"
    (tmp_path / "cards.md").write_text(f"# Title\n\n{card_run.BEGIN}\n{card_run.END}\n")
    monkeypatch.setattr(card_run, "RECORD", file)
    monkeypatch.setattr(card_run, "PAGE", file.with_suffix(".md"))
    return file


def folder(place: Path, worst: str = "pass", **other: Any) -> Path:
    """A run's folder, with these words of its report changed."""
    report = made.document(worst=worst) | other
    place.mkdir()
    (place / "report.json").write_text(json.dumps(report))
    return place


def test_a_run_is_recorded_once(record: Path, tmp_path: Path) -> None:
    """A run is a line of the record with what its report says; taken twice, it stands there once."""
    run = folder(tmp_path / "run")
    assert card_run.judged(run) and card_run.judged(run)
    (line,) = card_run.read()
    report = made.document()
    assert line["card"] == "connectx-6-dx" and line["commit"] == "4" * 10
    assert line["verdict"] == report["verdict"] and sum(line["outcomes"].values()) == len(report["tests"])
    assert line["proved"] == line["asked"] > 30
    page = record.with_suffix(".md").read_text()
    assert page.startswith("# Title") and page.count("| connectx-6-dx | nicsim | quick, ") == 1


def test_a_failed_run_is_recorded_and_no_certificate(tmp_path: Path) -> None:
    """A run that failed is on record with its headline, and its card is still missing."""
    assert not card_run.judged(folder(tmp_path / "run", worst="fail"))
    (line,) = card_run.read()
    assert line["verdict"] == "failed" and line["headline"] and line["proved"] < line["asked"]
    assert set(card_run.missing([line], "6.1")) == ALL


def test_a_later_failure_does_not_hide_a_certificate(tmp_path: Path) -> None:
    """The table shows the last certified run of a card, though a later one was not."""
    card_run.judged(folder(tmp_path / "good"))
    card_run.judged(folder(tmp_path / "bad", worst="fail", started="2026-12-01T00:00:00.000Z"))
    assert len(card_run.read()) == 2
    assert set(card_run.missing(card_run.read(), "6.1")) == ALL - {"connectx-6-dx"}
    assert set(card_run.missing(card_run.read(), "6.12")) == ALL
    assert "No certified run on 6.12: agilio-nfp, " in card_run.PAGE.read_text()


@pytest.mark.parametrize("what", ["dirty", "part", "none"])
def test_what_is_not_recorded(capsys: pytest.CaptureFixture[str], tmp_path: Path, what: str) -> None:
    """Changed code, a part of the tests and a run without a report leave no line, and say why."""
    report = made.document()
    if what == "dirty":
        run = folder(tmp_path / "run", judged=report["judged"] | {"dirty": True})
    else:
        left = [report["promises"][0] | {"state": "not proved", "gap": "left out of this run"}]
        run = folder(tmp_path / "run", promises=left) if what == "part" else tmp_path / "no-run"
    assert not card_run.judged(run) and card_run.read() == []
    said = {"dirty": "not committed", "part": "a part of the tests ran", "none": "no report.json"}
    assert said[what] in capsys.readouterr().out


def test_a_depth_is_a_kind_of_its_own(tmp_path: Path) -> None:
    """A run that crosses more has its own row, and the pairs that it covered."""
    card_run.judged(folder(tmp_path / "quick"))
    crossed = made.document()["crossed"] | {"depth": "standard"}
    for day in ("12-02", "12-03"):
        card_run.judged(folder(tmp_path / day, started=f"2026-{day}T00:00:00.000Z", crossed=crossed))
    rows = [line.split(" | ") for line in card_run.PAGE.read_text().splitlines() if "| nicsim |" in line]
    pairs = "{covered} of {possible}".format(**crossed["pairs"])
    assert [(row[2], row[5]) for row in rows] == [
        (f"quick, {pairs} pairs", "1 (1 of 1)"),
        (f"standard, {pairs} pairs", "2 (2 of 2)"),
    ]


def test_a_run_is_certify_of_that_depth(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What a person would type, into a folder of its own."""
    typed: list[list[str]] = []
    monkeypatch.setattr(card_run, "ROOT", tmp_path)
    monkeypatch.setattr("subprocess.run", lambda argv, **_: typed.append(argv))
    out = card_run.certified("connectx-6-dx", "6.12", 0, "mlx5", "standard")
    assert out == tmp_path / "results/card-connectx-6-dx-mlx5-standard-6.12"
    words = ["--nic", "connectx-6-dx", "--kernel", "6.12", "--card", "mlx5", "--depth", "standard"]
    assert [one[3:] for one in typed] == [["certify", *words, "--out", str(out)]]


def test_the_real_driver_has_a_row_and_counts_what_came_in_a_row(tmp_path: Path) -> None:
    """Two certified runs after a failed one are two in a row, apart from the card that nicsim plays."""
    rig = made.document()["rig"] | {"driver": "mlx5_core"}
    words = {"12-01": "pass", "12-02": "fail", "12-03": "pass", "12-04": "pass"}
    for day, worst in words.items():
        card_run.judged(folder(tmp_path / day, worst=worst, started=f"2026-{day}T00:00:00.000Z", rig=rig))
    card_run.judged(folder(tmp_path / "nicsim"))
    rows = [line for line in card_run.PAGE.read_text().splitlines() if line.startswith("| connectx-6-dx")]
    counts = [["mlx5_core", "2 (3 of 4)"], ["nicsim", "1 (1 of 1)"]]
    assert [[row.split(" | ")[at] for at in (1, 5)] for row in rows] == counts
    real = [line for line in card_run.read() if line["driver"] == "mlx5_core"]
    assert set(card_run.missing(real, "6.1")) == ALL
