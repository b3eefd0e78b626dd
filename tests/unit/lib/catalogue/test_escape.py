"""Recorded runs against bad cards say which test and which check of the suite is needed."""

from __future__ import annotations

import builtins
import json
import runpy
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from offload.errors import ConfigError
from tests.lib.catalogue import plugin as catalogue_plugin
from tests.lib.catalogue.plugin import CHECKS
from tests.nicsim import escape, escape_found, escape_page
from tests.nicsim.escape_checks import FOLDERS, ROOT, Check, checks, switched
from tests.nicsim.escape_found import Said, gather
from tests.nicsim.escape_read import cards, credit
from tests.nicsim.escape_run import Mutants

SUITE = """\
def helper(x):
    assert x == 1
    if x:
        assert (
            x
        ), "two lines and more"


class Switch:
    def set(self):
        assert helper(1)
"""
FIRST = Check("tests/lib/flow/proof.py", "helper", 1, 2, 2)
SECOND = Check("tests/lib/flow/proof.py", "helper", 2, 4, 6)
METHOD = Check("tests/lib/flow/proof.py", "Switch.set", 1, 11, 11)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A suite of one file, and some that are no part of it."""
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
    for name in ("flow/proof.py", "life/many_connections.py", "catalogue.py"):
        (tmp_path / "tests/lib" / name).write_text(SUITE)
    return tmp_path


def event(test: str, outcome: str, promise: str = "payload.tx", place: str = "") -> dict[str, object]:
    """A test event as the plug-in writes it; `place`: where the traceback ends."""
    details = (
        f"tests/hw/test_1.py:5: \n_ _ _\nE   AssertionError: no\n\n{place}: AssertionError" if place else ""
    )
    head = {
        "schema": 2,
        "event": "test",
        "id": f"tests/hw/{test}",
        "seconds": 1.0,
        "reason": "",
        "evidence": {},
    }
    return head | {"outcome": outcome, "promise": promise, "cell": None, "details": details}


def recorded(folder: Path, name: str, *found: dict[str, object]) -> None:
    """A file of events, of a run that came to its end if it has any."""
    folder.mkdir(parents=True, exist_ok=True)
    ends = [{"schema": 2, "event": "run-end", "exit": 1, "seconds": 1.0}] if found else []
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(e) + "\n" for e in (*found, *ends)))


def test_every_assert_is_a_check(tree: Path) -> None:
    """A check is known by file, function and number, and what judges no card is none."""
    assert checks(tree) == [FIRST, SECOND, METHOD]
    assert [str(check) for check in checks(tree)] == [
        "lib/flow/proof.py:helper:1",
        "lib/flow/proof.py:helper:2",
        "lib/flow/proof.py:Switch.set:1",
    ]


def test_a_check_can_be_switched_off(tree: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The copy asks at each assert that fails whether it is off, and no line moves."""
    off: list[str] = []
    monkeypatch.setitem(vars(builtins), "check_is_off", lambda name: name in off)
    text = switched(SUITE, checks(tree))
    assert len(text.splitlines()) == len(SUITE.splitlines())
    assert text.splitlines()[1] == '    assert (x == 1) or check_is_off("lib/flow/proof.py:helper:1")'
    (tree / "proof.py").write_text(text)
    space = runpy.run_path(str(tree / "proof.py"))
    with pytest.raises(AssertionError):
        space["helper"](2)
    off.append(str(FIRST))
    space["helper"](2)
    with pytest.raises(AssertionError):
        space["Switch"]().set()


def test_each_real_check_can_be_switched_off() -> None:
    """Every file of this suite can be read by Python with its checks guarded, line by line."""
    found = checks(ROOT)
    assert len(found) > 150
    for file in dict.fromkeys(check.file for check in found):
        text = (ROOT / file).read_text()
        mine = [check for check in found if check.file == file]
        guarded = switched(text, mine)
        compile(guarded, file, "exec")
        assert guarded.count("check_is_off") == len(mine) and guarded.count("\n") == text.count("\n")


def test_credit(tmp_path: Path) -> None:
    """Cards are credited to tests and checks; what escaped or has no check is listed."""
    recorded(
        tmp_path / "r",
        "leak",
        event("a", "fail", place="tests/lib/flow/proof.py:5"),
        event("b", "fail", "wire.records", "tests/lib/flow/proof.py:2"),
    )
    recorded(tmp_path / "r", "tag", event("a", "fail", place="tests/lib/flow/proof.py:2"), event("c", "pass"))
    recorded(tmp_path / "r", "odd", event("a", "pass"))
    recorded(tmp_path / "r", "raised", event("b", "fail", "wire.records", "tests/lib/life/life.py:1"))
    recorded(tmp_path / "r", "none")
    recorded(tmp_path / "r", "other-file", event("z", "fail"))
    facts = credit(
        list(cards(tmp_path / "r", ["leak", "tag", "odd", "raised", "none"])), [FIRST, SECOND, METHOD]
    )
    assert facts.caught == {"a": ["leak", "tag"], "b": ["leak", "raised"], "c": []}
    assert facts.alone == {"a": ["tag"], "b": [], "c": []}
    assert facts.single == {"payload.tx": "a", "wire.records": "b"}
    assert facts.deciding == {str(SECOND): ["leak"], str(FIRST): ["leak", "tag"]}
    assert (facts.escaped, facts.elsewhere) == (["odd"], ["raised: b at tests/lib/life/life.py:1"])
    assert facts.deciding == {str(SECOND): ["leak"], str(FIRST): ["leak", "tag"]}


