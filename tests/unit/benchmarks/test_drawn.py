"""Bad cards that are drawn: what there is to draw, that each can be made, and how what came of it is told."""

from __future__ import annotations

import json
import re
import signal
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from benchmarks import drawn as benchmark
from benchmarks.drawn import met, turns
from offload.card.profile import find
from offload.errors import ConfigError
from offload.suite.bench.cards import knobs
from tests.lib.catalogue.drawn import CARD, Defect, defects, draw, space
from tests.lib.catalogue.drawn_summary import Drawn, line, summary, wilson
from tests.lib.catalogue.drawn_tables import CONDITIONS, PLACES
from tests.lib.catalogue.rows import Step
from tests.lib.catalogue.run import Found
from tests.lib.scenario.array.covering import array

NICSIM = Path(__file__).parents[3] / "native" / "nicsim"


def drawn(defect: Defect, *, fired: int = 3, seen: bool = True, by: str = "") -> Drawn:
    """What a run may have found."""
    return Drawn(defect, fired, "failed" if seen else "passed", "", fired, 5, seen, by, 1.0)


def test_there_are_three_hundred_and_no_two_are_alike() -> None:
    """There are more than three hundred cards to draw from, each another one."""
    every = defects()
    assert len(every) >= 300
    assert len({one.id for one in every}) == len({one.knobs for one in every}) == len(every)
    assert len({one.words() for one in every}) == len(every)


def test_every_place_and_every_condition_is_drawn() -> None:
    """Nothing stands in the tables that no card has."""
    every = defects()
    assert {one.place.name for one in every} == {place.name for place in PLACES}
    assert {one.condition.name for one in every} == {condition.name for condition in CONDITIONS}


def test_every_card_can_be_made_and_has_a_scenario() -> None:
    """Each card's knobs are the simulated card's, and its scenario one that the suite makes."""
    files = re.findall(r"\bKNOB\((\w+)\)", (NICSIM / "debugfs.c").read_text())
    files += [f"when_{name}" for name in re.findall(r"\bWHEN\((\w+),", (NICSIM / "debugfs.c").read_text())]
    found = space()
    for one in defects():
        turned = knobs.check(one.knobs)
        assert {name.partition("/")[2] for name in turned} <= set(files), one.id
        scenario = found.parse(one.line)
        met = dict(scenario.values).items()
        assert one.place.values.items() <= met and one.condition.values.items() <= met, one.id
        assert scenario["direction"] == one.direction == one.place.direction, one.id
        assert found.allows(scenario)


def test_a_place_and_a_condition_that_do_not_go_together_are_no_card() -> None:
    """A condition is asked only where the card knows it, and where the fault could show."""
    for one in defects():
        assert one.direction in one.condition.directions and one.place.level in one.condition.levels, one.id
        assert not any(one.condition.name.startswith(hidden) for hidden in one.place.never), one.id


def test_trouble_strikes_the_connection_that_came_last() -> None:
    """A condition of many contexts is met by the connection that trouble and event are for."""
    for one in defects():
        scenario = space().parse(one.line)
        count = int(scenario["connections"])
        assert count == 1 or scenario.seed % count == count - 1, one.id


def test_a_seed_draws_the_same_cards() -> None:
    """A draw can be repeated, another seed draws others, and none is drawn twice."""
    assert draw(4711, 40) == draw(4711, 40) != draw(4712, 40)
    assert len({one.id for one in draw(4711, 40)}) == 40
    with pytest.raises(ConfigError, match="0 defects cannot be drawn"):
        draw(1, 0)
    with pytest.raises(ConfigError, match="there are"):
        draw(1, 10**6)


def test_the_interval_is_wilson_s() -> None:
    """The interval is that of the formula, also where nothing escaped."""
    assert wilson(0, 40) == pytest.approx((0.0, 8.76), abs=0.01)
    assert wilson(4, 40) == pytest.approx((3.96, 23.05), abs=0.01)
    assert wilson(40, 40) == pytest.approx((91.24, 100.0), abs=0.01)


def test_what_escaped_is_reported_and_what_never_fired_is_not_counted() -> None:
    """The rate is of the cards that fired, and each that was not caught is there to repeat."""
    first, second, third, fourth = [one for one in draw(7, 12) if one.named][:4]
    right = ", ".join(first.named) + ": different; software: intact"
    found = [
        drawn(first, by=right),
        drawn(second, by="something else"),
        drawn(third, seen=False),
        drawn(fourth, fired=0, seen=False),
    ]
    assert [one.blamed for one in found] == [True, False, False, False]
    said = "\n".join(summary(found, "7", "quick", 4))
    assert "draw 7: 4 cards against the scenarios of depth quick; 4 were run, 3 acted" in said
    assert "escaped: 1 of 3 = 33.3 %" in said
    assert "\nESCAPED " in said and line(found[2]).startswith("ESCAPED")
    assert f"{third.words()}: repeat it: {third.knobs} and {third.line}" in said
    assert "NOT FIRED" in said and fourth.words() in said and not found[3].escaped
    void = Drawn(first, 3, "void", "", 3, 0, False, "", 1.0)
    assert line(void).startswith("VOID") and not void.escaped
    assert Drawn(first, 3, "void", "", 9, 2, True, "", 1.0).counts, "a scenario of the depth caught it"
    assert Drawn(first, 3, "failed", right, 9, 2, True, "else", 1.0).blamed
    assert "names the condition: 1 of 2" in said
    assert line(found[0]).startswith("caught") and "fired     3" in line(found[0])


