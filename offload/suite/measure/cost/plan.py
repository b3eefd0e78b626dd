"""What a cost run measures: rows of an arm and a direction, and the pace at which payload moves."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from offload.errors import ConfigError

ARMS = ("plain", "user", "sw", "hw", "hw-zc")
DIRECTIONS = ("tx", "rx", "both")
LOADS = ("stream", "file")
CHANNELS = (1, 2, 4, 8)  # as costload takes them (CHANNELS of native/costload/costload.h)
CHUNK = 16384  # bytes per write and read (CHUNK of native/costload/costload.h)


@dataclass(frozen=True)
class Row:
    """An arm in a direction, as the DUT sees it: `both` is as many connections each way, at once.

    `channels`: connections of a direction, which share its bytes. `file`: the DUT sends from a file.
    """

    arm: str
    direction: str
    channels: int = 1
    file: bool = False

    @classmethod
    def named(cls, name: str) -> Row:
        """The row of a name, as costload says it; ValueError if it is none."""
        arm, direction, *more = name.split("/")
        file = more[-1:] == ["file"]
        (count,) = more[: len(more) - file] or ["1"]
        return cls(arm, direction, int(count), file)

    @property
    def name(self) -> str:
        """As costload takes it."""
        many = f"/{self.channels}" if self.channels > 1 else ""
        return f"{self.arm}/{self.direction}{many}{'/file' if self.file else ''}"

    @property
    def offloaded(self) -> bool:
        """Whether the DUT's card does the TLS."""
        return self.arm in ("hw", "hw-zc")

    @property
    def streams(self) -> int:
        """Connections at once."""
        return self.channels * (2 if self.direction == "both" else 1)

    def moves(self, direction: str) -> bool:
        """Whether the DUT moves payload in this direction, `tx` or `rx`."""
        return self.direction in (direction, "both")


@dataclass(frozen=True)
class Plan:
    """Rows, and what they have in common.

    bytes, warm: payload per direction, measured and before that; channels share it.

    mbits: the wire's rate in Mbit/s, so low that the processor is idle most of the time. Near saturation the
    order of events, and with it the cost, depends on single instructions (40 Mbit/s: boots up to 4 % apart).

    usecs: how long the cards hold back an interrupt. A frame comes every 1.2 ms, so a poll finds 13 or 14
    frames, which is one record, in each arm.

    knobs: faults of a bad card, as in "0/tx_soft=1".

    kind: whose cards: nicsim, or mlx5 (the real driver on those of cx6sim).
    """

    rows: tuple[Row, ...]
    personality: str = "connectx-6-dx"
    bytes: int = 64 * CHUNK
    warm: int = 32 * CHUNK
    mbits: int = 10
    usecs: int = 16000
    knobs: str = ""
    kind: str = "nicsim"

    @property
    def pair(self) -> str:
        """The module's parameter: the peer never offloads, and offers everything."""
        return f"{self.personality},connectx-6-dx"


def wanted(word: str, known: Sequence[str], what: str) -> str:
    """The word, if it is one; ConfigError with those there are."""
    if word not in known:
        raise ConfigError(f"no {what} {word!r} in cost mode", f"choose one of {', '.join(known)}")
    return word


def choose(
    arms: Iterable[str] = ARMS,
    directions: Iterable[str] = DIRECTIONS,
    offers: Iterable[str] = ("tx", "rx"),
    channels: Iterable[int] = (1,),
    loads: Iterable[str] = ("stream",),
) -> tuple[tuple[Row, ...], list[dict[str, str]]]:
    """The rows, and those that make no sense: {"arm", "workload", "reason"}.

    `offers`: the directions that the card offloads. ConfigError for what there is not.
    """
    rows: list[Row] = []
    skipped: dict[tuple[str, str, str], None] = {}
    asked = [wanted(d, DIRECTIONS, "direction") for d in dict.fromkeys(directions)]
    counts = [int(wanted(str(n), [*map(str, CHANNELS)], "number of channels")) for n in channels]
    files = [wanted(load, LOADS, "load") == "file" for load in dict.fromkeys(loads)]
    each = [(d, n, file) for file in files for d in asked for n in dict.fromkeys(counts)]
    for arm in dict.fromkeys(wanted(a, ARMS, "arm") for a in arms):
        for row in (Row(arm, *more) for more in each):
            if why := senseless(row, set(offers)):
                skipped[arm, workload(row), why] = None
            else:
                rows.append(row)
    return tuple(rows), [{"arm": arm, "workload": load, "reason": why} for arm, load, why in skipped]


def workload(row: Row) -> str:
    """As the measuring document names it."""
    return LOADS[row.file]


def senseless(row: Row, offers: set[str]) -> str:
    """Why a row makes no sense with a card that offloads these directions, or ''."""
    lacking = [d for d in ("tx", "rx") if row.moves(d) and d not in offers]
    if row.file and row.moves("rx"):
        return f"{row.direction}: a file workload transmits only"
    if row.offloaded and lacking:
        return f"{row.direction}: the card offers no {' and no '.join(lacking)} offload"
    if row.arm == "hw-zc" and row.direction == "rx":
        return "rx: zero-copy sendfile affects transmit only"
    return ""
