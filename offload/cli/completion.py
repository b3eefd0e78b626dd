"""`ktls-offload completion bash|zsh|fish`: the script by which a shell completes verbs and values."""

from __future__ import annotations

import argparse
import sys

SHELLS = ("bash", "zsh", "fish")
HELP = """\
Prints a completion script for your shell: it completes verbs, options, option values, interfaces,
profiles and files. It fits this version of the command; generate it again after an update. The
Debian package installs all three scripts.
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `completion`."""
    words = "print a completion script for your shell"
    layout = argparse.RawDescriptionHelpFormatter
    parser = verbs.add_parser(
        "completion",
        help=words,
        description=f"{words[0].upper()}{words[1:]}.\n\n{HELP}",
        formatter_class=layout,
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")


def main(args: argparse.Namespace) -> int:
    """Print the script."""
    from offload.card.profile import load_all
    from offload.cli.main import whole
    from offload.cli.shell import script

    profiles = [profile.id for profile in load_all()]
    sys.stdout.write(script(args.shell, whole(), profiles))
    return 0
