"""Path MTUs that kernels learn while a path is smaller for a while: they are gone when that is over.

TCP packets that do not fit any more teach the kernel a path MTU, which it keeps for ten minutes. While it is
known, some new connections may get no TLS offload, without a word: docs/reference/errata.md,
path-mtu-takes-the-card. Only time takes it back, so a kernel keeps it for a second here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial

from offload.cmd import settles
from offload.host.base import Host, Side

MEMORY = "net.ipv4.route.mtu_expires"  # seconds; per network namespace (net/ipv4/route.c, since Linux 5.18)
LEARNED = re.compile(r"\bexpires -?\d+sec\b.*\bmtu (?:lock )?(\d+)", re.S)
PATIENCE = 10  # seconds for one second to pass


def learned(host: Host, other: str) -> int:
    """The path MTU that a host's kernel has learned towards an IPv4 address; 0: none.

    The question itself takes away one whose time is over (find_exception, net/ipv4/route.c).
    """
    said = LEARNED.search(host.run(["ip", "route", "get", other], check=False).text)
    return int(said[1]) if said else 0


@contextmanager
def forgotten(near: Side, far: Side) -> Iterator[Callable[[], None]]:
    """Let both kernels forget, at the end of the block, what they learned in it of the path between them.

    The block gets a function that waits for the same before its end. A path MTU that was known before stays.
    A kernel whose memory cannot be set is left as it is.
    """
    with ExitStack() as undo:
        ends = ((near.host, far.v4), (far.host, near.v4))
        short = [end for end in ends if undo.enter_context(_soon(*end))]
        yield lambda: _wait(short)


@contextmanager
def _soon(host: Host, other: str) -> Iterator[bool]:
    """One host's part: it keeps for a second what it learns, and the block ends when it is gone.

    The block gets whether that is so.
    """
    found = host.run(["sysctl", "-n", MEMORY], check=False)
    if found.rc != 0 or learned(host, other):
        yield False
        return
    with ExitStack() as undo:
        undo.callback(host.run, ["sysctl", "-qw", f"{MEMORY}={found.text.strip()}"])
        undo.callback(_wait, [(host, other)])
        host.run(["sysctl", "-qw", f"{MEMORY}=1"])
        yield True


def _wait(ends: Sequence[tuple[Host, str]]) -> None:
    """Wait until these hosts know no path MTU towards these addresses; at most ten seconds each."""
    for end in ends:
        settles(partial(_knows_none, *end), PATIENCE)


def _knows_none(host: Host, other: str) -> bool:
    return not learned(host, other)
