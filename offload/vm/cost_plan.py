"""What a cost run measures: rows of an arm and a direction, and the pace at which payload moves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from offload.errors import ConfigError

ARMS = ("plain", "user", "sw", "hw", "hw-zc")
DIRECTIONS = ("tx", "rx", "both")
CHUNK = 16384  # bytes per write and read (CHUNK of native/costload/costload.h)


@dataclass(frozen=True)
class Row:
    """An arm in a direction, as the DUT sees it: `both` is one connection each way, at once."""

    arm: str
    direction: str

    @property
    def name(self) -> str:
        """As costload takes it."""
        return f"{self.arm}/{self.direction}"

    @property
    def offloaded(self) -> bool:
        """Whether the DUT's card does the TLS."""
        return self.arm in ("hw", "hw-zc")

    @property
    def streams(self) -> int:
        """Connections at once."""
        return 2 if self.direction == "both" else 1

    def moves(self, direction: str) -> bool:
        """Whether the DUT moves payload in this direction, `tx` or `rx`."""
        return self.direction in (direction, "both")


@dataclass(frozen=True)
class Plan:
    """Rows, and what they have in common.

    bytes, warm: payload per connection, measured and before that. mbits: the wire's rate in Mbit/s, so low
    that the processor is idle most of the time: near saturation the order of events, and with it the cost,
    hangs on single instructions (40 Mbit/s: boots up to 4 % apart). usecs: how long the cards hold back an
    interrupt; a frame comes every 1.2 ms, so a poll finds 13 or 14, about one record, in each arm.
    knobs: faults of a bad card, as in "0/tx_soft=1".
    """

    rows: tuple[Row, ...]
    personality: str = "connectx-6-dx"
    bytes: int = 64 * CHUNK
    warm: int = 32 * CHUNK
    mbits: int = 10
    usecs: int = 16000
    knobs: str = ""

    @property
    def pair(self) -> str:
        """The module's parameter: the peer never offloads, and offers everything."""
        return f"{self.personality},connectx-6-dx"


def wanted(word: str, known: Sequence[str], what: str) -> str:
    """The word, if it is one; ConfigError with those there are."""
    if word not in known:
        raise ConfigError(f"no {what} {word!r} in cost mode", f"there are {', '.join(known)}")
    return word


def choose(
    arms: Iterable[str] = ARMS, directions: Iterable[str] = DIRECTIONS, offers: Iterable[str] = ("tx", "rx")
) -> tuple[tuple[Row, ...], list[dict[str, str]]]:
    """The rows, and those that make no sense: {"arm", "workload", "reason"}.

    `offers`: the directions that the card offloads. ConfigError for an arm or direction that there is not.
    """
    can, rows = set(offers), []
    skipped: dict[tuple[str, str], None] = {}
    asked = [wanted(d, DIRECTIONS, "direction") for d in directions]
    for arm in dict.fromkeys(wanted(a, ARMS, "arm") for a in arms):
        for row in (Row(arm, d) for d in dict.fromkeys(asked)):
            lacking = [d for d in ("tx", "rx") if row.moves(d) and d not in can]
            if row.offloaded and lacking:
                skipped[arm, f"{row.direction}: the card offers no {' and no '.join(lacking)} offload"] = None
            elif row.name == "hw-zc/rx":
                skipped[arm, "rx: zero-copy sendfile is a way to send"] = None
            else:
                rows.append(row)
    return tuple(rows), [{"arm": arm, "workload": "stream", "reason": why} for arm, why in skipped]
