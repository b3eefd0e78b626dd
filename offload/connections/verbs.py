"""`ktls-offload ls`: every kernel-TLS connection, who has it, and whether a card works for it now."""

from __future__ import annotations

import argparse
import gc
import json
import sys
from typing import Any

from offload.card.profile import DIRECTIONS
from offload.connections.look import Inspector, Line, Listing, notes
from offload.connections.stale import Card
from offload.connections.text import as_text, width
from offload.host.local import LocalHost

SCHEMA = 1
HELP = """\
Prints one line per kernel TLS connection. TX and RX show what makes the records: hw, a card; sw,
the kernel; none, the program itself. `hw stale`: a card had the connection but lost it, as its
route or the card's counters show. `hw ?`: the card holds fewer connections than the kernel
reports; which ones are missing cannot be determined. AGE is an upper bound: the age of the owning
process. Bytes are those of the TCP stream, including records and handshake.

It reads every network namespace that it may enter; root may enter all. The exit code is 0 even
without connections. docs/use/ls.md explains the columns, the JSON and the limits.
"""


def add_parser(verbs: Any) -> None:
    """The command line of `ls`."""
    layout = argparse.RawDescriptionHelpFormatter
    text = "list kernel TLS connections, and whether a card handles them"
    about = f"{text[0].upper()}{text[1:]}.\n\n{HELP}"
    parser = verbs.add_parser("ls", help=text, description=about, formatter_class=layout)
    parser.add_argument("--here", action="store_true", help="this network namespace only")
    parser.add_argument(
        "--json", action="store_true", help="print JSON, for programs; with --watch one line per update"
    )
    parser.add_argument(
        "--watch", action="store_true", help="update continuously, with rates; press q to end"
    )
    parser.add_argument(
        "--interval", type=float, default=2.0, metavar="S", help="seconds between updates: 0.2 to 3600"
    )
    parser.add_argument("--count", type=int, default=0, metavar="N", help="with --watch: end after N updates")


def main(args: argparse.Namespace, out: Any = None) -> int:
    """Show once, or watch."""
    out = out or sys.stdout
    inspector = Inspector(LocalHost(), everywhere=not args.here)
    if args.watch:
        from offload.connections.watch import Pace, watch

        said = as_json if args.json else None
        return watch(inspector, out, Pace(args.interval, args.count), said)
    gc.disable()  # nothing to collect before the end: the search takes as long as the work
    try:
        listing = inspector.look()
        print(as_json(listing) if args.json else as_text(listing, width(out)), file=out)
    finally:
        gc.enable()
    return 0


def as_json(listing: Listing, **more: Any) -> str:
    """The answer for programs, on one line; keys are only ever added to schema 1."""
    spaces = [
        {"number": s.inode, "names": list(s.names), "here": s.here, "error": s.error, "tls_stat": s.tls_stat}
        for s in listing.found.spaces
    ]
    cards = [_json_card(card) for card in listing.cards.values()]
    rows = [_json_line(line) for line in listing.lines]
    document = {
        "schema": SCHEMA,
        **more,
        "namespaces": spaces,
        "devices": cards,
        "connections": rows,
        "notes": notes(listing),
    }
    return json.dumps(document)


def _json_card(card: Card) -> dict[str, Any]:
    """A device as plain values; `on_card`: at most this many connections, null where it does not count."""
    return {
        "namespace": card.space,
        "dev": card.nic.dev,
        "driver": card.nic.driver,
        "profile": card.found.profile.id if card.found.profile else None,
        "simulated": card.found.simulated,
        "hw": dict(card.hw),
        "on_card": {d: card.most(d) for d in DIRECTIONS},
    }


def _json_line(line: Line) -> dict[str, Any]:
    """A connection as plain values."""
    one, owner = line.socket, line.socket.owner
    return {
        "namespace": line.space.inode,
        "local": {"address": one.local, "port": one.local_port},
        "peer": {"address": one.peer, "port": one.peer_port},
        "state": one.state,
        "process": {"pid": owner.pid, "name": owner.name, "others": owner.others} if owner else None,
        "uid": one.uid,
        "cookie": one.cookie,
        "version": one.version,
        "cipher": one.cipher,
        **{
            d: {"conf": one.conf(d), "doubt": line.doubts[d][0], "why": line.doubts[d][1]} for d in DIRECTIONS
        },
        "zerocopy": one.zerocopy,
        "device": one.device,
        "sent": one.sent,
        "sent_again": one.sent_again,
        "received": one.received,
        "age_at_most": round(owner.age, 1) if owner else None,
    }
