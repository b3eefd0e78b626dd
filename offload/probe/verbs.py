"""`ktls-offload probe DEV`: a first profile of a card that nobody has described, from what it shows."""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from offload.errors import ConfigError, RigError

if TYPE_CHECKING:
    from offload.card.profile import Profile
    from offload.probe.look import Seen

HELP = """\
Writes a draft profile. `# seen: ...` marks values that it read from the card and where, and
`# GUESS: ...` marks the others, with the basis of each guess. The draft is valid: `enable DEV
--profile FILE` and the tests accept it. add-a-nic.md explains where in the driver's source you
can check each guess. Probe changes nothing.

With --try, as root, it offers the card a connection of each TLS version and cipher in the
directions that are on, and promises what the card accepted. These connections exist only in this
kernel; no frame is sent.

Without --out it prints the draft. It never overwrites a file.
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `probe`."""
    words = "draft a profile for a card that has none"
    parser = verbs.add_parser(
        "probe",
        help=words,
        description=f"{words[0].upper()}{words[1:]}.\n\n{HELP}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dev", metavar="DEV", help="interface of the card")
    parser.add_argument(
        "--try", dest="offer", action="store_true", help="test what the card accepts; needs root"
    )
    parser.add_argument(
        "--out", type=Path, metavar="FILE", help="new file, named ID.yaml (default: print the draft)"
    )


def main(args: argparse.Namespace) -> int:
    """Look, draft, check the draft by the profile schema, write or print it."""
    from offload.host.local import LocalHost
    from offload.probe.draft import draft, ident
    from offload.probe.look import see
    from offload.probe.trial import offered

    if args.out:
        check(args.out)
    host = LocalHost()
    seen = see(host, args.dev)
    if args.offer:
        seen = replace(seen, trial=offered(host, seen.nic))
    name = args.out.stem if args.out else ident(seen)
    text = draft(seen, name)
    profile = valid(text, name)
    if args.out:
        write(args.out, text)
        sys.stdout.write(f"{args.out}: {summary(text, profile)}\n")
    else:
        sys.stdout.write(text)
    tell(seen, args.out or Path(f"{name}.yaml"))
    return 0


def check(out: Path) -> None:
    """ConfigError for a file that cannot become a profile, before anything is looked at."""
    from offload.card.profile_schema import NAME

    if out.suffix != ".yaml" or not re.fullmatch(NAME, out.stem):
        raise ConfigError(
            f"--out {str(out)!r}: wanted ID.yaml, the id in lower case", "nic-profiles/foo-9.yaml"
        )
    if os.path.lexists(out):
        raise ConfigError(f"{out} already exists and is never overwritten", "name another file with --out")
    if not out.parent.is_dir():
        raise ConfigError(f"--out {str(out)!r}: no folder {out.parent}")


def valid(text: str, name: str) -> Profile:
    """The draft as a profile. RigError if the schema refuses what we made."""
    from offload.card.profile import load

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / f"{name}.yaml"
        path.write_text(text)
        try:
            return load(path)
        except ConfigError as exc:
            raise RigError(f"the draft is not valid; this is a bug of ktls-offload:\n{exc}") from None


def write(out: Path, text: str) -> None:
    """Make the file; ConfigError if it came into being meanwhile or cannot be made."""
    try:
        with out.open("x") as file:
            file.write(text)
    except OSError as exc:
        raise ConfigError(f"cannot make {out}: {exc.strerror}", "name another file with --out") from None


def summary(text: str, profile: Profile) -> str:
    """Return what the draft promises, and how many guesses are in it, on one line."""
    promised = "; ".join(f"{d} {profile.offloads(d)}" for d in profile.directions()) or "promises nothing"
    return f"{promised}; {text.count('GUESS')} lines marked GUESS"


def tell(seen: Seen, out: Path) -> None:
    """Print hints about the draft on standard error."""
    profile, dev = seen.found.profile, seen.nic.dev
    if seen.found.simulated:
        sys.stderr.write(f"note: {dev} is SIMULATED by {seen.nic.driver}, and emulates {seen.found.plays}\n")
    if profile:
        sys.stderr.write(f"note: {dev} already has a profile: {profile.id}\n")
    if not any(seen.offers(d) for d in ("tx", "rx")):
        words = f"note: the kernel shows no TLS offload for {dev}, so the draft promises nothing"
        sys.stderr.write(f"{words}; why: ktls-offload doctor {dev}\n")
    sys.stderr.write(
        f"next: settle each GUESS (add-a-nic.md), then ktls-offload enable {dev} --profile {out}\n"
    )
