"""Does the suite catch random bad cards? Draws some, runs scenarios on them, and counts those that escape.

usage: python -m benchmarks.drawn --more N [--draw SEED] [--minutes M] [--labs N] [--only TEXT] [--times T]
                                  [--kernel K]
       python -m benchmarks.drawn --draw SEED [--count N] [--depth quick|standard|deep] [--kernel K]
       python -m benchmarks.drawn --only TEXT [--depth ...] [--kernel K]
       python -m benchmarks.drawn --list

A drawn card has one defect under one condition (tests/lib/catalogue/drawn_tables.py); the same seed draws
the same cards. Each runs in a scenario made for it, in which the fault has to act: the card counts that.
With --depth it also runs in the scenarios of that depth, those with its condition first, until one
fails. A card that passes all of them has escaped.
--only takes every card with TEXT in its name. Exit 1 if a card escaped or
did not act, 130 after Ctrl-C, which ends the lab. Events and results are in results/drawn-SEED (or -TEXT).

--more goes on where the record ended (benchmarks/results/drawn.jsonl): the next N cards of the seed's order,
or with --only these once more. Each is put to the scenarios of depth standard that are nearest to it, one
after the other, until one fails; one that passes the first 24 is put to its own scenario, to see whether it
acts at all, and then to all others of the depth: only a card that passes every one has escaped. Each fifth
card has its failing scenario shrunk, and its headline judged: that takes ten runs and more. Each line is
added at once, and docs/certify/bad-nics.md has the shares at the end. --labs: so many cards at once.
--minutes: no card is begun after that. --times T: the first N cards that the record has, one after the other,
and all of them T times: is the verdict the same?
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

from offload.errors import ConfigError, OffloadError, RigError
from tests.lib.catalogue import clean as catalogue_clean
from tests.lib.catalogue import drawn_record
from tests.lib.catalogue import page as catalogue_page
from tests.lib.catalogue import rows as catalogue
from tests.lib.catalogue.drawn import CARD, Defect, card, defects, draw, space
from tests.lib.catalogue.drawn_summary import CUT, Drawn, line, summary
from tests.lib.catalogue.rows import Row, Step
from tests.lib.catalogue.run import Found, Stand, side_by_side
from tests.lib.rig.needs import built
from tests.lib.scenario.array.covering import Depth, array
from tests.lib.scenario.space import Scenario

ROOT = Path(__file__).parents[1]
NEAREST = 24  # scenarios that a card passes before its own one shows whether its fault acts at all
LIGHT = 9  # connections of a scenario that costs the least; 33 take twice and 70 three times as long
SOON = 2.0  # seconds within which a signal that ended a card's tests has reached us, too
TEST = "test_70_scenarios.py::test_scenario_holds[{}]"


def turns(defect: Defect, depth: str) -> list[str]:
    """The scenarios that a card is put to after its own: of a depth, those first that have its condition.

    Of two that have as much of it the cheaper one comes first, and the plainer one: fewer runs shrink it.
    """
    if not depth:
        return []
    plain = space().plain.items()
    rows = sorted(array(depth, card()), key=lambda one: len(dict(one.values).items() - plain))
    rows.sort(key=lambda one: max(LIGHT, int(one["connections"])))
    return [one.line() for one in sorted(rows, key=lambda one: -met(defect, one))]


def met(defect: Defect, scenario: Scenario) -> int:
    """How much of what a card needs a scenario makes; another value that makes its condition is as good."""
    one_way = {"direction": defect.direction} if scenario["direction"] == "both" else {}
    has = {**dict(scenario.values), **one_way}.items()
    condition = defect.condition.values.items()
    found = len({**defect.place.values, "direction": defect.direction}.items() & has)
    return found + (len(condition) if not has.isdisjoint(defect.condition.also) else len(condition & has))


def step(defect: Defect, scenario: str, number: int) -> Step:
    """One run of one scenario against the card."""
    test = TEST.format(scenario)
    row = Row(f"{defect.id}--{number}", defect.words(), "", "odd", defect.knobs, (test,))
    return Step(row.id, CARD, row, row.tests)


def put(stand: Stand, defect: Defect, depth: str) -> Drawn:
    """Put a card to its own scenario, and to those of a depth until one fails."""
    began = time.monotonic()
    own = stand.do(step(defect, defect.line, 0))
    fired, ran, seen = own.fired, 0, own.word == "failed"
    by = own.line if seen else ""
    if depth:
        seen, by = False, ""
        for number, scenario in enumerate(turns(defect, depth), 1):
            found = stand.do(step(defect, scenario, number))
            ran, fired = number, fired + found.fired
            if found.word == "failed":
                seen, by = True, found.line
                break
    return Drawn(defect, own.fired, own.word, own.line, fired, ran, seen, by, time.monotonic() - began)


def nearest(stand: Stand, defect: Defect, *, shrunk: bool) -> Drawn:
    """Put a card to the scenarios of the standard depth, the nearest first, until one fails.

    Its own scenario says in between whether its fault acts; a card that passes every one has escaped.
    """
    began, stand.as_found = time.monotonic(), not shrunk
    order = turns(defect, Depth.STANDARD)
    trial = Trial(stand, defect)
    seen, own = trial.caught(order[:NEAREST]), None
    if seen is None:
        own = stand.do(step(defect, defect.line, 0))
        acted = (own.fired or trial.fired) and own.word != "void"
        seen = trial.caught(order[NEAREST:]) if acted else None
    fired, word, said = (own.fired or trial.fired, own.word, own.line) if own else (trial.fired, "failed", "")
    by, took = seen.line if seen else "", time.monotonic() - began
    return Drawn(defect, fired, word, said, trial.fired, trial.ran, bool(seen), by, took, shrunk)


class Trial:
    """What a card's scenarios have shown so far."""

    def __init__(self, stand: Stand, defect: Defect) -> None:
        self.stand, self.defect, self.ran, self.fired, self.missed = stand, defect, 0, 0, False

    def caught(self, scenarios: Sequence[str]) -> Found | None:
        """Run these until one fails in which the fault acted; None if none does.

        A card that acted in a scenario and passed must fail twice in the one that is said to catch it: what
        fails once, for another reason, says nothing of the card.
        """
        for scenario in scenarios:
            seen = self._one(scenario)
            if seen.word == "failed" and self.missed and seen.fired:
                print(f"{self.defect.id}: fails late, once more: {seen.line[:CUT]}", flush=True)
                seen = self._one(scenario, again=True)
            if seen.word == "failed" and seen.fired:
                return seen
            if seen.word == "failed":
                print(f"FALSE ALARM? no fault acted in {scenario}: {seen.line}", flush=True)
            elif seen.fired:
                self.missed = True
                print(f"{self.defect.id}: acted {seen.fired} times, and {scenario} passed", flush=True)
        return None

    def _one(self, scenario: str, *, again: bool = False) -> Found:
        self.ran += not again
        seen = self.stand.do(step(self.defect, scenario, self.ran))
        self.fired += seen.fired
        return seen


