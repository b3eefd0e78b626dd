"""The record of drawn bad cards: a later draw goes on, the first run of a card counts, the page says so."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from benchmarks import drawn as benchmark
from offload.errors import ConfigError, RigError
from tests.lib.catalogue import drawn_record
from tests.lib.catalogue import page as catalogue_page
from tests.lib.catalogue.drawn import Defect, card, draw
from tests.lib.catalogue.drawn_record import BEGIN, END, append, entry, following, read, shrinks, table
from tests.lib.catalogue.drawn_summary import Drawn
from tests.lib.catalogue.rows import Step
from tests.lib.catalogue.run import Found
from tests.lib.scenario.array.covering import array

FIRST, SECOND, THIRD = [one for one in draw(7, 12) if one.named][:3]
SAID = {"seed": 7, "depth": "standard", "kernel": "6.1", "code": "0123456789"}
ALL = 0  # of the scenarios, and its own; counted in the test, since each worker imports this file
BY_CHANCE = -1  # the same, and once more the one that failed by chance


def line(
    defect: Defect, *, seen: bool = True, fired: int = 3, named: bool = True, shrunk: bool = True
) -> dict[str, object]:
    """What may have become of a card."""
    right = ", ".join(defect.named) if named else "sometimes"
    by = f"sent records are wrong {right}: seen [tests/x.py::test_holds[seed=9,ip=v6]]" if seen else ""
    drawn = Drawn(defect, fired, "passed", "", fired, 2, seen, by, 12.34, shrunk)
    return entry(drawn, **SAID)  # type: ignore[arg-type]


def test_a_line_says_what_caught_the_card() -> None:
    """The scenario, the headline without its evidence, and whether that names the condition."""
    found = line(FIRST)
    assert (found["word"], found["by"], found["named"]) == ("caught", "seed=9,ip=v6", True)
    assert (
        found["headline"] == f"sent records are wrong {', '.join(FIRST.named)}" and found["seconds"] == 12.3
    )
    assert not line(FIRST, named=False)["named"]
    assert not line(FIRST, seen=False)["named"]
    assert [line(FIRST, seen=False, fired=n)["word"] for n in (3, 0)] == ["escaped", "silent"]


def test_a_draw_goes_on_where_the_record_ended(tmp_path: Path) -> None:
    """The same order each time, without what the record has of this seed."""
    first = following(7, [], 3)
    lines = [line(one) for one in first[:2]]
    assert following(7, lines, 2)[0] == first[2] and following(8, lines, 3) != first
    assert len({one.id for one in following(7, [], 10**6)}) == len(following(7, [], 10**6)) > 700
    for one in lines:
        append(one, tmp_path / "drawn.jsonl")
    assert read(tmp_path / "drawn.jsonl") == lines
    (tmp_path / "drawn.jsonl").write_text("{}\n")
    with pytest.raises(ConfigError, match="drawn.jsonl:1"):
        read(tmp_path / "drawn.jsonl")


def test_the_first_run_of_a_card_counts() -> None:
    """A card that is caught after a repair stays one that had escaped, and the row says both."""
    lines = [line(FIRST, seen=False), line(SECOND), line(THIRD, named=False), line(FIRST)]
    said = table(lines)
    assert "3 cards were drawn, and the fault of 3 acted (0 did not count). 1 escaped: 33.3 %" in said
    assert "2 of the 2 caught cards had their failing scenario shrunk: the headline names" in said
    assert "the condition of 1 of these." in said
    assert f"| `{FIRST.id}` | escaped | none | caught, named |" in said
    assert f"| `{THIRD.id}` | caught | sent records are wrong sometimes | the same |" in said
    assert SECOND.id not in said
    assert "escaped" not in table([line(FIRST, seen=False, fired=0)]).splitlines()[0]


def test_a_scenario_that_was_not_shrunk_says_nothing_of_its_headline() -> None:
    """It has every condition, needed or not, so no card is named by it; each fifth of an order is shrunk."""
    lines = [line(FIRST), line(SECOND, shrunk=False), line(THIRD, named=False)]
    assert [one["named"] for one in lines] == [True, None, False]
    said = table(lines)
    assert "2 of the 3 caught cards had" in said and "the condition of 1 of these." in said
    assert SECOND.id not in said and THIRD.id in said
    order = following(7, [], 20)
    assert [shrinks(7, one) for one in order] == [True, False, False, False, False] * 4


def test_a_card_that_ran_often_has_one_verdict() -> None:
    """Five runs with the same code are told, with the machine's loads; a verdict that differs is named."""
    five = [line(FIRST) | {"load": float(n)} for n in (9, 8, 12, 10, 11)]
    assert "1 cards ran 5 times or more with the same code at loads of 8 to 12;" in table(five)
    assert "differed for none" in table(five)
    assert f"differed for {FIRST.id}" in table([*five[1:], line(FIRST, seen=False)])
    assert "5 times" not in table([*five[1:], line(FIRST) | {"commit": "fedcba9876"}])
    assert "5 times" not in table([*five[1:], line(SECOND)])


def test_cards_that_were_drawn_run_again() -> None:
    """The first ones of the record, each once; nobody is asked for more than it has."""
    lines = [line(one) for one in (THIRD, FIRST, THIRD, SECOND)]
    assert drawn_record.drawn_before(7, [*lines, line(SECOND) | {"id": "gone"}], 2) == (THIRD, FIRST)
    with pytest.raises(ConfigError, match="4 cards to run again"):
        drawn_record.drawn_before(7, lines, 4)


