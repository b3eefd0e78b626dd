"""`ktls-offload driver`: build, install, remove and show a driver with TLS offload for a Debian kernel."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

HELP = """\
Debian's kernels can offload TLS, but Debian builds the drivers of ConnectX and Chelsio cards without
it. This command builds such a driver from Debian's source of the same kernel version, with the one
missing option set. Only `install` and `remove` change the machine; they need root.

  ktls-offload driver build mlx5       # download, compile (minutes), check; changes nothing
  ktls-offload driver install mlx5     # as root: into /lib/modules/RELEASE/updates, for the next boot
  ktls-offload driver remove mlx5      # as root: go back to Debian's driver
  ktls-offload driver status
"""
EXIT = """\
exit codes: 0 done; 2 wrong usage, or headers or programs are missing; 4 needs root; 5 refused: not
Debian, the option is already set, the module does not fit, or Secure Boot requires a signature;
6 failed, all changes undone; 7 no source, or it does not compile.
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `driver` with its verbs."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = verbs.add_parser(
        "driver",
        help="build a driver with TLS offload for a Debian kernel",
        description=HELP,
        epilog=EXIT,
        formatter_class=layout,
    )
    inner = parser.add_subparsers(dest="driver_verb", metavar="VERB", required=True)
    for name, words in (
        ("build", "download the source, compile, check; changes nothing"),
        ("install", "install the built driver where modprobe finds it first"),
        ("remove", "remove the installed driver again"),
        ("status", "show what is built and installed"),
    ):
        verb = inner.add_parser(
            name,
            help=words,
            description=f"{words[0].upper()}{words[1:]}.",
            epilog=EXIT,
            formatter_class=layout,
        )
        if name != "status":
            verb.add_argument("kind", metavar="DRIVER", help="mlx5 (ConnectX-6 Dx and newer) or ch_ktls (T6)")
            verb.add_argument(
                "--kernel",
                metavar="R",
                help="kernel release (uname -r; default: this one), or a series of the lab",
            )
        if name != "remove":
            verb.add_argument("--out", metavar="DIR", help="build folder (default: in ~/.cache)")
        if name in ("install", "remove"):
            verb.add_argument(
                "--dry-run", action="store_true", help="list the root actions without doing them"
            )
    build, install = inner.choices["build"], inner.choices["install"]
    inner.choices["status"].add_argument("--json", action="store_true", help="print JSON, for programs")
    build.add_argument(
        "--source", metavar="FILE", help="a linux-source-X.Y.tar.xz (default: download with apt)"
    )
    build.add_argument(
        "-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="parallel compilers"
    )
    install.add_argument("--dkms", action="store_true", help="let DKMS build it, for future kernels too")


def main(args: argparse.Namespace) -> int:
    """Run one of the verbs; its exit code."""
    verbs: dict[str, Callable[[argparse.Namespace], None]] = {
        "build": build,
        "install": install,
        "remove": remove,
        "status": status,
    }
    verbs[args.driver_verb](args)
    return 0


def say(text: str) -> None:
    """One line for the person, at once."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def _out(args: argparse.Namespace) -> Path | None:
    return Path(args.out) if args.out else None


def build(args: argparse.Namespace) -> None:
    """Fetch, compile, check."""
    from offload.driver import secure
    from offload.driver.build import build as make
    from offload.driver.build import built_modules
    from offload.driver.kinds import kind
    from offload.driver.target import find
    from offload.errors import ConfigError

    if args.jobs < 1:
        raise ConfigError(f"--jobs {args.jobs}: at least 1")
    what = kind(args.kind)
    target = find(args.kernel)
    tree = make(target, what, _out(args), Path(args.source) if args.source else None, args.jobs, say)
    gate = secure.gate()
    say(f"{gate.why}: {'sign them before install, which says how' if gate.closed else 'no signature needed'}")
    say(f"{', '.join(p.name for p in built_modules(what, tree))} for {target.release} in {tree}")
    again = [f" {o} {v}" for o, v in (("--kernel", args.kernel), ("--out", args.out)) if v]
    say(f"nothing was installed; next: ktls-offload driver install {what.name}{''.join(again)}")


def install(args: argparse.Namespace) -> None:
    """Put it there."""
    from offload.driver.build import place
    from offload.driver.install import install as put
    from offload.driver.kinds import kind
    from offload.driver.target import find

    what, target = kind(args.kind), find(args.kernel)
    put(target, what, place(what, target.release, _out(args)), args.dkms, args.dry_run, say)


def remove(args: argparse.Namespace) -> None:
    """Take it away."""
    from offload.driver.install import remove as take
    from offload.driver.kinds import kind
    from offload.driver.target import bare

    take(bare(args.kernel), kind(args.kind), args.dry_run, say)


def status(args: argparse.Namespace) -> None:
    """Show."""
    from offload.driver.status import as_json, gather, lines

    found = gather(_out(args))
    for line in [as_json(found)] if args.json else lines(found):
        say(line)
