"""`ktls-offload report recompute | show | make`: check a report, see it again, make a killed run's."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from offload.suite.report.compare import diff_verbs, history_verbs
from offload.suite.report.forms import export
from offload.suite.report.registry import verbs as registry_verbs
from offload.suite.report.trust import sign_verbs

DIFFERENT = 1
FOLDER = "folder of a run: results/<time>"
RESULT = "folder of a run (results/<time>), or an archive of one (.tar.zst or .tar.gz)"


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `report` with its verbs."""
    parser = verbs.add_parser("report", help="show, check, sign and compare reports")
    inner = parser.add_subparsers(dest="report_verb", metavar="VERB", required=True)
    for name, words in (
        (
            "recompute",
            "check report.json against events.jsonl (exit 0: identical, 1: different)",
        ),
        ("show", "print the summary of a report"),
        ("make", "write the report of a killed run from its events.jsonl"),
    ):
        verb = inner.add_parser(name, help=words)
        verb.add_argument("folder", type=Path, metavar="DIR", help=FOLDER if name == "make" else RESULT)
    inner.choices["show"].add_argument("--json", action="store_true", help="print report.json, for programs")
    export.add_parsers(inner)
    sign_verbs.add_parsers(inner)
    diff_verbs.add_parsers(inner)
    history_verbs.add_parsers(inner)
    registry_verbs.add_parsers(inner)
    parser.set_defaults(func=main)


def main(args: argparse.Namespace) -> int:
    """Run one of the verbs (`call`: of a file of its own); ConfigError for a folder without a run."""
    if hasattr(args, "call"):
        return int(args.call(args))
    if args.report_verb == "make":
        return make(args.folder)
    from offload.suite.report.trust.opened import opened

    with opened(args.folder) as folder:
        if args.report_verb == "show":
            return show(folder, args.json)
        return recompute(folder, args.folder)


def make(folder: Path) -> int:
    """Write report.json, report.html and summary.txt; never over a report that is there."""
    from offload.errors import ConfigError
    from offload.suite.report.files import write
    from offload.suite.report.trust import manifest

    if (folder / "report.json").exists():
        raise ConfigError(f"{folder / 'report.json'} already exists", "`report recompute` compares it")
    document = write(folder)
    manifest.write(folder)
    say(f"{document['verdict']}: {folder / 'report.html'}\n")
    return 0


def show(folder: Path, as_json: bool = False) -> int:
    """Print the summary of report.json, or the document itself (schema/report-2.schema.json), in ASCII."""
    from offload.suite.report.render.summary import text
    from offload.suite.report.trust.saved import saved

    document = saved(folder)
    say(show_json(document) if as_json else show_text(document, text))
    return 0


def show_json(document: dict[str, Any]) -> str:
    """Return the document as JSON that no terminal obeys; ConfigError for what JSON cannot say."""
    from offload.errors import ConfigError

    try:
        return json.dumps(document, sort_keys=True, allow_nan=False, indent=1) + "\n"
    except (ValueError, RecursionError) as exc:
        raise ConfigError(f"report.json is damaged: {exc}") from None


def show_text(document: dict[str, Any], text: Any) -> str:
    """Return the summary, or say which part of the document is missing."""
    from offload.errors import ConfigError
    from offload.suite.report.trust.saved import MISFITS

    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    try:
        width = shutil.get_terminal_size((100, 24)).columns
        return str(text(document, width=max(width, 60), color=color))
    except MISFITS as exc:
        raise ConfigError(f"report.json is damaged: {type(exc).__name__} at {exc}") from None


def recompute(folder: Path, shown: Path) -> int:
    """Compute the document again and compare it with report.json, value by value; then what is made of it.

    `shown`: what the user typed, which may be the archive of the folder.
    """
    from offload.suite.report.events import content
    from offload.suite.report.files import compute, pages
    from offload.suite.report.render.render import canonical
    from offload.suite.report.trust.opened import whole
    from offload.suite.report.trust.saved import saved

    old, new = saved(folder), compute(folder)
    if content(folder / "report.json") == canonical(new):
        listed = None if folder == shown else whole(folder)
        wrong = [name for name, made in pages(folder, new, listed) if not _is_made(folder / name, made)]
        for name in wrong:
            say(f"DIFFERENT: {shown / name} differs from what this version makes of report.json\n")
        say(f"identical: {shown / 'report.json'} follows from its events; verdict: {new['verdict']}\n")
        return DIFFERENT if wrong else 0
    found = list(differences(old, new))
    say(f"DIFFERENT: {shown / 'report.json'} does not follow from its events and today's criteria\n")
    for line in found[:20] or ["the values are the same, but the file is not in canonical form"]:
        say(f"  {line}\n")
    if len(found) > 20:
        say(f"  and {len(found) - 20} more\n")
    return DIFFERENT


def _is_made(path: Path, made: Callable[[], bytes]) -> bool:
    """Say whether a file is what is made again; one that is not there is `report verify`'s matter."""
    return not path.is_file() or path.read_bytes() == made()


def differences(old: Any, new: Any, where: str = "") -> Iterator[str]:
    """Yield each place where two trees differ, with what is written and what follows."""
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(old.keys() | new.keys()):
            yield from differences(old.get(key), new.get(key), f"{where}.{key}" if where else key)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, pair in enumerate(zip(old, new, strict=True)):
            yield from differences(*pair, f"{where}[{number}]")
    elif old != new or type(old) is not type(new):
        yield f"{where}: written {old!r:.80}, recomputed {new!r:.80}"


def say(line: str) -> None:
    """Write to standard output."""
    sys.stdout.write(line)
