"""The catalogue of bad cards: what catalogue.yaml says, which rows a day runs, and in what order."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from offload.debian.kernels import hands_over_tls13
from offload.errors import ConfigError
from offload.suite.bench.cards.knobs import check
from offload.suite.report import criteria
from offload.yamlfile import Item, near, quoted, read_yaml

FILE = Path(__file__).parents[2] / "nicsim" / "catalogue.yaml"
DEBUG_FILE = FILE.with_name("debug.yaml")
REKEY_FILE = FILE.parent / "kernels" / "rekey.yaml"
KERNELS = ("6.1", "6.12", "7.2")
DEBUG = "debug"  # the kernel on which alone some rows are caught (offload/debian/debug.py)
CARDS = ("connectx-6-dx", "chelsio-t6", "nicsim", "agilio-nfp")
FAMILIES = (
    "plaintext",
    "authenticity",
    "keystream",
    "nonce",
    "resync",
    "counters",
    "contexts",
    "switch",
    "coverage",
    "frames",
    "cost",
    "driver",
    "odd",
)
ENDS = ("failed", "void", "good")
DURING = ("unload",)
REQUIRED = ("id", "title", "story", "family", "knobs", "tests")
KNOWN = (*REQUIRED, "card", "breaks", "evidence", "security", "end", "during", "kernels")
PARTS = 5  # of the rows that are not security-critical: one part a day
EVERY = 6  # bad cards, and then a good one
GOOD_PARTS = 3  # of the tests that a good card passes in between: one part a day


@dataclass(frozen=True)
class Row:
    """One card. `knobs` as `0/tx_leak=1`, adapter 0 is the DUT's; `tests` by their short ids, in this order.

    `breaks`: the promise that the verdict must name first, for `evidence` (a pattern). `end`: the word of
    the verdict; `good` for a card that is odd and must pass. `during`: what else is done to it meanwhile.
    """

    id: str
    title: str
    story: str
    family: str
    knobs: str
    tests: tuple[str, ...]
    card: str = CARDS[0]
    breaks: str = ""
    evidence: str = ""
    security: bool = False
    end: str = "failed"
    during: str = ""
    kernels: tuple[str, ...] = KERNELS


def short(test: str) -> str:
    """A test's id without its folder, so that what is recorded of it outlives a move."""
    path, colons, name = test.partition("::")
    return f"{path.rpartition('/')[2]}{colons}{name}"


def load(path: Path = FILE, right: Callable[[str], object] = check) -> tuple[Row, ...]:
    """Return the rows of a file, in its order. ConfigError with every problem as `file:line: key: ...`.

    `right` raises ConfigError for words that are no knobs.
    """
    root = read_yaml(path, path.name, "catalogue")
    fields = root.fields(("cards",), ("cards",))
    rows: dict[str, Row] = {}
    for item in fields["cards"].items() if fields else ():
        row = _row(item, right)
        if rows.setdefault(row.id, row) is not row:
            item.bad(f"id {quoted(row.id)} is taken")
    root.log.check()
    return tuple(rows.values())


def of_kernel(kernel: str) -> tuple[Row, ...]:
    """The rows for a kernel: the debug kernel has others, and so has one that hands TLS 1.3 to cards."""
    if kernel not in (*KERNELS, DEBUG) and hands_over_tls13(kernel):
        return tuple(replace(row, kernels=(kernel,)) for row in load(REKEY_FILE))
    return load(DEBUG_FILE if kernel == DEBUG else FILE)


def _row(item: Item, right: Callable[[str], object]) -> Row:
    """One entry; what is wrong with it is noted."""
    found = item.fields(KNOWN, REQUIRED)

    def text(key: str, default: str, pattern: str = "", choices: Sequence[str] = ()) -> str:
        return found[key].text(pattern or "text", pattern, choices) if key in found else default

    row = Row(
        id=text("id", "", r"[a-z0-9-]+"),
        title=text("title", ""),
        story=text("story", ""),
        family=text("family", "", choices=FAMILIES),
        knobs=_knobs(found.get("knobs"), right),
        tests=_words(found.get("tests"), r"test_\w+\.py::\w+(\[.+\])?"),
        card=text("card", CARDS[0], choices=CARDS),
        breaks=_promise(found.get("breaks")),
        evidence=_pattern(found.get("evidence")),
        security="security" in found and found["security"].flag(),
        end=text("end", "failed", choices=ENDS),
        during=text("during", "", choices=DURING),
        kernels=_words(found["kernels"], "", (*KERNELS, DEBUG)) if "kernels" in found else KERNELS,
    )
    wanted = {"failed": ("breaks", "evidence"), "void": ("evidence",), "good": ()}.get(row.end, ())
    for key in ("breaks", "evidence"):
        if found and (key in found) != (key in wanted):
            item.bad(
                f"{key} is {'missing' if key in wanted else 'not wanted'} for a card that ends {row.end}"
            )
    return row


