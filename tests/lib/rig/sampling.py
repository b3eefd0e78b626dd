"""Which tests does a sample run today? The others have their turn on another day."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Mapping, Sequence

import pytest

from offload.suite.report.criteria import Criterion
from offload.suite.report.criteria import load as load_criteria
from offload.suite.report.record.testinfo import cell_of, promise_of

EACH = "each"  # one test of each promise and cell
PROMISES = "promises"  # the same, and every test without a promise; of those that take turns one
REQUIRED = "required"  # as few tests as the criteria ask of each required promise


def sampled(items: Iterable[pytest.Item], word: str) -> list[pytest.Item]:
    """What a sample runs: `each`, `promises`, `required`; of a day what `each` runs that kernels differ in.

    A word may have its day: `required:2026-01-31`.
    """
    name, _, date = word.partition(":")
    if name in (EACH, PROMISES):
        return one_of_each(items, day_of(date or "today"), rest=name == PROMISES)
    if name == REQUIRED:
        return of_required(items, day_of(date or "today"), load_criteria().promises)
    return one_of_each((item for item in items if item.get_closest_marker("once") is None), day_of(word))


def one_of_each(items: Iterable[pytest.Item], day: int, rest: bool = False) -> list[pytest.Item]:
    """One test, by the day, of each promise, cell and direction.

    Of a file's tests without a promise one, too; if `rest` all of them, and one of those that take turns.
    """
    kinds: dict[str, list[pytest.Item]] = {}
    found = list(items)
    for item in found:
        kinds.setdefault(turn_of(item) if rest and not promise_of(item) else kind_of(item), []).append(item)
    wanted = {id(same[day % len(same)]) for same in kinds.values()}
    return [item for item in found if id(item) in wanted]


def of_required(
    items: Iterable[pytest.Item], day: int, criteria: Mapping[str, Criterion]
) -> list[pytest.Item]:
    """As few tests as a certificate asks of each promise that it requires, by the day.

    Of a promise with cells one of each cell; of one with levels all, since not each test measures them.
    """
    mine: dict[str, list[pytest.Item]] = {}
    found = list(items)
    for item in found:
        mine.setdefault(promise_of(item) or "", []).append(item)
    wanted: set[int] = set()
    for name, tests in mine.items():
        asked = criteria.get(name)
        if asked and asked.required:
            wanted |= {id(item) for item in enough(tests, asked, day)}
    return [item for item in found if id(item) in wanted]


def enough(tests: Sequence[pytest.Item], asked: Criterion, day: int) -> list[pytest.Item]:
    """The tests that one promise must have passed, by the day."""
    if asked.levels:
        return list(tests)
    start = day * asked.tests % len(tests)
    turn = [*tests[start:], *tests[:start]]
    if asked.cells is None:
        return turn[: asked.tests]
    cells: dict[str, list[pytest.Item]] = {}
    for item in tests:
        cells.setdefault(str(cell_of(item)), []).append(item)
    each = [same[day % len(same)] for same in cells.values()]
    more = [item for item in turn if item not in each]
    return [*each, *more[: max(0, asked.tests - len(each))]]


def turn_of(item: pytest.Item) -> str:
    """With whom a test without a promise takes turns: those with the same mark, or nobody."""
    mark = item.get_closest_marker("turns")
    return f"turns: {mark.args[0]}" if mark else item.nodeid


def kind_of(item: pytest.Item) -> str:
    """What a test says something of, as text."""
    cell = cell_of(item)
    params = getattr(getattr(item, "callspec", None), "params", {})
    return f"{promise_of(item) or item.path} {cell} {'' if cell else params.get('direction', '')}"


def day_of(word: str) -> int:
    """The number of a day: `today`, in UTC, or a date as 2026-01-31. UsageError for anything else."""
    try:
        today = datetime.datetime.now(datetime.UTC).date()
        return (today if word == "today" else datetime.date.fromisoformat(word)).toordinal()
    except ValueError:
        wanted = f"{EACH}, {PROMISES}, {REQUIRED}, today, or a date as 2026-01-31"
        raise pytest.UsageError(f'--sample "{word}": wanted {wanted}') from None
