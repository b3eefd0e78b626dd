"""`ktls-offload report sign | verify`: put a name to a result, and see whether it is as it was left."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

RAW = argparse.RawDescriptionHelpFormatter
SIGN = """\
Signs manifest.json, which lists every file of the run with its SHA-256. It uses `ssh-keygen -Y sign`
with the namespace report@ktls-offload. For a key in ssh-agent or in hardware, name the public file.
Sign refuses a run that differs from its manifest; it adds a manifest to a run that has none.
"""
VERIFY = """\
Compares every file with manifest.json and reports changed, missing and extra files, and links.
Of an archive it also reports the captures that the archive holds in part, and files left out.
--allowed-signers requires a signature by a trusted signer. Its file has the format of
ssh-keygen(1), for example:
  lab@example.org namespaces="report@ktls-offload" ssh-ed25519 AAAA...

exit codes:
  0   intact; with --allowed-signers: signed by a trusted signer
  1   not intact, or the required signature is missing or wrong
  2   the folder or the file of signers does not exist
  7   the run has a signature, but ssh-keygen is not installed
"""


def add_parsers(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `sign` and `verify`."""
    words = "sign a result with an SSH key"
    parser = verbs.add_parser("sign", help=words, description=f"{words}.\n\n{SIGN}", formatter_class=RAW)
    _folder(parser)
    parser.add_argument(
        "--key", type=Path, required=True, metavar="K", help="file of an SSH key, for ssh-keygen"
    )
    parser.set_defaults(call=sign)
    words = "verify the files and the signature of a result"
    parser = verbs.add_parser("verify", help=words, description=f"{words}.\n\n{VERIFY}", formatter_class=RAW)
    _folder(parser, "folder of a run (results/<time>), or an archive of one (.tar.zst or .tar.gz)")
    parser.add_argument(
        "--allowed-signers", type=Path, metavar="F", help="file that lists the trusted signers"
    )
    parser.add_argument("--identity", metavar="I", help="require this signer")
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    parser.set_defaults(call=verify)


def _folder(parser: argparse.ArgumentParser, words: str = "folder of a run: results/<time>") -> None:
    parser.add_argument("folder", type=Path, metavar="DIR", help=words)


def sign(args: argparse.Namespace) -> int:
    """Sign a folder; Refused if it is not as its manifest says."""
    from offload.errors import Refused
    from offload.suite.report.trust import manifest, verify
    from offload.suite.report.trust import sign as signing

    if os.path.lexists(args.folder / manifest.NAME):
        bad = verify.compare(args.folder).problems
        if bad:
            raise Refused(
                f"{args.folder} has changed since the run: {manifest.shown(bad[0].path)}: {bad[0].words}",
                f"`report verify` lists all {len(bad)}; without {manifest.NAME} the folder is listed again",
            )
    sys.stdout.write(f"signed: {signing.sign(args.folder, args.key)}\n")
    return 0


def verify(args: argparse.Namespace) -> int:
    """Say whether a folder or an archive is intact, and who signed it."""
    from offload.suite.report.trust.opened import check
    from offload.suite.report.trust.verify import DAMAGED, as_json, text

    found = check(args.folder, args.allowed_signers, args.identity)
    sys.stdout.write(as_json(found) if args.json else text(found))
    return DAMAGED if found.problems else 0
