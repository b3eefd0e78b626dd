"""`ktls-offload driver`: build, install, remove and show a driver with TLS offload for a Debian kernel."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path

HELP = """\
Debian's kernels can offload TLS, and their drivers of ConnectX and Chelsio cards are built without it. This
builds such a driver from Debian's own source of the same kernel version, with the one option set that is
missing. Only `install` and `remove` change the machine, and they need root.

  ktls-offload driver build mlx5       # fetch, compile (minutes), check; changes nothing
  ktls-offload driver install mlx5     # into /lib/modules/RELEASE/updates; used from the next boot
  ktls-offload driver remove mlx5      # back to Debian's driver
  ktls-offload driver status
"""
EXIT = """\
exit codes: 0 done; 2 usage, headers or programs missing; 4 needs root; 5 refused: not Debian, has the
option already, does not fit, or Secure Boot wants a signature; 6 failed and was undone; 7 no source, does not
compile.
"""


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `driver` with its verbs."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = verbs.add_parser(
        "driver", help="a driver with TLS offload for a Debian kernel", description=HELP, epilog=EXIT,
        formatter_class=layout,
    )  # fmt: skip
    inner = parser.add_subparsers(dest="driver_verb", metavar="VERB", required=True)
    for name, words in (
        ("build", "fetch the source, compile, check; changes nothing"),
        ("install", "put what was built where modprobe finds it first"),
        ("remove", "take it away again"),
        ("status", "what was built and installed"),
    ):
        verb = inner.add_parser(
            name, help=words, description=f"{words}.", epilog=EXIT, formatter_class=layout
        )
        if name != "status":
            verb.add_argument("kind", metavar="DRIVER", help="mlx5 (ConnectX-6 Dx and newer) or ch_ktls (T6)")
            verb.add_argument(
                "--kernel",
                metavar="R",
                help="release, as uname -r prints it (default: this one), or a series of the lab",
            )
        if name != "remove":
            verb.add_argument("--out", metavar="DIR", help="where it is built (default: in ~/.cache)")
        if name in ("install", "remove"):
            verb.add_argument("--dry-run", action="store_true", help="list every action as root; do none")
    build, install = inner.choices["build"], inner.choices["install"]
    inner.choices["status"].add_argument("--json", action="store_true", help="for programs")
    build.add_argument("--source", metavar="FILE", help="a linux-source-X.Y.tar.xz (default: apt fetches it)")
    build.add_argument("-j", "--jobs", type=int, default=os.cpu_count() or 1, metavar="N", help="compilers")
    install.add_argument("--dkms", action="store_true", help="let DKMS build it, also for kernels to come")


def main(args: argparse.Namespace) -> int:
    """Run one of the verbs; its exit code."""
    verbs: dict[str, Callable[[argparse.Namespace], None]] = {
        "build": build, "install": install, "remove": remove, "status": status,
    }  # fmt: skip
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
