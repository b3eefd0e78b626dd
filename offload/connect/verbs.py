"""`ktls-offload connect`: what a toolstack calls instead of stunnel; by the kernel, or else by stunnel."""

from __future__ import annotations

import argparse
import errno
import json
import os
import socket
import sys
from contextlib import ExitStack
from typing import Any

from offload.connect.client import Got, Policy, Target, connect, helper
from offload.connect.stunnel import Failed
from offload.errors import ConfigError, RigError

TEXT = "open a kernel TLS connection (or stunnel) and pass it on"
HELP = """\
Connects, performs the TLS handshake and gives the keys to the kernel (or to the card, if possible).
Then it hands the socket to another program over a Unix socket, as one line of JSON and the
descriptor (SCM_RIGHTS). If a step before that fails, it prints one warning line and uses stunnel
with the same policy instead. Without --to and --fd it only shows the result. docs/use/connect.md lists
the keys of a policy.

Exit codes: 0 handed off, over kernel TLS or stunnel; 2 wrong policy or option; 7 stunnel fails to
connect too, or no program takes the socket.
"""
PATIENCE = 10.0  # seconds
SIDES = (("tx", "send   "), ("rx", "receive"))
WHERE = {"hw": "hardware", "sw": "software", "unknown": "unknown (needs CAP_NET_ADMIN before kernel 7.2)"}


def add_parser(verbs: Any) -> None:
    """The command line of `connect`."""
    layout = argparse.RawDescriptionHelpFormatter
    parser = verbs.add_parser(
        "connect", help=TEXT, description=f"{TEXT[0].upper()}{TEXT[1:]}.\n\n{HELP}", formatter_class=layout
    )
    parser.add_argument("host", nargs="?", metavar="HOST", help="name or address")
    parser.add_argument("port", nargs="?", type=int, metavar="PORT", help="1 to 65535")
    how = parser.add_mutually_exclusive_group()
    how.add_argument("--policy", default="", metavar="FILE", help="policy: part of a stunnel configuration")
    how.add_argument("--ca", default="", metavar="FILE", help="trust these CAs; default policy otherwise")
    how.add_argument("--pin", default="", metavar="FILE", help="trust only this certificate")
    parser.add_argument("--name", default="", help="name that the certificate must contain (default: HOST)")
    to = parser.add_mutually_exclusive_group()
    to.add_argument(
        "--to", metavar="SOCKET", help="hand the socket to the program that listens on this Unix socket"
    )
    to.add_argument("--fd", type=int, metavar="N", help="hand the socket over on this inherited Unix socket")
    parser.add_argument("--via", metavar="SOCKET", help="ask the resident that serves on this socket")
    parser.add_argument(
        "--serve", default="", metavar="SOCKET", help="run as a resident on this socket until SIGTERM"
    )
    parser.add_argument("--clients", type=int, metavar="N", help="with --serve: concurrent hand-offs (64)")
    parser.add_argument(
        "--user", type=int, metavar="UID", help="with --serve: also accept requests from this user"
    )
    parser.add_argument("--timeout", type=float, metavar="S", help="seconds for each step (10)")
    parser.add_argument("--stunnel", default="", metavar="PROGRAM", help="stunnel program for the fallback")
    parser.add_argument("--no-fallback", action="store_true", help="fail instead of using stunnel")
    parser.add_argument("--json", action="store_true", help="print the result as one line of JSON")


def main(args: argparse.Namespace) -> int:
    """Serve, or connect once."""
    if args.timeout is not None and not 0.001 <= args.timeout <= 86400:
        raise ConfigError(f"--timeout {args.timeout:g}", "0.001 to 86400 seconds")
    policy = Policy(args.policy, args.ca, args.pin, args.timeout)
    policy.values()
    if "" in (args.to, args.via):
        raise ConfigError("--to and --via need the path of a socket, not an empty string")
    if args.serve:
        return _serve(args, policy)
    if args.host is None or args.port is None or args.clients or args.user is not None:
        raise ConfigError("give HOST and PORT; --clients and --user need --serve")
    return _once(args, Target(args.host, args.port, args.name), policy)


def _serve(args: argparse.Namespace, policy: Policy) -> int:
    """Become the resident: nothing of Python stays in memory."""
    if args.host is not None or args.to or args.fd is not None or args.via or args.name:
        raise ConfigError("--serve takes a policy, --clients, --user and --timeout, but no target")
    more = {"--clients": args.clients, "--user": args.user}
    words = [word for name, value in more.items() if value is not None for word in (name, str(value))]
    try:
        path = helper()
        os.execv(path, [path, "serve", args.serve, *policy.options(), *words])
    except (Failed, OSError) as exc:
        raise RigError(f"cannot serve: {exc}", "in a checkout: make build") from None


def _once(args: argparse.Namespace, target: Target, policy: Policy) -> int:
    """Connect, and give the socket to whom it is for."""
    with ExitStack() as undo:
        to = _receiver(args, undo)
        got = connect(target, policy, via=args.via or "", stunnel=args.stunnel, fallback=not args.no_fallback)
        if to is None:
            got.close()
        else:
            _give(to, got)
    if args.json:
        sys.stdout.write(json.dumps(got.line) + "\n")
    elif to is None:
        sys.stdout.write(as_text(target, got.line) + "\n")
    return 0


def _receiver(args: argparse.Namespace, undo: ExitStack) -> socket.socket | None:
    """Return who gets the socket, found before anything is connected; None if nobody does."""
    try:
        if args.to:
            return undo.enter_context(_dialled(args.to))
        if args.fd is None:
            return None
        to = undo.enter_context(socket.socket(fileno=args.fd))
        if to.family == socket.AF_UNIX:
            return to
        raise OSError(0, "no unix socket")
    except (OSError, ValueError) as exc:
        where, why = args.to or f"descriptor {args.fd}", getattr(exc, "strerror", "") or exc
        raise ConfigError(f"{where}: {why}: no program accepts a socket there") from None


def _dialled(path: str) -> socket.socket:
    """A connection to a unix socket of either kind."""
    for kind in (socket.SOCK_SEQPACKET, socket.SOCK_STREAM):
        sock = socket.socket(socket.AF_UNIX, kind)
        try:
            sock.connect(path)
        except OSError as exc:
            sock.close()
            if exc.errno != errno.EPROTOTYPE:
                raise
        else:
            return sock
    raise OSError(0, "neither a stream nor a seqpacket socket")


def _give(to: socket.socket, got: Got) -> None:
    """The line and the descriptor. A receiver that does not read within 10 s does not get it."""
    to.settimeout(PATIENCE)
    data = json.dumps(got.line).encode() + b"\n"
    try:
        sent = socket.send_fds(to, [data], [got.sock.fileno()])
        while sent < len(data):
            sent += to.send(data[sent:])
    except OSError as exc:
        got.close()
        raise RigError(f"hand-over: {exc.strerror or 'it does not read'}") from None
    got.sock.close()


def as_text(target: Target, line: dict[str, Any]) -> str:
    """Return what a connection is, for a person."""
    said = [f"{target}: TLS {line['version']}, {line['cipher']}"]
    if line["via"] != "ktls":
        return said[0] + ", by stunnel"
    for side, word in SIDES:
        where = WHERE.get(line[side], "not by the kernel")
        said.append(f"{word}  {where:8}  {line.get(f'{side}_by') or ''}".rstrip())
    return "\n".join(said)
