"""`ktls-offload report diff`: what became worse from one result to another."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

WORDS = "compare two results and report what became worse"
MORE = """\
OLD and NEW are folders of runs, or report.json files. A promise is worse if the card kept it before
and breaks or limits it now. Figures come with their 95 % intervals and count as worse or better only
if the intervals do not overlap; they do not change the exit code.

exit codes:
  0    no promise and no cell of the truth table is worse
  1    a promise or a cell is worse
  21   none is worse, but the new run no longer proves one that the old run proved
  22   one of the runs is void, so a comparison is impossible
  2    a result does not exist, or it is damaged
"""


def add_parsers(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `diff`."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = verbs.add_parser("diff", help=WORDS, description=f"{WORDS}.\n\n{MORE}", formatter_class=layout)
    parser.add_argument("old", type=Path, metavar="OLD", help="the earlier result")
    parser.add_argument("new", type=Path, metavar="NEW", help="the later result")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.set_defaults(call=diff)


def diff(args: argparse.Namespace) -> int:
    """Compare two results; ConfigError for what is none."""
    from offload.errors import ConfigError
    from offload.suite.report.compare.diff import as_json, compare, text
    from offload.suite.report.trust.saved import MISFITS, saved_file

    places = [
        path if path.exists() and not path.is_dir() else path / "report.json" for path in (args.old, args.new)
    ]
    old, new = (saved_file(path) for path in places)
    try:
        found = compare(old, new)
        shown = as_json(found) if args.json else text(found)
    except MISFITS as exc:
        raise ConfigError(
            f"{places[0]} or {places[1]} is damaged: {type(exc).__name__} at {exc}",
            "`report recompute` says more",
        ) from None
    sys.stdout.write(shown)
    return int(found["exit"])
