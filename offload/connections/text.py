"""Connections as a table for people: as wide as the terminal, nothing that moves its cursor."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from offload.card.profile import DIRECTIONS, WORDS
from offload.connections.look import Line, Listing, notes
from offload.connections.sockets import Socket, Space
from offload.host.terminal import columns

HEADS = ("PROCESS", "LOCAL", "PEER", "TLS", "CIPHER", "TX", "RX", "DEVICE", "SENT", "RECEIVED", "AGE")
RIGHT = {"SENT", "RECEIVED", "AGE", "HELD", "SOFTWARE"}  # and every rate
SPARE = (
    "AGE",
    "CIPHER",
    "RECEIVED",
    "RECEIVED/s",
    "LOCAL",
    "TLS",
    "SENT",
    "SENT/s",
)  # left out in this order on a narrow terminal
UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def width(out: Any) -> int:
    """Columns of the terminal that `out` is; 0 if it is none, and then nothing is cut."""
    return columns() if out.isatty() else 0


def size(count: float | None) -> str:
    """Bytes in at most nine characters: 1.5 MiB; - if unknown."""
    if count is None:
        return "-"
    unit = 0
    while count >= 1023.5 and unit < len(UNITS) - 1:
        count, unit = count / 1024, unit + 1
    return f"{count:.0f} {UNITS[unit]}" if unit == 0 or count >= 99.5 else f"{count:.1f} {UNITS[unit]}"


def age(seconds: float | None) -> str:
    """Seconds in at most four characters, rounded up: 12s, 3m, 5h, 40d."""
    if seconds is None:
        return "-"
    for length, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= length:
            return f"{int(seconds // length) + 1}{unit}"
    return f"{int(seconds) + 1}s"


def place(address: str, port: int) -> str:
    """Address and port as in a URL."""
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def process(one: Socket) -> str:
    """Return who has it."""
    if one.owner is None:
        return "(closed)" if one.inode == 0 else "-"
    more = f" +{one.owner.others}" if one.owner.others else ""
    return f"{one.owner.name}[{one.owner.pid}]{more}"


def cells(line: Line) -> dict[str, str]:
    """A connection as text, by column."""
    one = line.socket
    return {
        "PROCESS": process(one),
        "LOCAL": place(one.local, one.local_port),
        "PEER": place(one.peer, one.peer_port),
        "TLS": one.version,
        "CIPHER": one.cipher,
        "TX": line.word("tx"),
        "RX": line.word("rx"),
        "DEVICE": one.device or "(no route)",
        "SENT": size(one.sent),
        "RECEIVED": size(one.received),
        "AGE": f"<{age(one.owner.age)}" if one.owner else "-",
    }


def table(rows: Sequence[dict[str, str]], heads: Sequence[str], columns: int) -> list[str]:
    """Lines of a table under its heads; on a terminal of this many columns some are left out (0: none)."""
    heads = list(heads)
    texts = {head: [head, *map(itemgetter(head), rows)] for head in heads}
    wide = {head: max(map(len, column)) for head, column in texts.items()}
    for spare in SPARE:
        if columns and sum(wide[head] + 2 for head in heads) - 2 > columns and spare in heads:
            heads.remove(spare)
    filled = [_column(texts[head], wide[head], head) for head in heads]
    shown = ["  ".join(cells).rstrip() for cells in zip(*filled)]
    return [text[:columns] if columns else text for text in shown]


def _column(texts: list[str], wide: int, head: str) -> list[str]:
    """The texts of a column, each as wide as it."""
    if head in RIGHT or head.endswith("/s"):
        return [text.rjust(wide) for text in texts]
    return [text.ljust(wide) for text in texts]


def as_text(listing: Listing, columns: int = 0) -> str:
    """The answer for people."""
    blocks = []
    filled = [space for space in listing.found.spaces if space.sockets]
    for space in filled:
        title = [f"namespace {space.title()}:"] if len(filled) > 1 or not space.here else []
        rows = [cells(line) for line in ordered(listing, space)]
        blocks.append([*title, *table(rows, HEADS, columns)])
    said = [summary(listing), *([f"note: {note}"] for note in notes(listing))]
    blocks += [[part for line in lines for part in wrapped(line, columns)] for lines in said]
    return "\n\n".join("\n".join(lines) for lines in blocks if lines)


def wrapped(line: str, columns: int) -> list[str]:
    """A sentence on as many lines as it takes; 0: on one."""
    if len(line) <= columns or not columns:
        return [line]
    import textwrap

    return textwrap.wrap(line, columns, subsequent_indent="  ")


def ordered(listing: Listing, space: Space) -> list[Line]:
    """The connections of a namespace, by device and process."""
    mine = [line for line in listing.lines if line.space is space]
    return sorted(mine, key=lambda line: (line.socket.device, process(line.socket), line.socket.peer_port))


def summary(listing: Listing) -> list[str]:
    """How many there are of each kind, and each reason for a doubt once."""
    if not listing.lines:
        loaded = any(space.tls_stat is not None for space in listing.found.spaces)
        why = "" if loaded else f": kernel TLS is {listing.without or 'not loaded (modprobe tls)'}"
        return [f"no kernel-TLS connection{why}"]
    many = len(listing.lines)
    counts = [f"{WORDS[d]} {_counted(listing.count(d))}" for d in DIRECTIONS]
    lines = [f"{many} connection{'s' if many > 1 else ''} under kernel TLS: {'; '.join(counts)}"]
    reasons = Counter((line.doubts[d], d) for line in listing.lines for d in DIRECTIONS if line.doubts[d][0])
    for ((word, why), direction), times in sorted(reasons.items()):
        label = "hw stale" if word == "stale" else "hw ?"
        lines.append(f"{label}: {WORDS[direction]} of {times}: {why}")
    return lines


def _counted(words: Counter[str]) -> str:
    return ", ".join(f"{words[word]} {word}" for word in sorted(words))
