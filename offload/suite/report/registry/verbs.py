"""`ktls-offload report registry`: a static site of signed results, made from a folder of archives."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

WORDS = "make a static site of signed results from a folder of archives"
MORE = """\
DIR holds archives as `report archive` makes them (*.tar.zst, *.tar.gz). Each one is verified before it is
listed: intact, signed by one of the allowed signers, and its verdict follows from its events. The site has a
table by card, kernel and driver, each report, what changed since the last one, a picture and a badge.

exit codes:
  0   every archive is listed
  1   some are not; each is named with the reason
  2   no such folder, no archive in it, or --out is no registry
  5   a .tar.zst, and zstd is not installed; 7 the site cannot be written
"""


def add_parsers(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `registry`."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = verbs.add_parser(
        "registry", help=WORDS, description=f"{WORDS}.\n\n{MORE}", formatter_class=layout
    )
    parser.add_argument("folder", type=Path, metavar="DIR", help="folder of archives")
    parser.add_argument(
        "--out", type=Path, required=True, metavar="SITE", help="folder of the site; its content is replaced"
    )
    parser.add_argument(
        "--allowed-signers", type=Path, required=True, metavar="F", help="file that lists the trusted signers"
    )
    parser.add_argument("--identity", metavar="I", help="require this signer")
    parser.set_defaults(call=registry)


def registry(args: argparse.Namespace) -> int:
    """Make the site, and say what is on it. ConfigError if there is nothing to list."""
    from offload.errors import ConfigError
    from offload.suite.report.registry.listed import compared, read
    from offload.suite.report.registry.site import write

    found, wrong = read(args.folder, args.allowed_signers, args.identity)
    if not found and not wrong:
        raise ConfigError(f"{args.folder}: no archive is there", "`report archive DIR OUT.tar.zst` makes one")
    write(args.out, compared(found), wrong)
    sys.stdout.write(f"{args.out / 'index.html'}: {len(found)} listed, {len(wrong)} not\n")
    for name, why in wrong.items():
        sys.stdout.write(f"  not listed: {ascii(name)[1:-1]}: {why}\n")
    return 1 if wrong else 0
