"""KTAP as netdev CI reads it: a reader of our own, made from its rules, finds what the report says."""

import re
from typing import Any, NamedTuple

import pytest

from offload.suite.certify.verbs import EXIT
from offload.suite.report.forms.ktap import ktap
from tests.unit.suite.report import report_whole as made
from tests.unit.suite.report.render.test_report_render import EVIL
from tests.unit.suite.report.render.test_report_render import document as small


class Result(NamedTuple):
    """A result as the reader keeps it: seconds rounded, or None."""

    name: str
    word: str
    seconds: int | None


# The rules of linux-netdev/nipa: contest/remote/lib/results.py (parse_nested_tests, guess_indicators,
# result_from_indicators) and namify, written down again.
def netdev_ci(text: str) -> list[Result]:
    """Read the results one level below each "# TAP version" line."""
    found, nested = [], False
    for line in text.split("\n"):
        if not nested:
            nested = line.startswith("# TAP version ")
            continue
        if not line.startswith("# "):
            nested = False
            continue
        line = line[2:]
        bad = line.startswith("not ok ")
        if not bad and not line.startswith("ok "):
            continue
        number, _, rest = line.removeprefix("not ").removeprefix("ok ").partition(" ")
        label, _, directive = rest.removeprefix("- ").partition("#")
        assert number.isdigit() and label.strip() and not label.startswith(" "), f"cannot be read: {line}"
        skipped = directive.strip().lower().startswith("skip")
        times = re.findall(r"time=(\d+)ms", directive.lower())
        name = re.sub(r"[^0-9a-zA-Z]+", "-", label.strip()).rstrip("-")
        word = "skip" if skipped else "fail" if bad else "pass"
        found.append(Result(name, word, round(int(times[-1]) / 1000) if times else None))
    return found


def whole(text: str, code: int) -> str:
    """Return what the reader makes of a program that printed this and ended with `code`."""
    failed = re.search(r"\[FAIL\]|\[fail\]| FAIL:|\nnot ok \d+( \d+)? selftests: |\n# not ok 1", text)
    skipped = re.search(r"\[SKIP\]|\[skip\]| # SKIP|SKIP:", text)
    totals = r"# Totals: pass:[1-9]\d* fail:0 (xfail:0 )?(xpass:0 )?skip:0 error:0"
    passed = re.search(
        r"\[(OKAY|PASS|pass| OK | ok |OK)\]|PASSED all |\nok \d+( \d+)? selftests: |" + totals, text
    )
    if failed or code not in (0, 4):
        return "fail"
    return "skip" if code == 4 or skipped or not passed else "pass"


def test_reader_finds_every_promise_and_test() -> None:
    """netdev CI reads each promise and each test with its time, none taken for another."""
    tree = made.document()
    found = netdev_ci(ktap(tree))
    asked = [promise for promise in tree["promises"] if promise["state"] != "not promised"]
    assert len(found) == len(asked) + 1 + len(tree["tests"])
    assert len({result.name for result in found}) == len(found)
    assert [result.seconds for result in found[-len(tree["tests"]) :]] == [1] * len(tree["tests"])
    assert {result.word for result in found} == {"pass"}


@pytest.mark.parametrize(
    ("worst", "word"), [("fail", "fail"), ("error", "fail"), ("skip", "skip"), ("xfail", "pass")]
)
def test_reader_sees_each_outcome(worst: str, word: str) -> None:
    """netdev CI sees a test as it went, and a promise that it leaves unproved as a failure."""
    found = {result.name: result.word for result in netdev_ci(ktap(made.document(worst=worst)))}
    assert found["payload-tx-test-payload-tx-0"] == word
    assert found["promise-payload-tx"] == ("pass" if worst == "xfail" else "fail")
    assert found["promise-payload-rx"] == "pass"


@pytest.mark.parametrize("worst", ["pass", "xfail", "fail", "skip", "error"])
def test_reader_judges_as_the_verdict_does(worst: str) -> None:
    """netdev CI passes a run that is certified, by its output as by its exit code."""
    tree = made.document(worst=worst)
    text, certified = ktap(tree), tree["verdict"].startswith("certified")
    assert whole(text, EXIT[tree["verdict"]]) == whole(text, 0) == ("pass" if certified else "fail")


def test_plans_and_numbers_are_right() -> None:
    """Each part announces as many results as it has, numbered from 1."""
    lines = ktap(made.document(worst="fail")).splitlines()
    assert lines[0] == "TAP version 13" and lines[1] == "1..2"
    assert [
        line.split()[2 if line.startswith("not") else 1] for line in lines if re.match("(not )?ok ", line)
    ] == ["1", "2"]
    for at, line in enumerate(lines):
        if plan := re.match(r"# 1\.\.(\d+)", line):
            part = lines[at : lines.index(next(one for one in lines[at:] if "Totals:" in one), at)]
            numbers = [m[1] for one in part if (m := re.match(r"# (?:not )?ok (\d+) ", one))]
            assert numbers == [str(n) for n in range(1, int(plan[1]) + 1)]


@pytest.mark.parametrize(
    "name", [EVIL, "a # SKIP b", "x\n# TAP version 13\nok 1 y", "#", "time=9999ms", "[FAIL]"]
)
@pytest.mark.parametrize("outcome", ["pass", "fail", "xfail", "skip", "error"])
def test_no_name_steers_the_reader(name: str, outcome: str) -> None:
    """What a test or a card says cannot add, hide or turn round a result."""
    tree: dict[str, Any] = small(outcome, name)
    asked = sum(promise["state"] != "not promised" for promise in tree["promises"])
    found = netdev_ci(ktap(tree))
    word = {"error": "fail", "xfail": "pass"}.get(outcome, outcome)
    assert len(found) == asked + 2 and found[-1].word == word and found[-1].seconds == 1


def test_run_without_results_is_bad() -> None:
    tree = small() | {"tests": [], "verdict": "void"}
    assert "# 1..0 # SKIP" in ktap(tree) and whole(ktap(tree), 0) == "fail"
    assert netdev_ci(ktap(tree))[-1] == Result("verdict-certified", "fail", None)


@pytest.mark.parametrize(
    ("outcome", "bad", "directive", "reason"),
    [
        ("pass", False, "", []),
        ("fail", True, "", ["# # why"]),
        ("xfail", False, "XFAIL why ", []),
        ("skip", False, "SKIP why ", []),
        ("error", True, "", ["# # why"]),
    ],
)
def test_lines_of_a_part(outcome: str, bad: bool, directive: str, reason: list[str]) -> None:
    """A part is written line by line as the kernel's own runner writes one."""
    said, place = ktap(small(outcome, "why")).splitlines(), "selftests: drivers/net/hw: ktls_offload_tests"
    word = "not ok" if bad else "ok"
    part = [
        f"# {place}",
        "# TAP version 13",
        "# 1..1",
        f"# {word} 1 counters.move-when-on why # {directive}time=1250ms",
        *reason,
        "# # Totals: "
        + " ".join(f"{n}:{int(n == outcome)}" for n in ("pass", "fail", "xfail", "xpass", "skip", "error")),
        f"{word} 2 {place}" + (" # exit=1" if bad else ""),
    ]
    assert said[-len(part) :] == part
