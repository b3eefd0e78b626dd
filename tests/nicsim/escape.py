"""Which test catches which bad card, and what if one of the suite's checks were not there?

usage: python -m tests.nicsim.escape [RESULTS] [--kernel K] [--write]
       python -m tests.nicsim.escape --mutate [--lab NAME] [--kernel K] [--only TEXT] [--limit N] [--write]

RESULTS is a folder of events, one file per bad card, as benchmarks/certifier.py leaves it
(results/certifier-KERNEL). What is said of a test follows from the tests that ran: of the triage tests of
each card, or with `benchmarks.certifier --whole` of all. A check is one `assert` of tests/hw or tests/lib.

--mutate runs each card, and notes every check that failed. Then it takes these away, one by one, and runs the
tests that they failed in once more, in one lab and one suite (some 10 seconds each): a card that no test
fails now has escaped. A check that failed on no card changes nothing: it is listed without a run. What is
found is kept in results/escape-KERNEL, so that a run can be interrupted, and gone on with. It is not told
apart from what other code found: remove that folder after a change of tests/hw, tests/lib or nicsim.
--write puts what there is into docs/certify/bad-nics.md.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

from offload.errors import OffloadError
from tests.lib.catalogue import rows as catalogue
from tests.nicsim import escape_page
from tests.nicsim.escape_checks import ROOT, Check, checks
from tests.nicsim.escape_found import Found, gather
from tests.nicsim.escape_run import Mutants, mutants


def mutate(args: argparse.Namespace, found: Found, known: list[Check]) -> None:
    """Run what is missing, card by card. OffloadError if the lab cannot be had."""
    done = 0
    with mutants(args.kernel, args.lab, found.folder, known) as bench:
        for row in found.rows:
            if done >= args.limit:
                return
            try:
                done += of_card(row, bench, found, args.only)
            except OffloadError as exc:
                say(f"{row}: the rig broke: {str(exc).partition(chr(10))[0]}")


def of_card(name: str, bench: Mutants, found: Found, only: str) -> int:
    """Every check that failed on a card, each taken away: how many had to be."""
    if name not in found.noted and (card := bench.card(name)):
        found.cards[name] = found.noted[name] = card
    count, card = 0, found.noted.get(name)
    for check in dict.fromkeys(c for fired in bench.fired(card).values() for c in fired) if card else ():
        if only in check and found.asked(check, name):
            began = time.monotonic()
            by = bench.without(check, card)
            found.note(check, name, by, time.monotonic() - began)
            say(f"{time.monotonic() - began:6.1f} s  {name} without {check}: {by or 'ESCAPES'}")
            count += 1
    return count


def say(line: str) -> None:
    """Write a line at once, so that a long run can be followed."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """What was typed."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument("results", nargs="?", type=Path, metavar="RESULTS")
    parser.add_argument("--mutate", action="store_true", help="run the cards again without each check")
    parser.add_argument("--lab", default="", metavar="NAME", help="a lab that is up (default: boot one)")
    parser.add_argument("--kernel", default="6.1", choices=catalogue.KERNELS)
    parser.add_argument("--only", default="", metavar="TEXT", help="checks with TEXT in their name")
    parser.add_argument("--limit", type=int, default=10_000, metavar="N", help="so many checks, then stop")
    parser.add_argument("--write", action="store_true", help="write what is found into bad-nics.md")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Print it; the exit code of what went wrong."""
    args = arguments(argv)
    try:
        known = checks(ROOT)
        results = args.results or ROOT / "results" / f"certifier-{args.kernel}"
        found = gather(results, ROOT / "results" / f"escape-{args.kernel}", known)
        if args.mutate:
            mutate(args, found, known)
        said = escape_page.section(found.said(args.kernel))
        sys.stdout.write(said)
        if args.write:
            escape_page.write(said)
    except OffloadError as exc:
        sys.stderr.write(f"escape: error: {exc}\n")
        return exc.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
