"""Connections for the length of a block, and payload on many at the same time: which are wrong, and how."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from tests.lib.life.life import Life, Pair, arrived

GROUP = 8  # connections that are taken from together
ENOUGH = 4  # wrong ones: each may cost half a minute of waiting for bytes that do not come


@contextmanager
def opened(life: Life, count: int = 1, hosts: Sequence[str] = ("",)) -> Iterator[list[Pair]]:
    """Open this many connections to each of these addresses of the peer; reset after the block."""
    pairs: list[Pair] = []
    try:
        for host in hosts:
            pairs += life.open(count, host=host)
        yield pairs
    finally:
        life.close(pairs, reset=True)


def at_once(pairs: Sequence[Pair], name: str, size: int) -> dict[int, str]:
    """Move this many bytes over each connection, both ways: what was wrong, by number, of the first that are.

    `size` must fit into a socket's send buffer: each end sends on all its connections before any is taken.
    """
    for direction in ("out", "back"):
        ends = [(pair.near, pair.far) if direction == "out" else (pair.far, pair.near) for pair in pairs]
        sent = [
            one.begin("send", seed=f"{name} {direction} {n}", size=size) for n, (one, _) in enumerate(ends)
        ]
        wrong: dict[int, str] = {}
        for first in range(0, len(ends), GROUP):
            group = range(first, min(first + GROUP, len(ends)))
            took = {number: ends[number][1].begin("take", size=size) for number in group}
            for number in group:
                said = ends[number][0].connections.answer(sent[number], 120).get("error", "")
                try:
                    arrived(
                        ends[number][1].connections.answer(took[number], 300),
                        f"{name} {direction} {number}",
                        size,
                    )
                except AssertionError as exc:
                    wrong[number] = f"{exc} {said}".strip()
            if len(wrong) >= ENOUGH:
                break
        if wrong:
            return wrong
    return {}
