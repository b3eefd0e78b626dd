"""`ktls-offload completion bash|zsh|fish`: the script by which a shell completes verbs and values."""

from __future__ import annotations

import argparse
import sys

SHELLS = ("bash", "zsh", "fish")
HELP = """\
Prints a script for the shell: verbs, options, words that an option takes, interfaces, profiles, files.
It is made from the command's own parser, so it fits this version; make it anew after an update. The
Debian package brings all three.
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `completion`."""
    words = "the script that lets a shell complete this command"
    layout = argparse.RawDescriptionHelpFormatter
    parser = verbs.add_parser(
        "completion", help=words, description=f"{words}.\n\n{HELP}", formatter_class=layout
    )
    parser.add_argument("shell", choices=SHELLS, metavar="SHELL", help="bash, zsh or fish")


def main(args: argparse.Namespace) -> int:
    """Print the script."""
    from offload.cli import whole
    from offload.cli_shell import script
    from offload.profile import load_all

    profiles = [profile.id for profile in load_all()]
    sys.stdout.write(script(args.shell, whole(), profiles))
    return 0