def nearest_or_void(stand: Stand, defect: Defect, *, shrunk: bool) -> Drawn:
    """The same; a card under which the rig breaks says nothing, and the next one is drawn all the same."""
    began = time.monotonic()
    try:
        return nearest(stand, defect, shrunk=shrunk)
    except OffloadError as exc:
        print(f"{defect.id}: the rig broke: {str(exc).partition(chr(10))[0]}", flush=True)
        return Drawn(defect, 1, "void", "", 0, 0, False, "", time.monotonic() - began, shrunk)


class More:
    """Cards for the record, shared by the labs that run at once."""

    def __init__(self, found: Sequence[Defect], seed: int, kernel: str, folder: Path, minutes: float) -> None:
        self._left, self._ends, self._lock = iter(found), time.monotonic() + 60 * minutes, threading.Lock()
        self._stopped = threading.Event()
        self._seed, self._kernel, self._folder = seed, kernel, folder
        self._code = catalogue_clean.commit()
        lines = [line for one in found for line in (one.line, *turns(one, Depth.STANDARD))]
        self._scenarios = list(dict.fromkeys(space().parse(text).line() for text in lines))
        self.drawn: list[Drawn] = []

    def lab(self, number: int) -> None:
        """Put cards to the scenarios on one lab, until none is left or the time is over."""
        with Stand(self._kernel, self._folder / f"lab-{number}", lambda _: None) as stand:
            stand.scenarios = self._scenarios
            for one in self._cards():
                drawn = nearest_or_void(stand, one, shrunk=drawn_record.shrinks(self._seed, one))
                if drawn.own_word == "void" and self._stopped.wait(SOON):
                    return  # the signal that stops us ended its tests
                self._done(drawn)

    def _cards(self) -> Iterator[Defect]:
        while not self._stopped.is_set() and time.monotonic() < self._ends:
            with self._lock:
                one = next(self._left, None)
            if one is None:
                return
            yield one

    def _done(self, one: Drawn) -> None:
        """Add a line to the record; the page says what the record has then."""
        with self._lock:
            self.drawn.append(one)
            said = {"depth": str(Depth.STANDARD), "kernel": self._kernel, "code": self._code}
            drawn_record.append(drawn_record.entry(one, seed=self._seed, **said))
            print(line(one), flush=True)
            text = catalogue_page.PAGE.read_text()
            catalogue_page.PAGE.write_text(drawn_record.page(text, drawn_record.read()))

    def stop(self) -> None:
        """Begin no other card."""
        self._stopped.set()


