"""Without a NIC recorded runs against bad cards say which test and which check of the suite is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from offload.errors import ConfigError
from tests.nicsim import escape
from tests.nicsim.escape_checks import FOLDERS, ROOT, Check, checks, without
from tests.nicsim.escape_read import cards, credit

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
FIRST = Check("tests/lib/proof.py", "helper", 1, 2, 2)
SECOND = Check("tests/lib/proof.py", "helper", 2, 4, 6)
METHOD = Check("tests/lib/proof.py", "Switch.set", 1, 11, 11)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A suite of one file, and some that are no part of it."""
    for folder in FOLDERS:
        (tmp_path / folder).mkdir(parents=True)
    for name in ("proof.py", "crowd.py", "catalogue_run.py"):
        (tmp_path / "tests/lib" / name).write_text(SUITE)
    return tmp_path


def event(test: str, outcome: str, promise: str = "payload.tx", place: str = "") -> dict[str, object]:
    """A test event as the plug-in writes it; `place`: where the traceback ends."""
    details = (
        f"tests/hw/test_1.py:5: \n_ _ _\nE   AssertionError: no\n\n{place}: AssertionError" if place else ""
    )
    head = {
        "schema": 1,
        "event": "test",
        "id": f"tests/hw/{test}",
        "seconds": 1.0,
        "reason": "",
        "evidence": {},
    }
    return head | {"outcome": outcome, "promise": promise, "cell": None, "details": details}


def recorded(folder: Path, name: str, *found: dict[str, object]) -> None:
    """A file of events, of a run that came to its end if it has any."""
    folder.mkdir(exist_ok=True)
    ends = [{"schema": 1, "event": "run-end", "exit": 1, "seconds": 1.0}] if found else []
    (folder / f"{name}.jsonl").write_text("".join(json.dumps(e) + "\n" for e in (*found, *ends)))


def test_every_assert_is_a_check(tree: Path) -> None:
    """Without a NIC a check is known by file, function and number, and what judges no card is none."""
    assert checks(tree) == [FIRST, SECOND, METHOD]
    assert [str(check) for check in checks(tree)] == [
        "lib/proof.py:helper:1",
        "lib/proof.py:helper:2",
        "lib/proof.py:Switch.set:1",
    ]


def test_without_a_check_all_else_stays_where_it_was() -> None:
    """Without a NIC the copy lacks this assert and no line moves, also where it has several."""
    less = without(SUITE, SECOND).splitlines()
    assert less[3:6] == ["        pass", "", ""] and len(less) == len(SUITE.splitlines())
    assert without(SUITE, FIRST).splitlines()[:3] == ["def helper(x):", "    pass", "    if x:"]


def test_each_real_check_can_be_taken_away() -> None:
    """Without a NIC every check of this suite leaves a file that Python can read."""
    found = checks(ROOT)
    assert len(found) > 150
    for check in found:
        compile(without((ROOT / check.file).read_text(), check), check.file, "exec")


def test_credit(tmp_path: Path) -> None:
    """Without a NIC cards are credited to tests and checks; what escaped or has no check is listed."""
    recorded(
        tmp_path / "r", "leak",
        event("a", "fail", place="tests/lib/proof.py:5"),
        event("b", "fail", "wire.records", "tests/lib/proof.py:2"),
    )  # fmt: skip
    recorded(tmp_path / "r", "tag", event("a", "fail", place="tests/lib/proof.py:2"), event("c", "pass"))
    recorded(tmp_path / "r", "odd", event("a", "pass"))
    recorded(tmp_path / "r", "raised", event("b", "fail", "wire.records", "tests/lib/life.py:1"))
    recorded(tmp_path / "r", "none")
    recorded(tmp_path / "r", "other-file", event("z", "fail"))
    facts = credit(
        list(cards(tmp_path / "r", ["leak", "tag", "odd", "raised", "none"])), [FIRST, SECOND, METHOD]
    )
    assert facts.caught == {"a": ["leak", "tag"], "b": ["leak", "raised"], "c": []}
    assert facts.alone == {"a": ["tag"], "b": [], "c": []}
    assert facts.single == {"payload.tx": "a", "wire.records": "b"}
    assert facts.deciding == {str(SECOND): ["leak"], str(FIRST): ["leak", "tag"]}
    assert (facts.escaped, facts.elsewhere) == (["odd"], ["raised: b at tests/lib/life.py:1"])
    text = escape.table(
        facts,
        [FIRST, SECOND, METHOD],
        {str(FIRST): {"leak": str(SECOND), "tag": ""}, str(SECOND): {"leak": str(FIRST)}},
    )
    assert "a: leak tag*" in text and "tests that ran and caught nothing (1):\n  c" in text
    assert "checks that decided no card (1):\n  lib/proof.py:Switch.set:1" in text
    assert "redundant checks (1):\n  lib/proof.py:helper:2: leak caught by lib/proof.py:helper:1" in text
    assert "without which a card escapes (1):\n  lib/proof.py:helper:1" in text and "tag ESCAPES" in text


def test_folder_without_results_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without a NIC a folder that holds no run against bad cards is answered with how to make one."""
    assert escape.main([str(tmp_path)]) == ConfigError.exit_code
    assert "holds no events of bad cards" in capsys.readouterr().err
