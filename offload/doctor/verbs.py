"""`ktls-offload doctor [DEV]`: is TLS offloaded here, and if not, why not and what to do?"""

from __future__ import annotations

import argparse
import os
import sys

HELP = """\
Doctor examines kernel, module, driver, card, switches, stacked devices (bond, VLAN), qdisc, IPsec,
OpenSSL and the configuration of servers. For each direction it reports whether new connections are
offloaded. If not, it gives the reason, the evidence, the consequence and the remedy. It changes
nothing and loads nothing. Without DEV it examines every device that may offload. As root it sees
more (the card's part number); it reports what it cannot see as unknown.

  ktls-offload doctor                  # this host
  ktls-offload doctor eth0 --tx        # one device, transmit only
  ktls-offload doctor --explain D301   # what a code means; docs/reference/reasons.md lists all codes
  ktls-offload doctor --app nginx eth0 # which of nginx's connections will be offloaded
  ktls-offload doctor --pid 1234       # why are this process's connections not offloaded?

Doctor tests OpenSSL on loopback; as root it uses a separate network namespace, so that no counter
of this host moves.
"""
EXIT = """\
exit codes:
  0   ready: every direction that the card's profile promises is on, and nothing prevents offload
  10  off: offload is possible but not active; each reason comes with a remedy
  11  never: no setting helps; it takes another kernel, driver, firmware or card
  12  unknown: doctor could not find out
  2, 3, 7  wrong usage; no such interface; a program is missing
With several devices, the best one sets the exit code.
"""


APPS = ("nginx", "haproxy", "stunnel", "openssl", "nfs", "nvme")


def number(text: str) -> int:
    """A process's number, for argparse."""
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:12]) < 1 << 22:
        raise argparse.ArgumentTypeError(f"{text[:40]!r} is not the number of a process")
    return int(text)


def add_parser(verbs: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Add `doctor`."""
    parser = verbs.add_parser(
        "doctor",
        help="find out why TLS is not offloaded here",
        description=f"Find out why TLS is not offloaded here, and what to do.\n\n{HELP}",
        epilog=EXIT,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("dev", nargs="*", metavar="DEV", help="interface (default: all that may offload)")
    parser.add_argument("--tx", action="store_true", help="transmit only")
    parser.add_argument("--rx", action="store_true", help="receive only")
    parser.add_argument("-v", "--verbose", action="store_true", help="print notes and kernel bugs in full")
    parser.add_argument("--app", choices=APPS, help="examine this program's configuration (docs/use/apps.md)")
    parser.add_argument(
        "--config",
        metavar="FILE",
        default="",
        help="file to read for --app (default: where the program looks)",
    )
    parser.add_argument("--pid", type=number, metavar="N", help="examine this process's connections")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--json", action="store_true", help="print JSON, for programs")
    how.add_argument("--explain", metavar="CODE", help="explain a reason code")


def main(args: argparse.Namespace) -> int:
    """Look and tell; the exit code."""
    from offload.card.profile import DIRECTIONS
    from offload.doctor.document import as_json
    from offload.doctor.examine import EXITS, Doctor
    from offload.doctor.text import as_text, explain
    from offload.errors import ConfigError
    from offload.host.local import LocalHost
    from offload.host.terminal import columns

    width = columns(100)
    if args.pid and (args.app or args.dev):
        raise ConfigError("--pid takes no device and no --app", "the connections' routes name the devices")
    if args.config and not args.app:
        raise ConfigError("--config needs --app", f"--app {'|'.join(APPS)}")
    if args.explain:
        sys.stdout.write(explain(args.explain, width))
        return 0
    directions = [d for d in DIRECTIONS if getattr(args, d)] or DIRECTIONS
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"
    if args.app:
        from offload.doctor.apps import document, run, text

        said = run.ask(
            LocalHost(), args.app, args.config, args.dev, directions=directions, environment=os.environ
        )
        sys.stdout.write(
            document.as_json(said) if args.json else text.as_text(said, color, width, args.verbose)
        )
        return EXITS[said.state()]
    if args.pid:
        from offload.doctor.process import judge
        from offload.doctor.process import text as of_process

        of = judge.ask(LocalHost(), args.pid, directions)
        shown = of_process.as_json(of) if args.json else of_process.as_text(of, color, width, args.verbose)
        sys.stdout.write(shown)
        return EXITS[of.state()]
    found = Doctor(LocalHost(), directions, tools=args.verbose or args.json).diagnose(args.dev)
    sys.stdout.write(as_json(found) if args.json else as_text(found, color, width, args.verbose))
    return EXITS[found.state()]