def test_a_condition_without_a_name_is_not_blamed() -> None:
    """A headline that cannot name a condition has not named it, and security is counted."""
    secure = next(one for one in defects() if one.condition.place and one.place.security)
    assert secure.named and drawn(secure, by=f"sent records leave {secure.named[0]}").blamed
    nameless = replace(secure, condition=replace(secure.condition, place=""))
    assert not drawn(nameless, by="a headline that names nothing").blamed
    said = "\n".join(summary([drawn(nameless), drawn(nameless, seen=False)], "7", "", 2))
    assert "names the condition: 0 of 1" in said and "security-relevant ones: 1 of 2" in said


def test_the_scenarios_of_a_depth_come_in_the_order_that_is_likely_to_see_it() -> None:
    """A card is put first to the scenarios that have its condition, to each of them once."""
    whole = {one.line() for one in array("quick", find(CARD))}
    for defect in draw(5, 3):
        lines = turns(defect, "quick")
        assert set(lines) == whole and len(lines) == len(whole)
        fitting = [met(defect, space().parse(line)) for line in lines]
        assert fitting == sorted(fitting, reverse=True), defect.id
    assert not turns(draw(5, 1)[0], "")


def test_the_standard_depth_makes_the_condition_of_every_card() -> None:
    """No drawn card escapes because nobody made its condition together with its fault, in its direction."""
    rows = [dict(row.values) for row in array("standard", find(CARD))]
    for one in defects():
        place, wanted = one.place.values, one.condition.values
        lost = place.get("trouble", "").startswith("lost")  # any lost frame makes a card ask for its place
        assert any(
            row["direction"] in (one.direction, "both")
            and (place.items() <= row.items() or (lost and row["trouble"].startswith("lost")))
            and (wanted.items() <= row.items() or not row.items().isdisjoint(one.condition.also))
            for row in rows
        ), one.id


def test_another_value_that_makes_the_condition_is_as_near() -> None:
    """A card that is wrong after another connection's packet is put to all that have several."""
    card = next(one for one in defects() if one.id == "tx-order--turn")
    counts = [space().parse(line)["connections"] for line in turns(card, "standard")[:24]]
    assert "1" not in counts and {"2", "9"} <= set(counts)


class Stopped:
    """A stand on which somebody presses Ctrl-C under the second card; `open`: whether its lab is up."""

    open = False

    def __init__(self, *_: object) -> None:
        self.ran = 0

    def __enter__(self) -> Stopped:
        Stopped.open = True
        return self

    def __exit__(self, *_: object) -> None:
        Stopped.open = False

    def do(self, step: Step) -> Found:
        self.ran += 1
        if self.ran > 1:
            raise KeyboardInterrupt
        return Found(step, "failed", "conditions.crossed", "sent records leave", 1.0, 1, "", "", "", 3)


def test_ctrl_c_is_a_line_and_leaves_no_lab(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A draw that somebody ends says so, keeps what was found, and ends its lab."""
    monkeypatch.setattr(benchmark, "Stand", Stopped)
    monkeypatch.setattr(benchmark, "ROOT", tmp_path)
    monkeypatch.setattr(benchmark, "built", lambda: None)
    monkeypatch.setattr(sys, "argv", ["drawn", "--draw", "7", "--count", "3"])
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        assert benchmark.main() == 130
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
    said = capsys.readouterr()
    assert said.out.count("caught") == 1 and "Traceback" not in said.err
    assert said.err == "drawn: stopped by Ctrl-C or SIGTERM; the lines above are the cards that ran\n"
    assert not Stopped.open and len(json.loads((tmp_path / "results/drawn-7/found.json").read_text())) == 1


@pytest.mark.parametrize("stopped", [True, False])
def test_a_card_that_a_signal_ended_is_not_recorded(
    stopped: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The signal ends the tests of a card first, as if the rig broke; a rig that breaks is recorded."""
    one, kept = defects()[0], list[Drawn]()
    work = benchmark.More([one], 1, "6.1", tmp_path, 1)

    def void(*_: object, **__: object) -> Drawn:
        if stopped:
            work.stop()
        return replace(drawn(one, seen=False), own_word="void")

    monkeypatch.setattr(benchmark, "SOON", 0.0)
    monkeypatch.setattr(benchmark, "nearest_or_void", void)
    monkeypatch.setattr(work, "_done", kept.append)
    work.lab(1)
    assert len(kept) == (not stopped)
