"""Do the pages name the source, or a guess, of each behavior of the simulated card, and each knob?"""

from __future__ import annotations

import re
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[3]
PAGE = ROOT / "docs/reference/card-model.md"
# a file of the driver or the kernel, its document, a structure of mlx5_ifc.h, a page of the manual
SOURCE = re.compile(r"\b(?:ifc|device|PRM)\b|\b[\w/-]+\.(?:[ch]|rst)\b")
GUESS = "**guess**"
GUESSES = 17  # a reader of a report is told this number: a new guess is a decision


def rows(text: str) -> list[tuple[str, str]]:
    """Behavior and source of each row of the table."""
    cells = [line.strip("| \n").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [(row[0], row[1]) for row in cells if len(row) == 2 and row[1] != "source"]


def without_source(text: str) -> list[str]:
    """The behaviors that name neither a source nor a guess."""
    return [what for what, source in rows(text) if GUESS not in source and not SOURCE.search(source)]


def test_each_behavior_has_a_source_or_is_a_guess() -> None:
    """A run on the model is worth what is known of the firmware: nothing stands there without its source."""
    text = PAGE.read_text()
    assert len(rows(text)) > 40, "what was read?"
    assert not without_source(text)
    assert sum(GUESS in source for _, source in rows(text)) == GUESSES


def test_a_row_without_a_source_is_noticed() -> None:
    """The check itself goes red."""
    assert without_source(
        "| it hums | of course |\n| it sleeps | **guess** |\n| it runs | eq.c: run |\n"
    ) == ["it hums"]


def test_every_command_has_a_name_and_is_in_one_table() -> None:
    """An opcode stands in one table of the model, once, and its answer is on the page."""
    texts = [path.read_text() for path in sorted((ROOT / "native/cx6sim").rglob("*.c"))]
    found = [m for text in texts for m in re.findall(r'\{ (0x[0-9a-f]+), "([A-Z0-9_]+)", \w+ \}', text)]
    assert len(found) > 60 and len({op for op, _ in found}) == len(found) == len({name for _, name in found})
    reported = {name for what, _ in rows(PAGE.read_text()) for name in re.findall(r"`([A-Z0-9_]+)`", what)}
    assert reported == {name for _, name in found}, "the page has a row for each"


def test_every_knob_is_in_the_readme() -> None:
    """A fault that the card can play is found by whoever reads how to ask for it; no other is promised."""
    folder = ROOT / "native/cx6sim"
    knobs = set(re.findall(r'\[FAULT_\w+\] = "([a-z-]+)"', (folder / "state/faults.c").read_text()))
    table = [line for line in (folder / "README.md").read_text().splitlines() if line.startswith("| `")]
    named = {name for line in table for name in re.findall(r"`([a-z-]+)`", line.split(" | ")[0])}
    assert len(knobs) > 20 and named == knobs


def test_every_note_of_the_profile_is_shown_or_says_why_not() -> None:
    """What a profile says of the real driver is held against it: the page and a test name each note."""
    profile = yaml.safe_load((ROOT / "nic-profiles/connectx-6-dx.yaml").read_text())
    notes, page = [note["id"] for note in profile["notes"]], PAGE.read_text()
    tests = (ROOT / "tests/nicsim/drivers/test_real_notes.py").read_text()
    assert len(notes) > 3
    assert [note for note in notes if f"- `{note}`:" not in page or f"({note})" not in tests] == []
