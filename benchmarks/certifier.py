"""Does the suite catch every bad card, at the right promise? Runs the catalogue and prints the table.

usage: python -m benchmarks.certifier [--kernel K] [--labs N] [--slice DATE] [--only TEXT] [--whole] [--write]
       python -m benchmarks.certifier --good N [--card C] [--kernel K] [--labs N]

Each card is judged by its triage tests, the cheapest that see its defect (bad-nics.md); --whole runs all
of tests/hw against it, hours in all. Events: results/certifier-KERNEL/ID.jsonl; what was found: found.json.
--good runs no bad card: N times the triage tests of all rows against a good one, on one lab. Whatever comes
of a good card is added to benchmarks/results/clean-runs.jsonl, and what of all cards to catalogue-runs.jsonl;
docs/certify/bad-nics.md counts them. Code with changes that are not committed is recorded only with --write.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from offload.errors import OffloadError
from tests.lib.catalogue import clean as catalogue_clean
from tests.lib.catalogue import page as catalogue_page
from tests.lib.catalogue import past as catalogue_past
from tests.lib.catalogue import rows as catalogue
from tests.lib.catalogue.rows import Row, Step
from tests.lib.catalogue.run import Stand, side_by_side

ROOT = Path(__file__).parents[1]
LABS = 2  # one per core
Json = dict[str, Any]


class Work:
    """The steps that are left, shared by the labs: each goes on with the card that it plays."""

    def __init__(self, steps: Sequence[Step], kernel: str, folder: Path, recorded: bool = True) -> None:
        self._left, self._lock, self._folder = list(steps), threading.Lock(), folder
        self._kernel, self._code, self._recorded = kernel, catalogue_clean.commit(), recorded
        self._good = {step.id: step for step in steps if step.row is None}
        self._titles = {step.id: step.row.title if step.row else "a good card" for step in steps}
        self.found: dict[str, Json] = {}

    def take(self, card: str) -> Step | None:
        """The next step for a lab with this card; of another card if there is none."""
        with self._lock:
            mine = [step for step in self._left if step.card == card] or self._left[-1:]
            if not mine:
                return None
            first = mine[0] if mine[0].card == card else next(s for s in self._left if s.card == mine[0].card)
            self._left.remove(first)
            return first

    def done(self, found: Json) -> None:
        """Note what was found, and print it."""
        with self._lock:
            self.found[found["id"]] = found
            (self._folder / "found.json").write_text(json.dumps(self.found, indent=1) + "\n")
            width = max(80, shutil.get_terminal_size((200, 24)).columns)
            print(catalogue_page.line(found, self._titles[found["id"]], width), flush=True)
            if found["id"] in self._good and self._recorded:
                self._record(self._good[found["id"]], found)

    def _record(self, step: Step, found: Json) -> None:
        """Add what came of a good card to the record, whatever it is."""
        kind = "run" if step.id.startswith("whole-") else "step"
        said = {"kernel": self._kernel, "card": step.card, "kind": kind, "code": self._code}
        catalogue_clean.append(catalogue_clean.entry(found, **said))
        count_clean()

    def stop(self) -> None:
        """Leave the rest."""
        with self._lock:
            self._left.clear()


def quiet(_: str) -> None:
    """Swallow progress lines."""


def lab(work: Work, kernel: str, folder: Path) -> None:
    """Do steps on one lab until none is left."""
    with Stand(kernel, folder, quiet) as stand:
        card = catalogue.CARDS[0]
        while step := work.take(card):
            card = step.card
            try:
                work.done(stand.do(step).json())
            except OffloadError as exc:
                why = f"the rig broke: {str(exc).strip().splitlines()[0]}"
                empty = dict.fromkeys(("promise", "line", "left"), "")
                work.done(empty | {"id": step.id, "word": "void", "seconds": 0.0, "tests": 0, "problem": why})


def is_recorded(args: argparse.Namespace, code: str) -> bool:
    """Say whether what comes of this run is recorded: not unasked from code that nobody can check out."""
    return bool(args.write) or not code.endswith("+")


def run(steps: Sequence[Step], kernel: str, labs: int, folder: Path, recorded: bool) -> dict[str, Json]:
    """Do all the steps on so many labs at once; what was found, by id."""
    work = Work(steps, kernel, folder, recorded)
    side_by_side([partial(lab, work, kernel, folder)] * labs, work.stop)
    return work.found


def arguments() -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1", choices=catalogue.KERNELS)
    parser.add_argument("--labs", type=int, help="VMs side by side, one per core (default 2; with --good 1)")
    parser.add_argument("--slice", default="all", metavar="DATE|all", help="the cards of a day (default all)")
    parser.add_argument(
        "--only", nargs="+", metavar="TEXT", help="cards with TEXT in their id, or this family"
    )
    parser.add_argument("--whole", action="store_true", help="all of tests/hw against each card")
    parser.add_argument("--write", action="store_true", help="write the table into docs/certify/bad-nics.md")
    parser.add_argument("--good", type=int, default=0, metavar="N", help="N runs of a good card, no bad one")
    parser.add_argument("--card", choices=catalogue.CARDS, default=catalogue.CARDS[0], help="of --good")
    return parser.parse_args()


def plan(args: argparse.Namespace) -> list[Step]:
    """The steps that were asked for; with all rows every personality has to be good once."""
    if args.good:
        return list(catalogue.whole(catalogue.load(), args.card, args.good))
    rows = catalogue.chosen(catalogue.load(), catalogue.today(args.slice), args.kernel)
    if args.only:
        rows = tuple(row for row in rows if any(text in row.id or text == row.family for text in args.only))
    whole = args.slice == "all" and not args.only
    steps = list(catalogue.steps(rows, catalogue.CARDS if whole else ()))
    if not args.whole:
        return steps
    return [Step(s.id, s.card, s.row, ()) for s in steps if s.row]


def write(rows: Sequence[Row], found: dict[str, Json]) -> None:
    """Put the table into the page."""
    page = catalogue_page.PAGE
    page.write_text(catalogue_page.page(page.read_text(), rows, found))


def count_clean() -> None:
    """Put what the record has into the page."""
    page = catalogue_page.PAGE
    page.write_text(catalogue_clean.page(page.read_text(), catalogue_clean.read()))


def keep(line: Json) -> None:
    """Note a run of the whole catalogue in the record and on the page, whatever came of it."""
    catalogue_past.append(line)
    page = catalogue_page.PAGE
    page.write_text(catalogue_past.page(page.read_text(), catalogue_past.read()))


def main() -> int:
    """Run it; exit 1 if a card was not caught as the catalogue wants, or a good one was."""
    args, began, code = arguments(), time.monotonic(), catalogue_clean.commit()
    to_docs = is_recorded(args, code)
    try:
        steps = plan(args)
        folder = ROOT / "results" / f"certifier-{'good-' if args.good else ''}{args.kernel}"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        found = run(steps, args.kernel, args.labs or (1 if args.good else LABS), folder, to_docs)
    except OffloadError as exc:
        print(f"certifier: error: {exc}", file=sys.stderr)
        return exc.exit_code
    wrong = [name for name, was in found.items() if was["problem"]]
    bad = sum(step.row is not None for step in steps)
    print(
        f"\n{bad} cards of the catalogue and {len(steps) - bad} runs of a good card on {args.kernel}: ",
        end="",
    )
    print(f"{len(wrong)} not as they should be {wrong or ''}; {time.monotonic() - began:.0f} s in all")
    rows = catalogue.load()
    if not to_docs:
        print("not recorded: the code has changes that are not committed; --write records it")
    elif args.slice == "all" and not (args.only or args.whole or args.good):
        said = {"kernel": args.kernel, "labs": args.labs or LABS, "code": code}
        keep(catalogue_past.entry(steps, found, seconds=time.monotonic() - began, **said))
    if args.write and not wrong and all(row.id in found for row in rows):
        write(rows, found)
    elif args.write and not args.good:
        print("nothing was written: not every card was caught, or not every one was run")
    return 1 if wrong or len(found) < len(steps) else 0


if __name__ == "__main__":
    sys.exit(main())
