"""The catalogue of bad cards: what its file must look like, what a day runs, and what stands in the docs."""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, timedelta
from pathlib import Path

import pytest

from offload.card.profile import find
from offload.errors import ConfigError
from offload.suite.report import criteria, facts
from offload.suite.report.events import Log
from offload.suite.report.verdict import judge
from tests.lib.catalogue import page as catalogue_page
from tests.lib.catalogue import rows as catalogue
from tests.lib.catalogue.drawn import defects
from tests.lib.catalogue.page import BEGIN, END
from tests.lib.catalogue.rows import KERNELS, PARTS, Row, Step, chosen, load, short, steps, today
from tests.lib.catalogue.run import judged, reported
from tests.lib.catalogue.suite import Outcome
from tests.unit.hw_tests import Tests

ROOT = Path(__file__).parents[4]
HW = ROOT / "tests/hw"
ROWS, DEBUG_ROWS, REKEY_ROWS = load(), catalogue.of_kernel(catalogue.DEBUG), load(catalogue.REKEY_FILE)
GOOD = """
cards:
  - id: one
    title: "does wrong"
    story: "a reason"
    family: plaintext
    knobs: 0/tx_leak=1
    tests: ["test_20_wire.py::test_sends[tx]"]
    breaks: payload.tx
    evidence: "plaintext"
"""


@pytest.mark.parametrize("card", sorted({row.card for row in ROWS}))
def test_each_row_names_tests_that_there_are(card: str, hw_tests: Tests) -> None:
    """A row's tests are tests of its card, and one of them is of the promise that it breaks."""
    there = {short(name): promise for name, (promise, _) in hw_tests[card].items()}
    for row in (row for row in ROWS + DEBUG_ROWS if row.card == card):
        assert set(row.tests) <= set(there), f"{row.id}: {set(row.tests) - set(there)}"
        everywhere = bool(row.breaks) and criteria.load().promises[row.breaks].frames is not None
        assert not row.breaks or everywhere or row.breaks in {there[test] for test in row.tests}, row.id


def test_a_kernel_that_hands_over_tls13_has_rows_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are run there, and only there; each names tests of KeyUpdate."""
    monkeypatch.setattr(catalogue, "hands_over_tls13", lambda series: series == "own-1")
    there, written = catalogue.of_kernel("own-1"), (HW / "4_lifetime/test_44_key_update.py").read_text()
    assert chosen(there, "all", "own-1") == there and len(there) == len(REKEY_ROWS) >= 6
    assert catalogue.of_kernel("own-2") == ROWS and not set(chosen(there, "all", "7.2"))
    names = {name for row in there for test in row.tests for name in re.findall(r"::(\w+)", test)}
    assert names == {name for name in re.findall(r"def (test_\w+)", written)}, names


def knobs_there_are() -> set[str]:
    """Every knob of the simulated card: a file in its debugfs folder that can be written."""
    text = "".join(path.read_text() for path in (ROOT / "native" / "nicsim").rglob("*.c"))
    files = set(re.findall(r'debugfs_create_file_unsafe\(\s*"(\w+)"', text)) - {"reset"}
    conditions = {f"when_{name}" for name in re.findall(r"\bWHEN\((\w+),", text)} - {"when_name"}
    return files | conditions | set(re.findall(r"\bKNOB\((\w+)\)", text)) - {"field"}


def test_every_knob_makes_a_card_of_the_catalogue() -> None:
    """Each knob of nicsim is turned by a row or drawn, but for the cable's and some helpers."""
    cards = [row.knobs for row in ROWS + DEBUG_ROWS + REKEY_ROWS] + [defect.knobs for defect in defects()]
    turned = {name for knobs in cards for name in re.findall(r"\d/(\w+)=", knobs)}
    there = {name for name in knobs_there_are() if not name.startswith("wire_")}
    assert turned <= knobs_there_are(), f"nicsim has no knob {turned - knobs_there_are()}"
    assert there - turned <= {"tx_fail", "ctx_limit", "esp", "when_every"}, f"no row turns {there - turned}"


def test_there_are_forty_and_each_family_has_one() -> None:
    """The catalogue has at least forty bad cards, and odd ones that have to pass."""
    assert sum(row.end != "good" for row in ROWS) >= 40
    assert {row.family for row in ROWS} == set(catalogue.FAMILIES)
    assert sum(row.end == "good" for row in ROWS) >= 3


def test_plaintext_and_forgery_are_run_every_day() -> None:
    """What secrecy and authenticity hang on is in every slice."""
    critical = {"plaintext", "nonce"}
    assert [row.id for row in ROWS if row.family in critical and not row.security] == []