def test_older_lines_have_no_load(tmp_path: Path) -> None:
    """A field that came later is empty there; a line that lacks another one is no line."""
    old = {name: value for name, value in line(FIRST).items() if name != "load"}
    for one in (old, line(SECOND)):
        append(one, tmp_path / "drawn.jsonl")
    first, second = read(tmp_path / "drawn.jsonl")
    assert first["load"] is None and second["load"] >= 0
    append({name: value for name, value in old.items() if name != "word"}, tmp_path / "drawn.jsonl")
    with pytest.raises(ConfigError, match="drawn.jsonl:3"):
        read(tmp_path / "drawn.jsonl")


def test_the_page_has_the_record() -> None:
    """docs/certify/bad-nics.md says what the record has."""
    text = catalogue_page.PAGE.read_text()
    assert drawn_record.page(text, read()) == text, "make certify-the-certifier MORE=1"


class Card:
    """A card that fails at its third scenario, where its fault acts, and at the second for nothing."""

    asked: list[str] = []
    shrank: list[bool] = []
    as_found = False

    def __init__(self, *_: object) -> None:
        self.scenarios: list[str] = []

    def __enter__(self) -> Card:
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def do(self, step: Step) -> Found:
        assert step.row is not None
        Card.asked.append(step.row.tests[0])
        Card.shrank.append(not self.as_found)
        if Card.asked[3:]:
            raise RigError("the lab died")
        third = len(Card.asked) == 3
        by = f"sent records leave: {step.row.tests[0]}" if len(Card.asked) > 1 else ""
        return Found(step, "failed" if by else "passed", "", by, 1.0, 1, "", "", "", 5 if third else 0)


def test_a_card_is_done_with_at_the_first_failure_in_which_its_fault_acted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A failure in which nothing wrong was done is not the card's; record and page have each card at once."""
    page = tmp_path / "page.md"
    page.write_text(f"{BEGIN}\n{END}\n")
    monkeypatch.setattr(catalogue_page, "PAGE", page)
    monkeypatch.setattr(drawn_record, "FILE", tmp_path / "drawn.jsonl")
    monkeypatch.setattr(benchmark, "Stand", Card)
    monkeypatch.setattr(benchmark, "ROOT", tmp_path)
    monkeypatch.setattr(benchmark, "built", lambda: None)
    monkeypatch.setattr(sys, "argv", ["drawn", "--more", "2"])
    Card.asked, Card.shrank = [], []
    assert benchmark.main() == 0
    found, void = read(tmp_path / "drawn.jsonl")
    assert (found["word"], found["scenarios"], found["fired"]) == ("caught", 3, 5)
    assert [found["id"], void["id"]] == [one.id for one in following(drawn_record.SEED, [], 2)]
    assert void["word"] == "void" and Card.shrank == [True, True, True, False]
    said = capsys.readouterr().out
    assert "2 cards were drawn, and the fault of 1 acted (1 did not count)" in page.read_text()
    assert "2 cards were drawn" in said and "the rig broke: the lab died" in said
    assert said.count("FALSE ALARM? no fault acted in seed=") == 1


class Passes(Card):
    """A card whose fault acts in every scenario; what is said of it is in `says`, a word for each run."""

    says: list[str] = []

    def do(self, step: Step) -> Found:
        assert step.row is not None
        Card.asked.append(step.row.tests[0])
        word = Passes.says.pop(0) if Passes.says else "passed"
        return Found(step, word, "", "sent records leave" if word == "failed" else "", 1.0, 1, "", "", "", 2)


@pytest.mark.parametrize(
    "says, ran, seen",
    [
        (["failed"], 1, True),
        (["passed", "failed", "failed"], 3, True),
        (["passed", "failed", "passed"], BY_CHANCE, False),
        ([*["passed"] * 30, "failed", "failed"], 32, True),
        ([], ALL, False),
    ],
)
def test_only_a_card_that_passes_every_scenario_has_escaped(says: list[str], ran: int, seen: bool) -> None:
    """A late failure counts if it comes again; else each scenario of the depth is run, once."""
    Card.asked, Passes.says = [], list(says)
    ran = ran if ran > 0 else len(array("standard", card())) + 1 - ran
    found = benchmark.nearest(Passes(), FIRST, shrunk=False)  # type: ignore[arg-type]
    assert (len(Card.asked), found.seen, found.escaped) == (ran, seen, not seen)
    assert found.ran == len({*Card.asked} - {benchmark.TEST.format(FIRST.line)})


def test_a_fault_that_never_acts_is_silent_without_the_whole_depth(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty-four scenarios and its own one are enough for that."""
    monkeypatch.setattr(Passes, "do", lambda _, step: Found(step, "passed", "", "", 1.0, 1, "", "", "", 0))
    found = benchmark.nearest(Passes(), FIRST, shrunk=False)  # type: ignore[arg-type]
    assert found.ran == benchmark.NEAREST and not found.counts and not found.escaped


def test_two_labs_share_the_cards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each card is run once, and the record has a line for each."""
    (tmp_path / "page.md").write_text(f"{BEGIN}\n{END}\n")
    monkeypatch.setattr(catalogue_page, "PAGE", tmp_path / "page.md")
    monkeypatch.setattr(drawn_record, "FILE", tmp_path / "drawn.jsonl")
    monkeypatch.setattr(benchmark, "Stand", Passes)
    Card.asked, Passes.says = [], ["failed"] * 6
    cards = following(7, [], 6)
    assert len(benchmark.more(cards, 7, "6.1", tmp_path, 1, labs=2)) == 6
    lines = read(tmp_path / "drawn.jsonl")
    assert {one["id"] for one in lines} == {one.id for one in cards} and len(lines) == 6
    assert benchmark.more(cards, 7, "6.1", tmp_path, 0, labs=2) == []