def reported(tmp_path: Path, *notes: tuple[str, str, str]) -> Said:
    """What is known of three cards after these (check, card, by) were found."""
    failing = event("a", "fail", place="tests/lib/flow/proof.py:5")
    recorded(tmp_path / "r", "tx-leak", failing, event("b", "fail", place="tests/lib/flow/proof.py:2"))
    recorded(
        tmp_path / "r",
        "tx-bad-tag",
        event("a", "fail", place="tests/lib/flow/proof.py:2"),
        event("c", "pass"),
    )
    known = [FIRST, SECOND, METHOD]
    found = gather(tmp_path / "r", tmp_path / "e", known)
    for check, card, by in notes:
        assert found.asked(check, card)
        found.note(check, card, by, 7.0)
        assert not found.asked(check, card)
    assert not found.asked("lib/life/life.py:1", "tx-leak"), "that is no check"
    return gather(tmp_path / "r", tmp_path / "e", known).said("6.1")  # kept in the folder


def test_what_is_said_of_the_checks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A check is needed if one of its cards escapes, redundant if all are caught, else left."""
    monkeypatch.setattr(escape_found, "collected", lambda: {"a": "payload.tx", "z": "sizes.tx"})
    notes = ((str(FIRST), "tx-bad-tag", ""), (str(SECOND), "tx-leak", str(FIRST)))
    said = reported(tmp_path, *notes)
    assert (said.needed(), said.redundant(), said.left()) == ([str(FIRST)], [str(SECOND)], [])
    text = escape_page.section(said)
    assert (
        "| `a` | tx-bad-tag | tx-leak |" in text and "Ran against a bad card and caught nothing: `c`." in text
    )
    assert "| `lib/flow/proof.py:helper:1` | tx-bad-tag |" in text
    assert "* `lib/flow/proof.py:helper:2`: tx-leak by `lib/flow/proof.py:helper:1`" in text
    assert "Promises that no card of the catalog breaks: `sizes.tx`." in text
    assert "Recorded on 6.1: 2 of the " in text and "Switch.set" not in text
    every = replace(said, rows=[row for row in said.rows if row.id in ("tx-leak", "tx-bad-tag")])
    assert "* `lib/flow/proof.py`: Switch.set" in escape_page.section(every)
    assert "2 of the 2 tests are in no triage" in text
    assert reported(tmp_path / "2", notes[1]).left() == [str(FIRST)]


def test_another_check_that_decided_needs_no_run(tmp_path: Path) -> None:
    """A card that two checks decided is caught by the other one, and nothing runs."""
    recorded(
        tmp_path,
        "tx-leak",
        event("a", "fail", place="tests/lib/flow/proof.py:5"),
        event("b", "fail", place="tests/lib/flow/proof.py:2"),
    )
    stand: Any = None
    bench = Mutants(stand, tmp_path, [FIRST, SECOND])
    [card] = cards(tmp_path, ["tx-leak"])
    assert bench.fired(card) == {"a": (str(SECOND),), "b": (str(FIRST),)}
    assert bench.without(str(FIRST), card) == str(SECOND) and bench.without(str(SECOND), card) == str(FIRST)


class Stand:
    """A lab that runs nothing: what came of a step is given."""

    off = ""

    def __init__(self, folder: Path, *found: dict[str, object]) -> None:
        self.folder, self.found, self.asked = folder, found, ()

    def do(self, step: Any) -> None:
        """Write down what came of it."""
        self.asked = (self.off, *step.tests)
        recorded(self.folder, step.id, *self.found)


@pytest.mark.parametrize(
    ("found", "by"),
    [
        (event("a", "pass"), ""),
        (event("a", "fail", place="tests/lib/flow/proof.py:5"), str(SECOND)),
        (event("a", "fail", place="tests/lib/life/life.py:1"), "tests/lib/life/life.py:1"),
        (event("a", "error"), "void"),
    ],
)
def test_a_report_of_another_check_is_one_of_two(tmp_path: Path, found: dict[str, object], by: str) -> None:
    """A check whose failure another one tells is taken away too, and the test runs again."""
    failing = event("a", "fail", place="tests/lib/flow/proof.py:5") | {
        "evidence": {CHECKS: [str(FIRST), str(SECOND)]}
    }
    recorded(tmp_path, "tx-leak", failing)
    stand: Any = Stand(tmp_path, found)
    bench = Mutants(stand, tmp_path, [FIRST, SECOND])
    [card] = cards(tmp_path, ["tx-leak"])
    assert bench.fired(card) == {"a": (str(FIRST), str(SECOND))}
    assert credit([card], [FIRST, SECOND]).deciding == {str(FIRST): ["tx-leak"], str(SECOND): ["tx-leak"]}
    assert bench.without(str(FIRST), card) == by
    assert stand.asked == (str(FIRST), "a") and stand.off == ""


def test_a_check_that_fails_is_noted_unless_it_is_off(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check that failed is noted once beside its test, in the order of failing."""
    item: Any = SimpleNamespace(user_properties=[])
    monkeypatch.setattr(catalogue_plugin, "RUNNING", [item])
    monkeypatch.setattr(catalogue_plugin, "OFF", ["b"])
    assert [catalogue_plugin.check_is_off(name) for name in "cbac"] == [False, True, False, False]
    assert item.user_properties == [(CHECKS, ["c", "a"])]


def test_folder_without_results_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder that holds no run against bad cards is answered with how to make one."""
    monkeypatch.setattr(escape, "ROOT", tmp_path)
    assert escape.main([str(tmp_path)]) == ConfigError.exit_code
    assert "no events of bad cards" in capsys.readouterr().err
