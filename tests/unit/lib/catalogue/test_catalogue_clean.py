"""The record of good cards says what became of each run, and leaves no failure out."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import certifier
from offload.errors import ConfigError
from tests.lib.catalogue import clean as catalogue_clean
from tests.lib.catalogue import page as catalogue_page
from tests.lib.catalogue import rows as catalogue
from tests.lib.catalogue.clean import BEGIN, END, append, entry, read, table
from tests.lib.catalogue.rows import Step

MEASURED = {"tests": 47, "seconds": 90.5, "left": ""}
FOUND = MEASURED | {"word": "incomplete", "problem": ""}


def line(kernel: str = "6.1", kind: str = "run", **found: object) -> dict[str, object]:
    return entry(FOUND | found, kernel=kernel, card="chelsio-t6", kind=kind, code="0123456789")


def test_a_run_is_clean_failed_or_void() -> None:
    """A run with a problem is failed, or void if the rig broke; only one without is clean."""
    words = [line()["word"], line(problem="x")["word"], line(problem="x", word="void")["word"]]
    assert words == ["clean", "failed", "void"]


def test_the_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Lines are added to the record and none is lost; what is no line is told where."""
    path = tmp_path / "runs.jsonl"
    assert read(path) == []
    for one in (line(), line(problem="two\nlines")):
        append(one, path)
    assert [one["problem"] for one in read(path)] == ["", "two lines"]
    path.write_text(path.read_text() + "{}\n")
    with pytest.raises(ConfigError, match="runs.jsonl:3"):
        read(path)


def test_the_table_counts_and_shows_failures() -> None:
    """Runs are counted by kernel, card and kind, and what was wrong is shown in full."""
    said = table([line("6.12"), line(), line(), line(problem="a | b", kind="step")])
    assert said.startswith("3 whole runs (0 failed, 0 void) and 1 step (1 failed, 0 void) of a good card, 20")
    rows = [row for row in said.splitlines() if row.startswith("| 6")]
    assert [row.split(" | ")[0] for row in rows] == ["| 6.1", "| 6.1", "| 6.12"]
    assert "| 2 | 0 | 0 | 94 |" in rows[0] and "| 0 | 1 | 0 | 47 |" in rows[1]
    assert "6.1, chelsio-t6, 0123456789, failed: `a | b`" in said
    assert "Since" not in table([line()])
    assert "Since the last that was not clean: 1 whole run, 2 steps." in table(
        [line(), line(problem="x"), line(), line(kind="step"), line(kind="step")]
    )


def test_runs_on_a_busy_machine_are_counted() -> None:
    """Whole runs at a load of eight or more; an older line has no load, and a step is no whole run."""
    loads = [line() | {"load": load} for load in (7.9, 8.0, 12.5, None)]
    said = table([*loads, line(kind="step") | {"load": 20.0}])
    assert " At a load of 8 or more: 2 whole runs (0 failed, 0 void)." in said
    assert "At a load" not in table([line() | {"load": 0.5}])


def test_the_page_counts_the_record() -> None:
    """docs/certify/bad-nics.md says what the record has."""
    text = catalogue_page.PAGE.read_text()
    assert catalogue_clean.page(text, read()) == text, "python -m benchmarks.certifier --good 1"
    with pytest.raises(ValueError, match="no line"):
        catalogue_clean.page(f"{END} {BEGIN}", [])


def test_whatever_comes_of_a_good_card_is_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The certifier records and counts each good run, failed ones too, and no bad card."""
    page, record = tmp_path / "page.md", tmp_path / "runs.jsonl"
    page.write_text(f"{BEGIN}\n{END}\n")
    monkeypatch.setattr(catalogue_page, "PAGE", page)
    monkeypatch.setattr(catalogue_clean, "FILE", record)
    row = catalogue.load()[0]
    good = [*catalogue.whole([row], "nicsim", 2), Step("good-nicsim-1", "nicsim", None, row.tests)]
    work = certifier.Work([Step(row.id, row.card, row, row.tests), *good], "7.2", tmp_path)
    ends = [("failed", ""), ("incomplete", ""), ("void", "the rig broke"), ("failed", "payload.tx: no")]
    for name, (word, problem) in zip([row.id, *(step.id for step in good)], ends, strict=True):
        work.done({"id": name, "word": word, "promise": "", "line": "", "problem": problem} | MEASURED)
    assert [(one["kind"], one["word"]) for one in read(record)] == [
        ("run", "clean"),
        ("run", "void"),
        ("step", "failed"),
    ]
    assert "2 whole runs (0 failed, 1 void) and 1 step (1 failed, 0 void)" in page.read_text()
    assert "the rig broke" in capsys.readouterr().out


def test_nothing_tracked_changes_unasked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A run from changed code leaves docs/ as it is, and says so, unless --write is given."""
    reported: list[tuple[str, bool]] = []

    def run(steps: object, kernel: str, labs: int, folder: Path, recorded: bool) -> dict[str, object]:
        reported.append(("run", recorded))
        return {}

    monkeypatch.setattr(certifier, "ROOT", tmp_path)
    monkeypatch.setattr(certifier, "run", run)
    monkeypatch.setattr(certifier, "plan", lambda args: [])
    monkeypatch.setattr(certifier, "keep", lambda line: reported.append(("kept", True)))
    for code, words in (("0123456789+", []), ("0123456789+", ["--write"]), ("0123456789", [])):
        monkeypatch.setattr(catalogue_clean, "commit", lambda code=code: code)
        monkeypatch.setattr("sys.argv", ["certifier", *words])
        certifier.main()
    assert reported == [("run", False), ("run", True), ("kept", True), ("run", True), ("kept", True)]
    assert capsys.readouterr().out.count("not recorded: ") == 1
    work = certifier.Work([*catalogue.whole([], "nicsim", 1)], "7.2", tmp_path, recorded=False)
    monkeypatch.setattr(work, "_record", lambda step, found: reported.append(("recorded", True)))
    quiet = {"promise": "", "line": "", "problem": "", "word": "failed"} | MEASURED
    work.done(quiet | {"id": next(iter(work._good))})
    assert ("recorded", True) not in reported


def test_a_whole_run_has_every_test() -> None:
    """Each of N runs of a good card asks all that the catalogue asks of bad ones."""
    rows = catalogue.load()
    steps = list(catalogue.whole(rows, "nicsim", 3))
    assert len({step.id for step in steps}) == 3 and {step.card for step in steps} == {"nicsim"}
    assert all(set(step.tests) == {test for row in rows for test in row.tests} for step in steps)
