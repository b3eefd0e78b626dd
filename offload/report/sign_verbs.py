"""`ktls-offload report sign | verify`: put a name to a result, and see whether it is as it was left."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

RAW = argparse.RawDescriptionHelpFormatter
SIGN = """\
Signs manifest.json, which lists every file of the run with its SHA-256, by `ssh-keygen -Y sign` in the
namespace report@ktls-offload. Keys in ssh-agent or in hardware work: name the public file. What does not fit
its manifest is refused; a run of an earlier version, which has none, gets one.
"""
VERIFY = """\
Compares every file with manifest.json: changed, missing, extra, links. --allowed-signers demands a signature
by one of them, in the format of ssh-keygen(1), for instance
  lab@example.org namespaces="report@ktls-offload" ssh-ed25519 AAAA...

exit codes:
  0   intact; with --allowed-signers also: signed by one of them
  1   not intact, or not signed as it was asked
  2   there is no such folder, or no such file of signers
  7   there is a signature, and no ssh-keygen to check it
"""


def add_parsers(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `sign` and `verify`."""
    words = "sign a result with an SSH key"
    parser = verbs.add_parser("sign", help=words, description=f"{words}.\n\n{SIGN}", formatter_class=RAW)
    _folder(parser)
    parser.add_argument(
        "--key", type=Path, required=True, metavar="K", help="file of an SSH key; it is handed to ssh-keygen"
    )
    parser.set_defaults(call=sign)
    words = "check that every file of a result is as it was left, and who signed it"
    parser = verbs.add_parser("verify", help=words, description=f"{words}.\n\n{VERIFY}", formatter_class=RAW)
    _folder(parser)
    parser.add_argument("--allowed-signers", type=Path, metavar="F", help="who may have signed it")
    parser.add_argument("--identity", metavar="I", help="who of them it has to be")
    parser.add_argument("--json", action="store_true", help="for programs")
    parser.set_defaults(call=verify)


def _folder(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help="the folder of a run, results/<time>")


def sign(args: argparse.Namespace) -> int:
    """Sign a folder; Refused if it is not as its manifest says."""
    from offload.errors import Refused
    from offload.report import manifest, verify
    from offload.report import sign as signing

    if os.path.lexists(args.folder / manifest.NAME):
        bad = verify.compare(args.folder).problems
        if bad:
            raise Refused(
                f"{args.folder} is not as it was left: {manifest.shown(bad[0].path)}: {bad[0].words}",
                f"`report verify` lists all {len(bad)}; without {manifest.NAME} what is there is listed anew",
            )
    sys.stdout.write(f"signed: {signing.sign(args.folder, args.key)}\n")
    return 0


def verify(args: argparse.Namespace) -> int:
    """Say whether a folder is intact, and who signed it."""
    from offload.report.verify import DAMAGED, as_json, check, text

    found = check(args.folder, args.allowed_signers, args.identity)
    sys.stdout.write(as_json(found) if args.json else text(found))
    return DAMAGED if found.problems else 0