def _words(item: Item | None, pattern: str, choices: Sequence[str] = ()) -> tuple[str, ...]:
    found = item.items() if item else []
    if item and not found:
        item.bad("empty")
    return tuple(entry.text(pattern or "text", pattern, choices) for entry in found)


def _knobs(item: Item | None, right: Callable[[str], object]) -> str:
    """The knobs as they were given."""
    words = item.text("knobs as 0/tx_leak=1") if item else ""
    try:
        right(words)
    except ConfigError as exc:
        assert item is not None
        item.bad(str(exc))
    return words


def _promise(item: Item | None) -> str:
    name, known = (item.text("a promise"), criteria.load().promises) if item else ("", {})
    if item and name and name not in known:
        item.bad(f"unknown promise {quoted(name)}{near(name, known)}")
    return name


def _pattern(item: Item | None) -> str:
    words = item.text("a pattern") if item else ""
    try:
        re.compile(words)
    except re.error as exc:
        assert item is not None
        item.bad(f"{quoted(words)} is no pattern: {exc}")
    return words


def today(word: str = "") -> str:
    """`all`, or a date as YYYY-MM-DD: the one that is given, or today's. ConfigError for anything else."""
    if word == "all":
        return word
    now = datetime.datetime.now(datetime.UTC).date()
    try:
        return (datetime.date.fromisoformat(word) if word else now).isoformat()
    except ValueError:
        raise ConfigError(f"slice {quoted(word)}", "all, or a date as 2026-01-31") from None


def chosen(rows: Iterable[Row], day: str, kernel: str) -> tuple[Row, ...]:
    """The rows of a day on this kernel: every security-critical one, and a fifth of the others, in turn."""
    ours = [row for row in rows if kernel in row.kernels]
    if day == "all":
        return tuple(ours)
    part = datetime.date.fromisoformat(day).toordinal() % PARTS
    turn = [row for row in ours if not row.security][part::PARTS]
    return tuple(row for row in ours if row.security or row in turn)


def spared(step: Step, day: str) -> Step:
    """The step as a day runs it: a good card passes a third of its tests, in turn; certify has them all."""
    if step.row or day == "all":
        return step
    part = datetime.date.fromisoformat(day).toordinal() % GOOD_PARTS
    return replace(step, tests=step.tests[part::GOOD_PARTS] or step.tests[:1])


@dataclass(frozen=True)
class Step:
    """One run of the suite: a row, or (`row` is None) a good card and some of the tests of all the rows."""

    id: str
    card: str
    row: Row | None
    tests: tuple[str, ...]


def tests_of(rows: Iterable[Row]) -> tuple[str, ...]:
    """Every test of these rows, once."""
    return tuple(dict.fromkeys(test for row in rows for test in row.tests))


def whole(rows: Sequence[Row], card: str, count: int) -> Iterator[Step]:
    """The runs of a good card, each all the tests of all the rows."""
    yield from (Step(f"whole-{card}-{number + 1}", card, None, tests_of(rows)) for number in range(count))


def steps(rows: Sequence[Row], cards: Sequence[str] = ()) -> Iterator[Step]:
    """The rows in an order that boots few labs; in between, on the same lab, a good card.

    Each card that a row plays, and each of `cards`, passes every test of all the rows, some after every few
    rows: so a good card stands wherever a bad one could have left something behind.
    """
    tests = tests_of(rows)
    for card in (c for c in CARDS if c in cards or any(row.card == c for row in rows)):
        mine = [row for row in rows if row.card == card]
        count = max(1, -(-len(mine) // EVERY))
        for number in range(count):
            chunk = mine[number * EVERY : (number + 1) * EVERY]
            yield from (Step(row.id, card, row, row.tests) for row in chunk)
            some = tests[number * len(tests) // count : (number + 1) * len(tests) // count]
            if some:  # without tests a step is the whole suite
                yield Step(f"good-{card}-{number + 1}", card, None, some)
