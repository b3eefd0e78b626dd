"""What the results mean: a pure function of events, criteria and the facts of the profile."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from offload.suite.report import captured, crossed, judged, wire
from offload.suite.report.cells import CellState, contradiction, truth_table
from offload.suite.report.criteria import Criteria, Criterion
from offload.suite.report.events import Log
from offload.suite.report.facts import Facts
from offload.suite.report.void import why_void

CERTIFIED = "certified"
LIMITED = "certified with limitations"
INCOMPLETE = "incomplete"
FAILED = "failed"
VOID = "void"
EMPTY = "the profile promises nothing, so there is nothing to certify"


class State(StrEnum):
    """What became of a promise."""

    KEPT = "kept"
    LIMITED = "limited"
    BROKEN = "broken"
    UNPROVED = "not proved"
    UNPROMISED = "not promised"


class Gap(StrEnum):
    """What a promise that is not proved lacks."""

    SKIPPED = "skipped"
    RIG = "the rig broke"
    LEFT_OUT = "left out of this run"
    NO_RESULT = "planned, but has no result"
    NO_PROOF = "no proof"
    TOO_FEW = "too few tests"
    UNCOVERED = "cells not tested"
    UNMEASURED = "not measured"
    UNCROSSED = "conditions not crossed"


class Lack(NamedTuple):
    """Why a promise is not proved: what kind of gap it is, and the sentence for a person.

    `why`: what a skipped test said, alone.
    """

    gap: Gap
    words: str
    why: str = ""


class Broken(NamedTuple):
    """How a test shows that a promise is broken: what was seen, and the id of the test."""

    seen: str
    test: str

    def __str__(self) -> str:
        return f"{self.seen} [{self.test}]"


class Defect(NamedTuple):
    """What a failed card does wrong: the promise (may be empty), its fault, what was seen, the test's id."""

    promise: str
    fault: str
    seen: str
    test: str


@dataclass(frozen=True)
class PromiseState:
    """What became of one promise, why (empty when kept), its tests, and what it lacks if unproved."""

    criterion: Criterion
    state: State
    reason: str
    tests: tuple[str, ...]
    gap: Gap | None = None
    why: str = ""
    broken: Broken | None = None


@dataclass(frozen=True)
class Verdict:
    """The word, one line for a person, every reason behind it, and the promises and cells one by one.

    `defect`: what a failed card does wrong, worst first.
    """

    word: str
    headline: str
    reasons: tuple[str, ...]
    promises: tuple[PromiseState, ...]
    cells: tuple[CellState, ...]
    limitations: Mapping[str, tuple[str, ...]]
    defect: Defect | None = None


def judge(log: Log, criteria: Criteria, facts: Facts) -> Verdict:
    """Return the verdict on a run. Nothing is read or written: the same arguments give the same answer."""
    tests = log.results()
    cells = truth_table(tests, facts)
    promises = tuple(
        _promise(criterion, log, tests, cells, facts) for criterion in criteria.promises.values()
    )
    limits = _limitations(tests, facts)
    void = why_void(log, criteria, facts)
    empty = [] if facts.promised else [EMPTY]
    strays = _stray_failures(tests, facts)
    word, reasons = _word(void, [f"{one.test}: {one.seen}" for one in strays], empty, promises, limits)
    defect = _defect(promises, strays) if word == FAILED else None
    said = _headline(word, reasons, promises, facts, defect)
    remark = judged.remark(log, facts.name)
    headline = f"{said} ({remark})" if remark else said
    return Verdict(word, headline, tuple(reasons), promises, cells, limits, defect)


def _word(
    void: list[str],
    stray: list[str],
    empty: list[str],
    promises: Sequence[PromiseState],
    limits: Mapping[str, Sequence[str]],
) -> tuple[str, list[str]]:
    """Return the first word that has a reason, in order of severity, and its reasons."""
    blockers = [promise for promise in promises if promise.criterion.blocker]
    failed = [_line(promise) for promise in blockers if promise.state is State.BROKEN] + stray
    missing = empty + [_line(p) for p in blockers if p.state is State.UNPROVED and p.criterion.required]
    others = [p for p in promises if not p.criterion.required and _counts(p)]
    limited = [_line(p) for p in promises if p.state is State.LIMITED] + [_line(p) for p in others]
    for word, reasons in ((VOID, void), (FAILED, failed), (INCOMPLETE, missing)):
        if reasons:
            return word, reasons
    limited = limited or [f"known limitation {name}" for name in limits]
    return (LIMITED, limited) if limited else (CERTIFIED, [])


def _counts(promise: PromiseState) -> bool:
    """Say whether a promise that blocks nothing limits the certificate: not if the rig lacked something."""
    if promise.state is State.UNPROVED:
        return promise.gap is not Gap.SKIPPED
    return promise.state is State.BROKEN


def _line(promise: PromiseState) -> str:
    return f"{promise.criterion.id}: {promise.reason}"