@pytest.mark.parametrize("kernel", KERNELS)
def test_a_few_days_run_every_row(kernel: str) -> None:
    """Each row is run within some days, and a security-critical one each day."""
    days = [(date(2026, 1, 1) + timedelta(n)).isoformat() for n in range(PARTS)]
    slices = [set(chosen(ROWS, day, kernel)) for day in days]
    assert set.union(*slices) == set(chosen(ROWS, "all", kernel))
    assert set.intersection(*slices) == {row for row in ROWS if row.security and kernel in row.kernels}


def test_the_debug_kernel_has_rows_of_its_own() -> None:
    """What only its tools see is run there alone, breaks the promise of the log, and names the tool."""
    assert {row.id for row in chosen(DEBUG_ROWS, "all", catalogue.DEBUG)} == {row.id for row in DEBUG_ROWS}
    assert (
        not {row.id for row in DEBUG_ROWS} & {row.id for row in ROWS} and chosen(ROWS, "all", "debug") == ()
    )
    tools = {row.evidence.partition(":")[0] for row in DEBUG_ROWS}
    assert tools == {"KASAN", "lockdep", "DEBUG_ATOMIC_SLEEP", "kmemleak"}
    assert {row.breaks for row in DEBUG_ROWS} == {"rig.clean-log"}
    assert reported(Step("x", "nicsim", DEBUG_ROWS[0], ())) and not reported(Step("x", "nicsim", ROWS[0], ()))


def test_a_good_card_stands_after_every_few_bad_ones() -> None:
    """The good cards of a run pass every test that catches a bad one, on the same labs."""
    found = list(steps(ROWS, catalogue.CARDS))
    every = {test for row in ROWS for test in row.tests}
    for card in catalogue.CARDS:
        good = [step for step in found if step.card == card and step.row is None]
        assert {test for step in good for test in step.tests} == every
        assert [step for step in found if step.card == card][-1].row is None
    assert len({step.id for step in found}) == len(found)


def test_a_day_is_a_date() -> None:
    assert today("2026-02-03") == "2026-02-03" and today("all") == "all"
    assert date.fromisoformat(today())
    with pytest.raises(ConfigError, match="slice 'noon'"):
        today("noon")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("one", "One", r"cat.yaml:3: cards\[0\].id: 'One'"),
        ("plaintext\n", "plain\n", r"cat.yaml:6: cards\[0\].family: 'plain', wanted one of .*plaintext"),
        ("0/tx_leak=1", "tx_leak", r"cat.yaml:7: cards\[0\].knobs: 'tx_leak' are not knobs"),
        ("test_20_wire.py::test_sends[tx]", "test_sends", r"cat.yaml:8: cards\[0\].tests\[0\]"),
        ("payload.tx", "payload.xt", r"cat.yaml:9: .*unknown promise 'payload.xt' \(did you mean payload"),
        ('"plaintext"', '"(plain"', r"cat.yaml:10: .*'\(plain' is no pattern"),
        ("    breaks: payload.tx\n", "", r"cat.yaml:3: cards\[0\]: breaks is missing for a card that ends f"),
        ("    family", "    color: red\n    family", r"cat.yaml:6: cards\[0\]: unknown key 'color'"),
        ("cards:", "card:", r"cat.yaml:2: unknown key 'card' \(did you mean cards"),
    ],
)
def test_a_wrong_row_is_reported_where(tmp_path: Path, old: str, new: str, says: str) -> None:
    """A mistake in the catalogue is told with file, line, key, and what was wanted."""
    path = tmp_path / "cat.yaml"
    path.write_text(GOOD)
    assert load(path)[0].id == "one"
    path.write_text(GOOD.replace(old, new, 1))
    with pytest.raises(ConfigError, match=says):
        load(path)


def test_a_row_twice_is_refused(tmp_path: Path) -> None:
    """Two rows of one name are refused at the second."""
    path = tmp_path / "cat.yaml"
    path.write_text(GOOD + GOOD.partition("cards:\n")[2])
    with pytest.raises(ConfigError, match=r"cat.yaml:11: cards\[1\]: id 'one' is taken"):
        load(path)


def outcome(**tests: str) -> Outcome:
    """A run in which these tests, by promise, ended so; a failure says `plaintext`."""
    events = [
        {"event": "run-start", "rig": {}, "profile": "connectx-6-dx", "kernel": "6.1", "simulated": True},
        {"event": "plan", "deselected": [], "tests": []},
    ]
    for name, how in tests.items():
        test = {"id": f"test_{name}", "promise": name.replace("_", "."), "cell": None, "outcome": how}
        reason = "" if how == "pass" else "plaintext"
        events.append({"event": "test", **test, "seconds": 1.0, "reason": reason, "evidence": {}})
    events.append({"event": "run-end", "exit": int("fail" in tests.values()), "seconds": 1.0})
    log = Log([{"schema": 2, "seq": seq, **event} for seq, event in enumerate(events)])
    verdict = judge(log, criteria.load(), facts.of(find("connectx-6-dx")))
    return Outcome(verdict, {name: how for name, how in tests.items()}, "")


