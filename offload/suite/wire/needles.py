"""Is a piece of payload or reply in these bytes? docs/reference/wire.md, "Searched bytes"."""

from __future__ import annotations

from typing import NamedTuple

from offload.suite.wire.files import Bytes

WINDOW = 16
DIFFERENT = 6


class Found(NamedTuple):
    """A needle in some bytes: where, of what ("payload" or "reply"), and from which offset of that."""

    at: int
    of: str
    offset: int


def needles(source: bytes) -> dict[bytes, int]:
    """Windows of a payload, and where each is first; `telling` says which of them count."""
    step = WINDOW * max(1, -(-len(source) // (1 << 24)))
    last = (len(source) - WINDOW) // step * step
    return {source[at : at + WINDOW]: at for at in range(last, -1, -step)}


def telling(window: bytes) -> bool:
    """Whether a window has enough different bytes not to be there by chance."""
    return len(set(window)) >= DIFFERENT


class Needles:
    """All needles of a question; they are made when they are first looked for."""

    def __init__(self, payload: bytes | None, reply: bytes | None) -> None:
        self.sources = {"payload": payload or b"", "reply": reply or b""}
        self.wanted: dict[bytes, tuple[str, int]] | None = None

    def __bool__(self) -> bool:
        return any(len(source) >= WINDOW for source in self.sources.values())

    def first(self, data: Bytes) -> Found | None:
        """The first needle in these bytes; of two at one place that of the payload."""
        if len(data) < WINDOW or not self:
            return None
        if self.wanted is None:
            made = {of: needles(source) for of, source in self.sources.items()}
            self.wanted = {w: (of, at) for of in ("reply", "payload") for w, at in made[of].items()}
        windows = [data[at : at + WINDOW] for at in range(len(data) - WINDOW + 1)]
        if self.wanted.keys().isdisjoint(windows):
            return None
        hits = (Found(at, *self.wanted[w]) for at, w in enumerate(windows) if w in self.wanted and telling(w))
        return next(hits, None)
