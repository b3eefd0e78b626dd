"""Payload on many connections at the same time, both ways: which of them are wrong, and how."""

from __future__ import annotations

from collections.abc import Sequence

from tests.lib.life import Pair, arrived


def at_once(pairs: Sequence[Pair], name: str, size: int) -> dict[int, str]:
    """Move so many bytes over each connection, both ways: what was wrong, by number, of those that are.

    `size` has to fit into a socket's send buffer: each end sends on all its connections before it takes.
    """
    wrong: dict[int, str] = {}
    for way in ("out", "back"):
        ends = [(pair.near, pair.far) if way == "out" else (pair.far, pair.near) for pair in pairs]
        sent = [one.begin("send", seed=f"{name} {way} {n}", size=size) for n, (one, _) in enumerate(ends)]
        took = [other.begin("take", size=size) for _, other in ends]
        for number, (one, other) in enumerate(ends):
            said = one.crowd.answer(sent[number]).get("error", "")
            seen = other.crowd.answer(took[number])
            try:
                arrived(seen, f"{name} {way} {number}", size)
            except AssertionError as exc:
                wrong.setdefault(number, f"{exc} {said}".strip())
    return wrong
