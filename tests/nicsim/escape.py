"""Which test catches which bad card, and what if one of the suite's checks were not there?

usage: python -m tests.nicsim.escape [RESULTS] [--mutate] [--lab NAME] [--kernel K] [--only TEXT] [--limit N]

RESULTS is a folder of events, one file per bad card, as benchmarks/certifier.py leaves it
(results/certifier-6.1). What is said of a test follows from the tests that ran: of the triage tests of each
card, or with `benchmarks.certifier --whole` of all. A check is one `assert` of tests/hw or tests/lib.

--mutate takes the checks away, one by one, each in a copy of the tests, and runs the cards that it decided
once more, in a lab that is up (`ktls-offload lab up`): a card that no test fails now has escaped. What was
found is added to RESULTS/escape.json, so that a run can be interrupted, and be gone on with.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from offload.errors import ConfigError, OffloadError
from tests.lib import catalogue
from tests.nicsim.escape_checks import ROOT, Check, checks
from tests.nicsim.escape_read import Card, Facts, cards, credit

MUTANTS = "escape.json"


def table(facts: Facts, known: Iterable[Check], mutants: Mapping[str, Mapping[str, str]]) -> str:
    """The whole answer as text."""
    deciding, named = facts.deciding, {str(check): check for check in known}
    parts = [
        _block(
            "tests, and the bad cards that they catch (* alone, of several that ran)",
            [
                f"{test}: {' '.join(f'{card}*' if card in facts.alone[test] else card for card in caught)}"
                for test, caught in facts.caught.items()
                if caught
            ],
        ),
        _block("tests that ran and caught nothing", [t for t, caught in facts.caught.items() if not caught]),
        _block("promises guarded by only one test", [f"{p}: {t}" for p, t in facts.single.items()]),
        _block("bad cards that escaped", facts.escaped),
        _block("ended not by an assert of the suite", facts.elsewhere),
        _block("checks that decided no card", [name for name in named if name not in deciding]),
        _block("redundant checks", [_said(n, m) for n, m in mutants.items() if not _needed(m)]),
        _block(
            "checks without which a card escapes", [_said(n, m) for n, m in mutants.items() if _needed(m)]
        ),
    ]
    return "\n\n".join(parts) + "\n"


def _block(title: str, lines: Iterable[str]) -> str:
    rows = list(lines)
    return "\n".join([f"{title} ({len(rows)}):", *(f"  {row}" for row in rows)])


def _needed(found: Mapping[str, str]) -> bool:
    return "" in found.values()


def _said(check: str, found: Mapping[str, str]) -> str:
    """One mutant: each card, and which check caught it instead."""
    return f"{check}: " + "; ".join(
        f"{card} {f'caught by {by}' if by else 'ESCAPES'}" for card, by in found.items()
    )


def read_mutants(folder: Path) -> dict[str, dict[str, str]]:
    """What `--mutate` has found so far: check -> card -> the check that caught it then, or nothing."""
    path = folder / MUTANTS
    found: dict[str, dict[str, str]] = json.loads(path.read_text()) if path.exists() else {}
    return found


def mutate(args: argparse.Namespace, facts: Facts, known: Iterable[Check]) -> None:
    """Take checks away and run the cards that they decided. OffloadError if the lab is not there."""
    from tests.nicsim.escape_run import without

    found = read_mutants(args.results)
    left = [c for c in known if str(c) in facts.deciding and str(c) not in found and args.only in str(c)]
    for number, check in enumerate(left[: args.limit], 1):
        decided = facts.deciding[str(check)]
        say(f"[{number}/{len(left)}] without {check}: {' '.join(decided)}")
        found[str(check)] = without(check, decided, args.kernel, args.lab, args.results)
        (args.results / MUTANTS).write_text(json.dumps(found, indent=1) + "\n")
        say(f"      {_said(str(check), found[str(check)])}")


def say(line: str) -> None:
    """Write a line at once, so that a long run can be followed."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def read(folder: Path) -> list[Card]:
    """The bad cards of a folder of results. ConfigError if there is none."""
    rows = {row.id: row for row in catalogue.load() if row.end == "failed"}
    found = list(cards(folder, rows))
    if not found:
        raise ConfigError(
            f"{folder} holds no events of bad cards",
            "python -m benchmarks.certifier makes results/certifier-6.1",
        )
    return found


def arguments(argv: list[str] | None) -> argparse.Namespace:
    """What was typed."""
    shape = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=shape)
    parser.add_argument(
        "results", nargs="?", type=Path, default=ROOT / "results/certifier-6.1", metavar="RESULTS"
    )
    parser.add_argument("--mutate", action="store_true", help="run the cards again without each check")
    parser.add_argument(
        "--lab", default="", metavar="NAME", help="the lab for it (default: boot one per check)"
    )
    parser.add_argument("--kernel", default="6.1", choices=catalogue.KERNELS)
    parser.add_argument("--only", default="", metavar="TEXT", help="checks with TEXT in their name")
    parser.add_argument("--limit", type=int, default=10_000, metavar="N", help="so many checks, then stop")
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    """Print it; the exit code of what went wrong."""
    args = arguments(argv)
    try:
        known = checks(ROOT)
        facts = credit(read(args.results), known)
        if args.mutate:
            mutate(args, facts, known)
        sys.stdout.write(table(facts, known, read_mutants(args.results)))
    except OffloadError as exc:
        sys.stderr.write(f"escape: error: {exc}\n")
        return exc.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
