"""`ktls-offload report export | archive`: a run in another format, or packed to share."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

FORMS = {
    "ktap": "nested KTAP, the format of kernel selftests and netdev CI",
    "junit": "JUnit XML, for CI servers",
    "checkbox": "Checkbox submission.json, for certification portals",
    "in-toto": "in-toto statement of type test-result, with the digests of the run's files",
    "kcidb": "a submission to KCIDB, schema v5.3: the database of kernel test results",
    "card": "one picture, as SVG: card, kernel, verdict, three figures, digest",
    "card-png": "the same as PNG; needs Chromium",
    "pdf": "the report page on A4; needs Chromium",
}
BYTES = {"pdf": "a PDF", "card-png": "a PNG"}  # formats that are not text
FOLDER = "folder of a run: results/<time>"
EPILOG = "formats:\n" + "".join(f"  {name:<10}{words}\n" for name, words in FORMS.items())


def add_parsers(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `export` and `archive`; nothing is imported for them."""
    words = "print the report in another format"
    verb = verbs.add_parser(
        "export",
        help=words,
        description=f"{words}.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    verb.add_argument("folder", type=Path, metavar="DIR", help=FOLDER)
    verb.add_argument("--as", dest="form", metavar="FORM", required=True, help=f"format: {', '.join(FORMS)}")
    verb.add_argument("--out", type=Path, metavar="FILE", help="write to FILE instead of standard output")
    verb.set_defaults(call=export)
    words = "pack a run to share it: parts of captures, never keys"
    verb = verbs.add_parser("archive", help=words)
    verb.add_argument("folder", type=Path, metavar="DIR", help=FOLDER)
    verb.add_argument("out", type=Path, metavar="OUT", help="a new file: NAME.tar.zst or NAME.tar.gz")
    verb.set_defaults(call=archive)


def export(args: argparse.Namespace) -> int:
    """Write one form. ConfigError for an unknown one, a damaged report, or a file of the run as --out."""
    from offload.card.profile import near
    from offload.errors import ConfigError
    from offload.suite.report.trust.saved import put, saved

    if args.form not in FORMS:
        raise ConfigError(f"no form {args.form!r}{near(args.form, FORMS)}", f"one of {', '.join(FORMS)}")
    if args.out and args.out.exists() and args.out.resolve().is_relative_to(args.folder.resolve()):
        raise ConfigError(f"{args.out} is a file of the run", "name another file with --out")
    if not args.out and args.form in BYTES and sys.stdout.isatty():
        raise ConfigError(f"{BYTES[args.form]} cannot go to a terminal", "--out FILE, or > FILE")
    data = made(args.form, saved(args.folder), args.folder)
    if args.out:
        put(args.out, data)
    else:
        sys.stdout.buffer.write(data)
    return 0


def made(form: str, document: Mapping[str, Any], folder: Path) -> bytes:
    """Return one form of a document. ConfigError if a part of it is missing."""
    from offload.errors import ConfigError
    from offload.suite.report.trust.saved import MISFITS

    try:
        return _made(form, document, folder)
    except MISFITS as exc:
        raise ConfigError(f"report.json is damaged: {type(exc).__name__} at {exc}") from None


def _made(form: str, document: Mapping[str, Any], folder: Path) -> bytes:
    from offload.suite.report.forms import checkbox, in_toto, junit, kcidb, ktap, pdf
    from offload.suite.report.render import card
    from offload.suite.report.render.render import html
    from offload.suite.report.trust.kept import kept

    if form == "ktap":
        return ktap.ktap(document).encode("utf-8", "backslashreplace")
    if form == "junit":
        return junit.junit(document)
    if form == "pdf":
        return pdf.pdf(html(document))
    if form == "card":
        return card.svg(document).encode("utf-8", "backslashreplace") + b"\n"
    if form == "card-png":
        return card.png(document)
    if form == "kcidb":
        return _json(kcidb.document(document))
    if form == "checkbox":
        return _json(checkbox.submission(document))
    return _json(in_toto.statement(document, {one.name: one.sha256 for one in kept(folder)}))


def _json(tree: Mapping[str, Any]) -> bytes:
    text = json.dumps(tree, ensure_ascii=False, allow_nan=False, indent=1)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def archive(args: argparse.Namespace) -> int:
    """Pack a run, and say what is in it. Errors as `archive.pack`."""
    from offload.suite.report.trust.archive import pack

    packed = pack(args.folder, args.out)
    sys.stdout.write("".join(f"{line}\n" for line in packed.lines()))
    return 0
