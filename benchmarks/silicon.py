"""Does the suite catch bad cards below the real driver? Runs the rows of silicon.yaml and prints the table.

usage: python -m benchmarks.silicon [--kernel K] [--only TEXT...] [--attach LAB] [--no-good] [--write]

cx6sim plays the cards, and the unmodified mlx5_core drives them: one lab, card after card, a good one after
every six. Events: results/silicon-KERNEL/ID.jsonl; what was found: found.json. `make certify-the-certifier
CARD=mlx5` calls it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from offload.errors import OffloadError
from tests.lib.catalogue import page, rows, silicon
from tests.lib.catalogue.rows import Step

ROOT = Path(__file__).parents[1]
WIDTH = 200
Json = dict[str, Any]


def arguments() -> argparse.Namespace:
    """What was typed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--kernel", default="6.1", choices=rows.KERNELS)
    parser.add_argument("--only", nargs="+", default=[], metavar="TEXT", help="cards with TEXT in their id")
    parser.add_argument("--attach", default="", metavar="LAB", help="use this lab of kind mlx5")
    parser.add_argument("--no-good", action="store_true", help="no good cards in between")
    parser.add_argument("--write", action="store_true", help="write the table into docs/certify/bad-nics.md")
    return parser.parse_args()


def plan(args: argparse.Namespace) -> list[Step]:
    """The steps that were asked for."""
    found = [row for row in silicon.load() if args.kernel in row.kernels]
    if args.only:
        found = [row for row in found if any(text in row.id for text in args.only)]
    return [step for step in rows.steps(found) if step.row or not args.no_good]


def done(stand: silicon.SiliconStand, step: Step) -> Json:
    """What was found of one step: a rig that broke, or a fault that was never hit, is a problem."""
    began = time.monotonic()
    try:
        found = stand.do(step).json()
    except OffloadError as exc:
        why = f"the rig broke: {str(exc).strip().splitlines()[0]}"
        found = {"id": step.id, "word": "void", "promise": "", "line": "", "tests": 0, "left": "", "fired": 0}
        return found | {"problem": why, "seconds": round(time.monotonic() - began, 1)}
    if step.row and not (found["fired"] or found["problem"]):
        found["problem"] = "the fault was never hit"
    return found


def run(args: argparse.Namespace, folder: Path) -> dict[str, Json]:
    """Do all the steps, and print each; what was found, by id."""
    found: dict[str, Json] = {}
    with silicon.SiliconStand(args.kernel, folder, quiet, args.attach) as stand:
        for step in plan(args):
            found[step.id] = done(stand, step)
            (folder / "found.json").write_text(json.dumps(found, indent=1) + "\n")
            print(page.line(found[step.id], step.row.title if step.row else "a good card", WIDTH), flush=True)
    return found


def quiet(_: str) -> None:
    """Swallow progress lines."""


def write(found: dict[str, Json], kernel: str) -> None:
    """Put the table into the page, if it is of the page's kernel and every card was run and caught."""
    there = silicon.shown()
    if kernel != silicon.KERNEL or any(row.id not in found or found[row.id]["problem"] for row in there):
        print(f"nothing was written: not every card of {silicon.KERNEL} was run and caught")
        return
    page.PAGE.write_text(page.page(page.PAGE.read_text(), there, found, silicon.MARK))


def main() -> int:
    """Run it; exit 1 if a card was not caught as its row wants, or a good one was."""
    args, began = arguments(), time.monotonic()
    folder = ROOT / "results" / f"silicon-{args.kernel}"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    try:
        found = run(args, folder)
    except OffloadError as exc:
        print(f"silicon: error: {exc}", file=sys.stderr)
        return exc.exit_code
    wrong = [name for name, was in found.items() if was["problem"]]
    print(f"\n{len(found)} steps below mlx5_core on {args.kernel}: {len(wrong)} not as they should be")
    print(f"{wrong or 'all caught'}; {time.monotonic() - began:.0f} s in all")
    if args.write:
        write(found, args.kernel)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