def more(
    found: Sequence[Defect], seed: int, kernel: str, folder: Path, minutes: float, labs: int = 1
) -> list[Drawn]:
    """Run these for the record, so many at once."""
    work = More(found, seed, kernel, folder, minutes)
    if labs == 1:  # in this thread: Ctrl-C ends the card that runs
        work.lab(1)
        return work.drawn
    side_by_side([partial(work.lab, number) for number in range(1, labs + 1)], work.stop)
    return work.drawn


def run(found: Sequence[Defect], depth: str, kernel: str, folder: Path) -> list[Drawn]:
    """All of them on one lab; each is told as soon as it is known."""
    drawn: list[Drawn] = []
    with Stand(kernel, folder, lambda _: None) as stand:
        lines = [one.line for one in found] + (turns(found[0], depth) if depth else [])
        stand.scenarios = list(dict.fromkeys(space().parse(text).line() for text in lines))
        for one in found:
            try:
                drawn.append(put(stand, one, depth))
            except OffloadError as exc:
                print(f"{one.id}: the rig broke: {str(exc).partition(chr(10))[0]}", flush=True)
                continue
            print(line(drawn[-1]), flush=True)
            (folder / "found.json").write_text(json.dumps([d.json() for d in drawn], indent=1) + "\n")
    return drawn


def arguments() -> argparse.Namespace:
    """What was typed."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("--draw", type=int, metavar="SEED", help="which cards: any number")
    parser.add_argument("--count", type=int, default=40, metavar="N", help="how many (default 40)")
    parser.add_argument(
        "--depth", default="", choices=["", *map(str, Depth)], help="also run the scenarios of this depth"
    )
    parser.add_argument("--kernel", default="6.1", choices=catalogue.KERNELS)
    parser.add_argument("--more", type=int, default=0, metavar="N", help="go on with the record, N cards")
    parser.add_argument("--minutes", type=float, default=60, metavar="M", help="with --more: as long as that")
    parser.add_argument("--labs", type=int, default=1, metavar="N", help="with --more: cards at once")
    parser.add_argument(
        "--times", type=int, default=1, metavar="T", help="with --more: the record's, so often"
    )
    parser.add_argument("--only", default="", metavar="TEXT", help="every card with TEXT in its name")
    parser.add_argument("--list", action="store_true", help="print every defect there is, and run nothing")
    args = parser.parse_args()
    if args.draw is None and not (args.list or args.only or args.more):
        parser.error("--draw SEED or --only TEXT says which cards, or --list prints all")
    return args


def chosen(args: argparse.Namespace) -> tuple[Defect, ...]:
    """The cards that were asked for. ConfigError if there is none."""
    if args.more and args.times > 1 and not args.only:
        return drawn_record.drawn_before(args.draw or drawn_record.SEED, drawn_record.read(), args.more)
    if args.more and not args.only:
        return drawn_record.following(args.draw or drawn_record.SEED, drawn_record.read(), args.more)
    if not args.only:
        return draw(args.draw, args.count)
    found = tuple(one for one in defects() if args.only in one.id)
    if not found:
        raise ConfigError(f"no card has {args.only!r} in its name", "--list prints them")
    return found


def main() -> int:
    """Run it; exit 1 if a card escaped or did not fire, 130 if somebody ended it."""
    for number in (signal.SIGINT, signal.SIGTERM):  # also as a job of a script's background
        signal.signal(number, signal.default_int_handler)
    args = arguments()
    if args.list:
        every = defects()
        print("\n".join(f"{one.id}: {one.words()}: {one.knobs}: {one.line}" for one in every))
        print(f"{len(every)} defects")
        return 0
    try:
        found, name = chosen(args), args.only.replace("/", "-") or str(args.draw or "more")
        built()
        folder = ROOT / "results" / f"drawn-{name}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        if args.more:
            seed = args.draw or drawn_record.SEED
            cards = found[: args.more] * args.times
            drawn = more(cards, seed, args.kernel, folder, args.minutes, args.labs)
            print(f"\n{' '.join(drawn_record.sentences(drawn_record.read()))}")
            return int(any(one.escaped for one in drawn))
        drawn = run(found, args.depth, args.kernel, folder)
    except (ConfigError, RigError) as exc:
        print(f"drawn: error: {exc}", file=sys.stderr)
        return exc.exit_code
    except KeyboardInterrupt:
        print("drawn: stopped by Ctrl-C or SIGTERM; the lines above are the cards that ran", file=sys.stderr)
        return 130
    print("\n".join(summary(drawn, name, args.depth, len(found))))
    return int(len(drawn) < len(found) or any(one.escaped or not one.counts for one in drawn))


if __name__ == "__main__":
    sys.exit(main())
