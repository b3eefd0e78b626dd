"""`ktls-offload status | enable | disable | restore`: show a card's offload, switch it, put it back."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from offload.errors import OffloadError

SWITCH = """\
Without --tx or --rx, enable switches on every direction that the card's profile promises, and
disable switches both off. To get back what was set before the *first*
change, use `ktls-offload restore`. Only restore unloads modules that enable loaded.
The journal records the old value before each change; the new value is read back after it. If
switching a device fails, or on Ctrl-C or SIGTERM, the changes to that device are undone.
Several devices, and the ports of a bond, are switched in turn. Devices that cannot be switched
are reported before any change. Devices that were finished before a failure stay switched.
Exit codes: ktls-offload --help.
"""
PERSIST = """keep the setting over reboots, in a file of HOW: auto (default), networkmanager, systemd or
ifupdown; none removes that file and switches nothing"""
RESTORE = """\
Puts features and modules back as they were before the first enable or disable of this boot, newest
change first, and clears the journal. That may be "on": some drivers start with a direction on.
You can run it at any time and repeatedly, also after kill -9 of an earlier command. A reboot resets
the card, so it drops entries of an earlier boot or of a replaced device; it recognizes a renamed
device. It leaves the file of `enable --persist` alone: `enable DEV --persist none` removes that.
Exit codes: ktls-offload --help.
"""
STATUS = """\
Shows for each device and direction what the kernel reports and, if offload is off, why and what
to do. Needs neither root nor a profile. Without DEV it shows every device that has TLS offload or
a profile, and names the others in one line. --json prints a document with "schema": 1.
"""
DRY_RUN = "list the root actions without doing them"
KEEPERS = ("auto", "networkmanager", "systemd", "ifupdown", "netplan", "none")


def add_status(verbs: Any) -> None:
    """The command line of `status`."""
    parser = _verb(verbs, "status", "show what each card supports, and what is on", STATUS)
    parser.add_argument("dev", nargs="*", metavar="DEV", help="interface (default: all)")


def add_enable(verbs: Any) -> None:
    """The command line of `enable`."""
    parser = _verb(verbs, "enable", "switch TLS offload on, as the card's profile says", SWITCH)
    _switching(parser)
    parser.add_argument("--profile", metavar="P", help="profile: an id, or a file that ends in .yaml")
    parser.add_argument("--dry-run", action="store_true", help=DRY_RUN)


def add_disable(verbs: Any) -> None:
    """The command line of `disable`."""
    parser = _verb(verbs, "disable", "switch TLS offload off", SWITCH)
    _switching(parser)
    parser.add_argument("--dry-run", action="store_true", help=DRY_RUN)


def add_restore(verbs: Any) -> None:
    """The command line of `restore`."""
    parser = _verb(verbs, "restore", "put back what was set before enable and disable", RESTORE)
    which = parser.add_mutually_exclusive_group()
    devices = "interface (default: all devices in the journal)"
    which.add_argument("dev", nargs="?", metavar="DEV", help=devices)
    which.add_argument("--all", action="store_true", help="every device in the journal")
    parser.add_argument("--dry-run", action="store_true", help=DRY_RUN)


def _verb(verbs: Any, name: str, line: str, text: str) -> argparse.ArgumentParser:
    """One of the four, with its line and its text."""
    parser: argparse.ArgumentParser = verbs.add_parser(
        name,
        help=line,
        description=f"{line[0].upper()}{line[1:]}.\n\n{text}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")
    return parser


def _switching(parser: argparse.ArgumentParser) -> None:
    """Add the options that `enable` and `disable` share."""
    parser.add_argument("dev", nargs="+", metavar="DEV", help="interface")
    parser.add_argument("--tx", action="store_true", help="transmit (tls-hw-tx-offload)")
    parser.add_argument("--rx", action="store_true", help="receive (tls-hw-rx-offload)")
    parser.add_argument("--persist", nargs="?", const="auto", choices=KEEPERS, metavar="HOW", help=PERSIST)


def main(args: argparse.Namespace) -> int:
    """Do the one that was typed."""
    return {"status": _status, "restore": _restore}.get(args.verb, _switch)(args)


def _switch(args: argparse.Namespace) -> int:
    """Enable or disable."""
    from offload.host.local import LocalHost
    from offload.switch.enable import Wish
    from offload.switch.journal import Journal
    from offload.switch.persist import each

    directions = tuple(d for d in ("tx", "rx") if getattr(args, d))
    devs, profile = dict.fromkeys(args.dev), getattr(args, "profile", None)
    wishes = [Wish(dev, args.verb == "enable", directions, profile, args.dry_run) for dev in devs]
    return _tell(args, list(devs), lambda say: each(LocalHost(), wishes, args.persist, Journal(), say))


def _restore(args: argparse.Namespace) -> int:
    """Put back."""
    from offload.host.local import LocalHost
    from offload.switch.journal import Journal
    from offload.switch.restore import restore

    devs = [args.dev] if args.dev else []
    return _tell(args, devs, lambda say: restore(LocalHost(), args.dev, Journal(), say, args.dry_run))


def _tell(args: argparse.Namespace, devs: list[str], act: Callable[[Callable[[str], None]], object]) -> int:
    """Act and say so, line by line or as one document; an error is in the document too, and then raised."""
    if not args.json:
        act(print)
        return 0
    from offload.switch.document import document

    said: list[str] = []
    error: OffloadError | None = None
    try:
        act(said.append)
    except OffloadError as exc:
        error = exc
    sys.stdout.write(document(args.verb, args.dry_run, devs, said, error) + "\n")
    if error:
        raise error
    return 0


def _status(args: argparse.Namespace) -> int:
    """Look."""
    from dataclasses import asdict

    from offload.host.local import LocalHost
    from offload.host.terminal import shown
    from offload.switch.journal import Journal
    from offload.switch.status import as_json, as_text, gather

    try:
        changed = [asdict(e) for e in Journal().entries()]
    except OffloadError:
        changed = []  # not root, or damaged: restore will say so
    found = gather(LocalHost(), args.dev, changed)
    sys.stdout.write(f"{as_json(found)}\n" if args.json else shown(f"{as_text(found)}\n", sys.stdout))
    return 0
