"""What docs/certify/bad-nics.md says of the suite: what each test is worth, and each check."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tests.lib.catalogue.page import PAGE
from tests.lib.catalogue.rows import tests_of
from tests.nicsim.escape_found import Said

BEGIN, END = "<!-- made by tests.nicsim.escape: begin -->", "<!-- end of escape -->"


def section(said: Said) -> str:
    """The section in Markdown, without its marks."""
    return "\n".join([*_credit(said), *_nothing(said), *_promises(said), *_checks(said)]) + "\n"


def write(text: str) -> None:
    """Put the section into the page. ValueError if that has no place for it."""
    page = PAGE.read_text()
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not (begin and end):
        raise ValueError(f"{PAGE.name} has no line {BEGIN} with {END} after it")
    PAGE.write_text(f"{head}{BEGIN}\n{text}{END}{tail}")


def _credit(said: Said) -> Iterator[str]:
    facts = said.facts
    failed = [card for cards in facts.caught.values() for card in cards]
    which = f": {', '.join(facts.escaped)}" if facts.escaped else ""
    yield f"Recorded on {said.kernel}: {said.count} of the {said.wanted} bad cards that must fail were run."
    yield f"{len(facts.escaped) or 'None'} of them escaped{which}."
    yield ""
    yield "| test | catches alone | with others |"
    yield "|---|---|---|"
    for test, cards in sorted(facts.caught.items()):
        alone = [card for card in cards if failed.count(card) == 1]
        rest = [card for card in cards if card not in alone]
        if cards:
            yield f"| `{test}` | {', '.join(alone)} | {', '.join(rest)} |"
    yield ""


def _nothing(said: Said) -> Iterator[str]:
    ran = {test for test, cards in said.facts.caught.items() if not cards}
    never = [test for test in said.tests if test not in tests_of(said.rows)]
    yield f"Ran against a bad card and caught nothing: {_named(sorted(ran))}."
    yield ""
    yield f"{len(never)} of the {len(said.tests)} tests are in no triage: no bad card meets them; by file:"
    yield ""
    for file in dict.fromkeys(test.partition("::")[0] for test in never):
        mine = [test.partition("::")[2].partition("[")[0] for test in never if test.startswith(f"{file}::")]
        yield f"* `{file}`: {', '.join(dict.fromkeys(mine))}"
    yield ""


def _promises(said: Said) -> Iterator[str]:
    alone = {promise: test for promise, test in said.facts.single.items() if promise}
    broken = {row.breaks for row in said.rows}
    unasked = [promise for promise in dict.fromkeys(said.tests.values()) if promise and promise not in broken]
    yield f"Promises that only one test has been seen to guard ({len(alone)}):"
    yield ""
    yield from (f"* `{promise}`: `{test}`" for promise, test in sorted(alone.items()))
    yield ""
    yield f"Promises that no card of the catalog breaks: {_named(unasked)}."
    yield ""


def _checks(said: Said) -> Iterator[str]:
    facts, needed, redundant = said.facts, said.needed(), said.redundant()
    tried = len(needed) + len(redundant)
    yield f"{len(facts.deciding)} of {len(said.checks)} checks failed on a card. Taken away so far: {tried};"
    yield f"without {len(needed)} a card escapes, {len(redundant)} are redundant; left: {len(said.left())}."
    yield from _cost(said.seconds)
    yield ""
    yield "| check | escapes without it |"
    yield "|---|---|"
    yield from (
        f"| `{check}` | {', '.join(c for c, by in said.less[check].items() if not by)} |" for check in needed
    )
    yield ""
    yield f"Redundant, and what catches the card instead:{'' if redundant else ' none.'}"
    yield ""
    for check in redundant:
        yield f"* `{check}`: {', '.join(f'{card} by `{by}`' for card, by in said.less[check].items())}"
    yield ""
    yield from [f"Not yet taken away: {_named(said.left())}.", ""] if said.left() else []
    if said.count == said.wanted:  # before that it would say little
        yield "Checks that failed on no card, so that nothing changes without them, number by function:"
        yield ""
        yield from _silent(check for check in said.checks if check not in facts.deciding)


def _cost(seconds: Iterable[float]) -> Iterator[str]:
    took = sorted(one for one in seconds if one)  # 0: nothing had to run
    if took:
        middle = took[len(took) // 2]
        yield f"A card without a check took {middle:.0f} s in the median, {took[-1]:.0f} s at most."


def _silent(names: Iterable[str]) -> Iterator[str]:
    """Checks that are redundant as far as the catalogue goes, by file."""
    files: dict[str, dict[str, int]] = {}
    for name in names:
        file, function, _ = name.split(":")
        count = files.setdefault(file, {})
        count[function] = count.get(function, 0) + 1
    for file, functions in files.items():
        yield f"* `{file}`: " + ", ".join(f"{f} {n}" if n > 1 else f for f, n in functions.items())


def _named(names: Iterable[str]) -> str:
    return ", ".join(f"`{name}`" for name in names) or "none"
