"""`ktls-offload report history`: how results went over time, from a folder or an SQLite file of them."""

from __future__ import annotations

import argparse
import sys
from contextlib import closing
from pathlib import Path

WORDS = "show results over time by NIC, kernel and firmware"
MORE = """\
PATH is a folder of results, such as results/, or a file that --db wrote. --db stores the results in an
SQLite file, and the next call reads only new ones; the file keeps results that you delete later.
Verdicts: C certified, L certified with limitations, I incomplete, F failed, V void.

exit codes: 0 done, whatever the verdicts; 2 PATH has no history; 7 a file cannot be written
"""


def add_parsers(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `history`."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = verbs.add_parser(
        "history", help=WORDS, description=f"{WORDS}.\n\n{MORE}", formatter_class=layout
    )
    parser.add_argument("path", type=Path, metavar="PATH", help="folder of results, or file that --db wrote")
    parser.add_argument("--db", type=Path, metavar="FILE", help="store the results in this SQLite file")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page with trend plots")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    for name in ("nic", "kernel", "firmware"):
        parser.add_argument(f"--{name}", metavar="PART", help=f"show only results whose {name} contains PART")
    parser.set_defaults(call=history)


def history(args: argparse.Namespace) -> int:
    """Print the history. ConfigError if there is none, RigError if a file cannot be written."""
    from offload.errors import ConfigError
    from offload.suite.report.compare import history as room
    from offload.suite.report.compare.history_store import add_folder, open_store
    from offload.suite.report.trust.saved import put

    folder = args.path.is_dir()
    if not folder and not args.path.exists():
        raise ConfigError(f"{args.path}: no such folder or file", "name a folder of results")
    if args.db and not folder:
        raise ConfigError(f"{args.path} is a file: --db stores the results of a folder", "omit --db")
    with closing(open_store(args.db if folder else args.path, change=folder)) as store:
        wrong = add_folder(store, args.path) if folder else []
        found = room.history(store, {"card": args.nic, "kernel": args.kernel, "firmware": args.firmware})
    if not found["benches"]:
        raise ConfigError(f"{args.path} contains no result" + _why(wrong), "name the folder above the runs")
    if args.html:
        from offload.suite.report.render.history_page import html

        put(args.html, html(found).encode("utf-8", "backslashreplace"))
    sys.stdout.write(room.as_json(found, wrong) if args.json else room.text(found, wrong))
    return 0


def _why(wrong: list[tuple[str, str]]) -> str:
    return f" that can be read ({wrong[0][0]}: {wrong[0][1]})" if wrong else ""
