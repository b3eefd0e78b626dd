"""The record of whole runs of the catalogue has each of them, and the page shows it."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks import certifier
from offload.errors import ConfigError
from tests.lib.catalogue import page as catalogue_page
from tests.lib.catalogue import past as catalogue_past
from tests.lib.catalogue import rows as catalogue
from tests.lib.catalogue.past import BEGIN, END, append, entry, read, table
from tests.lib.catalogue.rows import Step

ROW = catalogue.load()[0]
STEPS = (Step(ROW.id, ROW.card, ROW, ROW.tests), Step("good-nicsim-1", "nicsim", None, ROW.tests))
RIGHT, WRONG = {"problem": ""}, {"problem": "names another promise"}


def line(*words: dict[str, str]) -> dict[str, object]:
    """The line of a run in which this came of the steps."""
    found = {step.id: word for step, word in zip(STEPS, words, strict=False)}
    return entry(STEPS, found, kernel="7.2", labs=1, seconds=964.4, code="0123456789")


def test_a_run_names_what_was_wrong_or_never_ran() -> None:
    """A run tells its cards from its good steps, and a step without an end is wrong too."""
    assert line(RIGHT, RIGHT) | {"date": ""} == {
        "date": "",
        "commit": "0123456789",
        "kernel": "7.2",
        "labs": 1,
        "cards": 1,
        "good": 1,
        "wrong": [],
        "seconds": 964,
    }
    assert line(WRONG)["wrong"] == [ROW.id, "good-nicsim-1"]


def test_the_record_is_read_as_it_was_written(tmp_path: Path) -> None:
    """Lines are added to the record; what is no line is told where, and each is a row."""
    path = tmp_path / "runs.jsonl"
    for one in (line(RIGHT, RIGHT), line(WRONG, RIGHT)):
        append(one, path)
    rows = table(read(path)).splitlines()[2:]
    assert "| 0123456789 | 7.2 | 1 | 1 | none | 1 | 964 |" in rows[0]
    assert f"| 1 | 1 | {ROW.id} | 1 | 964 |" in rows[1]
    path.write_text(path.read_text() + "[]\n")
    with pytest.raises(ConfigError, match="runs.jsonl:3"):
        read(path)


def test_the_page_has_the_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """docs/certify/bad-nics.md says what the record has, and a run is added to both."""
    text = catalogue_page.PAGE.read_text()
    assert catalogue_past.page(text, read()) == text, "make certify-the-certifier"
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    monkeypatch.setattr(catalogue_page, "PAGE", page)
    monkeypatch.setattr(catalogue_past, "FILE", tmp_path / "runs.jsonl")
    certifier.keep(line(RIGHT, RIGHT))
    assert "| 7.2 | 1 | 1 | none |" in page.read_text()