def wrong(row: Row, **tests: str) -> str:
    """What is not as the catalogue wants it, of a run that ended so."""
    return judged(catalogue.Step(row.id, row.card, row, row.tests), outcome(**tests))


@pytest.mark.parametrize("day", [f"2026-11-{number}" for number in range(10, 17)])
def test_a_good_card_is_asked_something(day: str) -> None:
    """No slice has a step without tests: that would be the whole suite."""
    whole = [s for s in steps(chosen(ROWS, day, "6.1")) if s.row is None]
    asked = [catalogue.spared(s, day) for s in whole]
    assert asked and all(s.tests for s in asked)
    assert 3 * sum(len(s.tests) for s in asked) <= sum(len(s.tests) for s in whole) + 3 * len(asked)


def test_only_good_cards_of_a_day_are_spared() -> None:
    """Three days have each test of a good step, and a bad card always has all of its own."""
    good = Step("good", "nicsim", None, tuple("abcdefg"))
    bad = Step("bad", "nicsim", ROWS[0], ROWS[0].tests)
    days = [(date(2026, 1, 1) + timedelta(n)).isoformat() for n in range(3)]
    parts = [catalogue.spared(good, day).tests for day in days]
    assert sorted(test for part in parts for test in part) == sorted(good.tests)
    assert {catalogue.spared(bad, day) for day in days} == {bad} and catalogue.spared(good, "all") == good
    assert catalogue.spared(replace(good, tests=("a",)), days[2]).tests == ("a",)


def test_a_row_is_held_to_word_promise_and_evidence(tmp_path: Path) -> None:
    """A card that passes, breaks another promise first, or says something else is told."""
    path = tmp_path / "cat.yaml"
    path.write_text(GOOD)
    row = load(path)[0]
    assert wrong(row, payload_tx="fail") == ""
    assert wrong(row, payload_tx="pass").startswith("ends incomplete, wanted failed")
    assert wrong(row, payload_tx="error").startswith("ends void, wanted failed")
    other = replace(row, breaks="enable.switch")
    assert wrong(other, payload_tx="fail", enable_switch="fail").startswith("names payload.tx first")
    assert wrong(replace(row, evidence="leak"), payload_tx="fail").startswith("says 'plaintext")
    good = replace(row, end="good", breaks="", evidence="")
    assert wrong(good, payload_tx="pass") == ""
    assert "payload.tx: plaintext" in wrong(good, payload_tx="fail")
    assert "'skip'" in wrong(good, payload_tx="skip")
    assert "nothing ran" in wrong(good)
    assert wrong(replace(row, end="void", breaks=""), payload_tx="error") == ""


def test_the_page_has_the_table_of_the_catalogue() -> None:
    """docs/certify/bad-nics.md shows every row as the catalogue has it."""
    shown = catalogue_page.rows_of(catalogue_page.PAGE.read_text())
    assert len(shown) == len(ROWS), "make certify-the-certifier WRITE=1"
    for row, cells in zip(ROWS, shown, strict=True):
        was = {row.id: {"line": cells[4], "seconds": 0.0}}
        want = catalogue_page.rows_of(BEGIN + "\n" + catalogue_page.table([row], was))[0]
        assert list(cells[:4]) == list(want[:4]), f"{row.id}: make certify-the-certifier WRITE=1"


def test_the_page_names_tests_of_the_catalogue() -> None:
    """Each test that the page credits with a card is one that rows of the catalogue name."""
    page = catalogue_page.PAGE.read_text().partition("| test | catches alone | with others |\n")[2]
    shown = re.findall(r"^\| `(test_\S+)` \|", page.partition("\n\n")[0], re.M)
    assert len(shown) > 20 and set(shown) - {test for row in ROWS for test in row.tests} == set()


def test_a_page_without_a_place_is_not_written() -> None:
    """A page whose marks are gone is refused, and text around the table is kept."""
    row = ROWS[0]
    was = {row.id: {"line": "a | b [test_x.py::test_y]", "seconds": 1.2}}
    text = catalogue_page.page(f"before\n{BEGIN}\nold\n{END}\nafter\n", [row], was)
    assert text.startswith("before\n") and text.endswith("\nafter\n") and "old" not in text
    assert r"a \| b |" in text
    with pytest.raises(ValueError, match="no line"):
        catalogue_page.page("nothing", [row], was)
