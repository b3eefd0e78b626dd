"""A link that goes down and comes back, with its addresses and routes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from offload.host.base import Host, Side
from offload.suite.bench.lab.changes.notes import Change
from offload.suite.bench.lab.changes.values import addresses_and_routes, command, look


@contextmanager
def reachable(host: Host, dev: str) -> Iterator[None]:
    """Give a port, at the end of the block, the addresses and routes that it had before."""
    had = addresses_and_routes(host, dev)
    with ExitStack() as undo:
        for one in had:
            undo.callback(_again, host, one)
        yield


def _again(host: Host, one: Change) -> None:
    """Make an address or a route that is there no more."""
    if not look(host, one):
        host.run(command(one, ""))


def bounce(side: Side) -> None:
    """Take the link down and up again; what it was reached by comes back."""
    with reachable(side.host, side.dev), ExitStack() as undo:
        undo.callback(side.host.run, ["ip", "link", "set", side.dev, "up"])
        side.host.run(["ip", "link", "set", side.dev, "down"])