def _defect(promises: Sequence[PromiseState], strays: Sequence[Broken]) -> Defect:
    """Return what a failed card does wrong: the first promise broken that blocks, else a test of none."""
    for state in promises:
        if state.broken and state.criterion.blocker:
            fault = state.criterion.fault or f"breaks its promise: {state.criterion.title}"
            return Defect(state.criterion.id, fault, *state.broken)
    return Defect("", "fails a test that belongs to no promise", *strays[0])


def _headline(
    word: str,
    reasons: Sequence[str],
    promises: Sequence[PromiseState],
    facts: Facts,
    defect: Defect | None,
) -> str:
    """Return one line for a person: what a failed card does wrong, why a run is incomplete or void."""
    if word in (CERTIFIED, LIMITED):
        return f"{facts.name} {_kept(promises, ', with limitations' if word == LIMITED else '')}"
    more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
    if defect:
        return f"{facts.name} {defect.fault}: {defect.seen}{more}"
    first = {INCOMPLETE: "not proved:", VOID: "says nothing about the NIC:"}[word]
    return f"{first} {reasons[0]}{more}"


def _kept(promises: Sequence[PromiseState], how: str) -> str:
    """Return what a certified card keeps, and how: what the certificate requires, then what it does not."""
    asked = [promise for promise in promises if promise.state is not State.UNPROMISED]
    required = sum(promise.criterion.required for promise in asked)
    optional = [promise for promise in asked if not promise.criterion.required]
    untested = [promise for promise in optional if promise.state is State.UNPROVED]
    broken = [promise.criterion.id for promise in optional if promise.state is State.BROKEN]
    said = f"keeps all {required} required promises{how}"
    if optional and not untested and not broken:
        return f"keeps all {required} required and all {len(optional)} optional promises{how}"
    whys = list(dict.fromkeys(promise.why or str(promise.gap) for promise in untested))
    parts = [f"{len(untested)} optional not tested: {', '.join(whys)}"] if untested else []
    parts += [f"{len(broken)} optional broken: {', '.join(broken)}"] if broken else []
    return "; ".join([said, *parts])


def _promise(
    criterion: Criterion,
    log: Log,
    tests: Sequence[Mapping[str, Any]],
    cells: Sequence[CellState],
    facts: Facts,
) -> PromiseState:
    """Return the state of one promise; the worst thing that is true of it is its reason."""
    mine = [test for test in tests if test.get("promise") == criterion.id]
    strays = [test for test in tests if captured.denial(test)] if criterion.frames else []
    broken = _why_broken(criterion, mine, facts) or _why_unexplained(strays)
    names = tuple(dict.fromkeys(str(test["id"]) for test in [*mine, *strays]))
    if broken:
        return PromiseState(criterion, State.BROKEN, str(broken), names, broken=broken)
    if not facts.applies(criterion.applies):
        return PromiseState(criterion, State.UNPROMISED, "the profile does not promise it", names)
    lack = _why_unproved(criterion, log, mine, cells)
    if lack:
        return PromiseState(criterion, State.UNPROVED, lack.words, names, lack.gap, lack.why)
    limits = [str(test["reason"]) for test in mine if test["outcome"] == "xfail"]
    state = State.LIMITED if limits else State.KEPT
    return PromiseState(criterion, state, "; ".join(dict.fromkeys(limits)), names)


def _why_broken(criterion: Criterion, mine: Sequence[Mapping[str, Any]], facts: Facts) -> Broken | None:
    """Return the first reason why a promise is broken; None if it is not."""
    for test in mine:
        name = str(test["id"])
        if test["outcome"] == "fail":
            return Broken(str(test["reason"] or "failed"), name)
        if test["outcome"] == "xfail" and limitation(test, facts) is None:
            return Broken(f"expected failure that the profile does not list: {test['reason']}", name)
        denied = wire.contradiction(test) or _by_another(criterion, test, facts)
        if denied:
            return Broken(denied, name)
    for test in mine:
        for name, level in criterion.levels.items():
            value = test["evidence"].get(name)
            if test["outcome"] == "pass" and _is_number(value) and not level.holds(value):
                return Broken(f"{name} is {value:g}, wanted {level}", str(test["id"]))
    return None


def _why_unexplained(strays: Sequence[Mapping[str, Any]]) -> Broken | None:
    """Return the first frame that nothing explains, and how many tests met one; None if none did.

    A test that failed for it says so itself, with the conditions that it knows.
    """
    if not strays:
        return None
    first, own = strays[0], str(strays[0]["reason"])
    words = own if first["outcome"] == "fail" and captured.UNEXPLAINED in own else captured.denial(first)
    more = f" (and in {len(strays) - 1} more tests)" if len(strays) > 1 else ""
    return Broken(f"{words}{more}", str(first["id"]))


def _by_another(criterion: Criterion, test: Mapping[str, Any], facts: Facts) -> str:
    """Return how the evidence says that the wrong one did the TLS; the cell of the test says who should."""
    if criterion.cells is None:
        return ""
    cell = wire.cell_of(test)
    promised = cell in facts.promised if cell in facts.cells else criterion.cells == "promised"
    return contradiction(test, promised)


def _why_unproved(
    criterion: Criterion, log: Log, mine: Sequence[Mapping[str, Any]], cells: Sequence[CellState]
) -> Lack | None:
    """Return the first reason why a promise is not proved; None if it is."""
    skipped = [test for test in mine if test["outcome"] in ("skip", "error")]
    passed = [test for test in mine if test["outcome"] in ("pass", "xfail")]
    good = [test for test in passed if test["outcome"] == "xfail" or wire.proves(test, criterion.proof)]
    if criterion.crossed and good:  # what was not made is not crossed, and the bar is about that
        skipped = [test for test in skipped if test["outcome"] == "error"]
    if skipped:
        gap = Gap.SKIPPED if skipped[0]["outcome"] == "skip" else Gap.RIG
        why = str(skipped[0]["reason"] or "no reason given")
        return Lack(gap, f"{gap}: {why} [{skipped[0]['id']}]", why)
    absent = _left_out(criterion.id, log, mine)
    if absent:
        return absent
    short = _too_few(criterion, good) or _uncovered(criterion, cells, good)
    mute = [test for test in passed if test not in good]
    if short and mute:
        words = f"passed, but its evidence shows no proof {criterion.proof} [{mute[0]['id']}]"
        return Lack(Gap.NO_PROOF, words)
    if short:
        return short
    for name, level in criterion.levels.items():
        if not any(_is_number(test["evidence"].get(name)) for test in good):
            return Lack(Gap.UNMEASURED, f"no test measured {name} (wanted {level})")
    open_ = crossed.short(log, criterion.crossed) if criterion.crossed else ""
    return Lack(Gap.UNCROSSED, open_) if open_ else None


def _too_few(criterion: Criterion, good: Sequence[Mapping[str, Any]]) -> Lack | None:
    """Say how many tests passed, if more are wanted."""
    if len(good) >= criterion.tests:
        return None
    words = f"{len(good)} of at least {criterion.tests} tests passed" if good else "no test of it ran"
    return Lack(Gap.TOO_FEW, words)


def _left_out(promise: str, log: Log, mine: Sequence[Mapping[str, Any]]) -> Lack | None:
    """Name a test of the promise that was deselected, or planned and never finished."""
    done = [test["id"] for test in mine]
    for plan in (event for event in log.events if event["event"] == "plan"):
        for test in plan["deselected"]:
            if isinstance(test, dict) and test.get("promise") == promise:
                return Lack(Gap.LEFT_OUT, f"{Gap.LEFT_OUT} [{test.get('id')}]")
        for test in plan["tests"]:
            if isinstance(test, dict) and test.get("promise") == promise and test.get("id") not in done:
                return Lack(Gap.NO_RESULT, f"{Gap.NO_RESULT} [{test.get('id')}]")
    return None


def _uncovered(
    criterion: Criterion, cells: Sequence[CellState], good: Sequence[Mapping[str, Any]]
) -> Lack | None:
    """Name the cells that this promise must cover and that none of its own tests covered."""
    if criterion.cells is None:
        return None
    wanted = [cell for cell in cells if cell.promised == (criterion.cells == "promised")]
    wanted = [cell for cell in wanted if criterion.direction in (None, cell.direction)]
    covered = [wire.cell_of(test) for test in good]
    missing = [cell.label for cell in wanted if (cell.direction, cell.version, cell.cipher) not in covered]
    return Lack(Gap.UNCOVERED, f"not tested: {', '.join(missing)}") if missing else None


def limitation(test: Mapping[str, Any], facts: Facts) -> str | None:
    """Return the limitation of the profile that an expected failure names at the start of its reason.

    None unless the profile lists it for this very test, and its expected text is what was seen.
    """
    reason, where = str(test["reason"]), str(test["id"])
    name = reason.partition(":")[0].strip()
    wanted, seen = facts.excuses.get(name, (where, ""))
    listed = name in facts.limitations and wanted in (where, where.partition("[")[0])
    return name if listed and seen.lower() in reason.lower() else None


def _limitations(tests: Sequence[Mapping[str, Any]], facts: Facts) -> dict[str, tuple[str, ...]]:
    """Return the limitations that were met, each with the tests that met it."""
    met: dict[str, tuple[str, ...]] = {}
    for test in tests:
        name = limitation(test, facts) if test["outcome"] == "xfail" else None
        if name:
            met[name] = (*met.get(name, ()), str(test["id"]))
    return met


def _stray_failures(tests: Sequence[Mapping[str, Any]], facts: Facts) -> list[Broken]:
    """Return failures of tests that belong to no promise: they block all the same."""
    stray = [test for test in tests if test.get("promise") is None]
    bad = [
        t for t in stray if t["outcome"] == "fail" or (t["outcome"] == "xfail" and not limitation(t, facts))
    ]
    why = [(test, test["reason"] if test in bad else wire.contradiction(test)) for test in stray]
    return [Broken(str(words), str(test["id"])) for test, words in why if words or test in bad]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
