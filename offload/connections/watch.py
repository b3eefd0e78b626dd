"""`ktls-offload ls --watch`: the connections again and again, with what the cards did in between."""

from __future__ import annotations

import os
import select
import shutil
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from offload.card.counters import Delta, Snapshot
from offload.card.profile import DIRECTIONS
from offload.connections.look import Inspector, Listing, devices_with_offload, notes
from offload.connections.sockets import Socket
from offload.connections.stale import Card
from offload.connections.text import HEADS, cells, size, summary, table, width, wrapped
from offload.errors import ConfigError

# (column, its key in JSON, counters of transmit, of receive); a column adds up what there is of them
RATES = (
    ("PKTS/s", "packets_per_s", ("tx_tls_encrypted_packets",), ("rx_tls_decrypted_packets",)),
    ("OOO/s", "ooo_per_s", ("tx_tls_ooo",), ()),
    ("RESYNC/s", "resync_per_s", (), ("rx_tls_resync_req_pkt", "rx_tls_resync_req_start")),
    ("DROP/s", "drop_per_s", ("tx_tls_drop_no_sync_data",), ()),
    ("ERR/s", "err_per_s", (), ("rx_tls_err",)),
)
BYTES = {"tx": "tx_tls_encrypted_bytes", "rx": "rx_tls_decrypted_bytes"}
TELLING = 64 * 1024  # below this the share that software did says nothing: alerts, one record that waited
CLEAR, HOME, REST = "\x1b[2J", "\x1b[H", "\x1b[K"
ENTER, LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"


@dataclass(frozen=True)
class Pace:
    """Seconds between two looks, and how many there are (0: until somebody ends it)."""

    interval: float
    count: int

    def checked(self) -> Pace:
        """Return self. ConfigError if it makes no sense."""
        if not 0.2 <= self.interval <= 3600:
            raise ConfigError(f"--interval {self.interval:g}: seconds, from 0.2 to 3600")
        if self.count < 0:
            raise ConfigError(f"--count {self.count}: number of updates; 0 updates until you end it")
        return self


@dataclass(frozen=True)
class Look:
    """A listing and its connections by cookie; `at`: when the sockets were read."""

    listing: Listing

    @property
    def at(self) -> float:
        """Seconds of the monotonic clock."""
        return self.listing.found.at

    def sockets(self) -> dict[int, Socket]:
        """The connections by cookie."""
        return {line.socket.cookie: line.socket for line in self.listing.lines}

    def times(self) -> dict[int, float]:
        """When the sockets of each namespace were read."""
        return {space.inode: space.at for space in self.listing.found.spaces}

    def counted(self) -> dict[tuple[int, str], Snapshot]:
        """The counters of each device, ports of bonds included."""
        cards = self.listing.cards.values()
        return {(one.space, one.nic.dev): one.after for card in cards for one in (card, *card.ports)}


def watch(inspector: Inspector, out: Any, pace: Pace, said: Callable[..., str] | None = None) -> int:
    """Look until `count` looks are made, somebody presses q or Ctrl-C: 0. `said` makes JSON of a look.

    Moves the cursor only on a terminal that can; elsewhere one block, or one line of JSON, per look.
    """
    pace.checked()
    moving = said is None and out.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    with suppress(KeyboardInterrupt), screen(out, moving):
        _loop(inspector, out, pace, moving, said)
    return 0


def _loop(inspector: Inspector, out: Any, pace: Pace, moving: bool, said: Callable[..., str] | None) -> None:
    """Look, show, wait."""
    before, number = None, 0
    if said is None and out.isatty():
        first = [title(bool(moving)), "", "looking ..."]
        out.write(_drawn(first) if moving else f"{first[0]}   {first[2]}\n")
        out.flush()
    while True:
        due = time.monotonic() + pace.interval
        now = Look(inspector.look())
        number += 1
        if said is not None:
            text = said(now.listing, at=time.time(), rates=rates(before, now)) + "\n"
        elif moving:
            text = _drawn(frame(before, now, *shutil.get_terminal_size()))
        else:
            text = "\n".join(frame(before, now, width(out), 0)) + "\n\n"
        out.write(text)
        out.flush()
        before = now
        if number == pace.count or _asked_to_end(max(0.05, due - time.monotonic()), moving):
            return


def _asked_to_end(seconds: float, moving: bool) -> bool:
    """Wait; say whether somebody pressed q."""
    deadline = time.monotonic() + seconds
    if not (moving and sys.stdin.isatty()):
        time.sleep(seconds)
        return False
    while (left := deadline - time.monotonic()) > 0:
        if select.select([sys.stdin], [], [], left)[0] and os.read(sys.stdin.fileno(), 1) in (
            b"q",
            b"Q",
            b"\x04",
            b"",
        ):
            return True
    return False


@contextmanager
def screen(out: Any, moving: bool) -> Iterator[None]:
    """Take the terminal's other screen, without cursor and echo; restore it at the end."""
    if not moving:
        yield
        return
    keys = termios.tcgetattr(sys.stdin) if sys.stdin.isatty() else None
    try:
        out.write(ENTER)
        if keys is not None:
            tty.setcbreak(sys.stdin)
        yield
    finally:
        with suppress(OSError, termios.error):  # the terminal may be what has gone
            if keys is not None:
                termios.tcsetattr(sys.stdin, termios.TCSADRAIN, keys)
            out.write(LEAVE)
            out.flush()


def _drawn(lines: list[str]) -> str:
    """A whole screen: each line written over what was there; heads reversed unless NO_COLOR is set."""
    plain = bool(os.environ.get("NO_COLOR"))
    shown = [
        line if plain or not line.startswith(("PROCESS", "DEVICE")) else f"\x1b[7m{line}\x1b[0m"
        for line in lines
    ]
    return HOME + "\r\n".join(line + REST for line in shown) + "\x1b[J"


def frame(before: Look | None, now: Look, columns: int, height: int) -> list[str]:
    """The lines of one look; on a screen of `height` lines only as many connections as fit (0: all)."""
    listing = now.listing
    head = [title(height > 0, _span(before, now))]
    said = [*summary(listing), *(f"note: {note}" for note in notes(listing))]
    said = [part for line in said for part in wrapped(line, columns)]
    head = [head[0][: columns or None], "", *cards_table(before, now, columns), *said]
    rows = [cells(line) | moved for line, moved in busiest(before, now)]
    lines = table(rows, heads(before), columns) if rows else []
    if height:
        room = max(2, height - len(head) - 1)  # the heads, and at least one line
        left = len(lines) - room
        lines = [*lines[: room - 1], f"... and {left + 1} more"] if left > 0 else lines
        head = head[: height - min(len(lines), room) - 1]
    return [*head, "", *lines][: height or None] if lines else head


def title(keys: bool, span: str = "") -> str:
    """The first line; `keys`: somebody can press one."""
    return f"ktls-offload ls --watch   {time.strftime('%H:%M:%S')}{span}{'   q ends it' * keys}"


def _span(before: Look | None, now: Look) -> str:
    """Over which time the rates are."""
    return "" if before is None else f"   rates over {now.at - before.at:.1f} s"


def heads(before: Look | None) -> tuple[str, ...]:
    """The columns of the connections: with rates as soon as there are two looks."""
    if before is None:
        return HEADS
    return tuple({"SENT": "SENT/s", "RECEIVED": "RECEIVED/s"}.get(head, head) for head in HEADS)


def busiest(before: Look | None, now: Look) -> list[tuple[Any, dict[str, str]]]:
    """Every connection with what it moved per second, the busiest first."""
    old = before.sockets() if before else {}
    over = _seconds(before, now)
    rows = []
    for line in now.listing.lines:
        last, seconds = old.get(line.socket.cookie), over.get(line.space.inode, 1.0)
        out, back = (_gone(last, line.socket, d, again=False) for d in DIRECTIONS)
        shown = {"SENT/s": _per_second(out, seconds), "RECEIVED/s": _per_second(back, seconds)}
        rows.append(((out or 0) + (back or 0), line, shown if before else {}))
    return [(line, shown) for _, line, shown in sorted(rows, key=lambda row: -row[0])]


def _seconds(before: Look | None, now: Look) -> dict[int, float]:
    """The time between two looks at each namespace: the sockets of one are read after those of another."""
    then = before.times() if before else {}
    return {inode: max(at - then[inode], 1e-3) for inode, at in now.times().items() if inode in then}


def _gone(last: Socket | None, one: Socket, direction: str, *, again: bool) -> int | None:
    """Bytes that a connection moved since the last look; `again`: also what was sent another time."""
    if last is None:
        return None
    pairs = [(last.received, one.received)] if direction == "rx" else [(last.sent, one.sent)]
    pairs += [(last.sent_again, one.sent_again)] if again and direction == "tx" else []
    if any(a is None or b is None for a, b in pairs):
        return None
    return sum(max(0, (b or 0) - (a or 0)) for a, b in pairs)


def _per_second(count: int | None, seconds: float) -> str:
    return "-" if count is None else f"{size(count / seconds)}"


def rates(before: Look | None, now: Look) -> list[dict[str, Any]]:
    """Return what each card did per second since the last look, by direction; empty after the first look."""
    found = []
    for card in devices_with_offload(list(now.listing.cards.values())) if before else ():
        for direction in DIRECTIONS:
            if card.offers(direction):
                found.append(_rate(card, direction, before, now))  # type: ignore[arg-type]
    return found


def _rate(card: Card, direction: str, before: Look, now: Look) -> dict[str, Any]:
    """One card, one direction; None for a counter that it has not or that went backwards or was seen once."""
    last = before.counted().get((card.space, card.nic.dev))
    delta = card.after - last if last else None
    names = {key: tx if direction == "tx" else rx for _, key, tx, rx in RATES}
    return {
        "dev": card.nic.dev,
        "direction": direction,
        "on_card": card.most(direction),
        **{key: _per(delta, wanted) for key, wanted in names.items()},
        "bytes_per_s": _per(delta, (BYTES[direction],)),
        "software_share": _software(card, direction, delta, before, now) if delta else None,
    }


def _per(delta: Delta | None, names: Sequence[str]) -> float | None:
    """Counters added up, per second of the time between their own two readings."""
    found = [delta.get(name) for name in names] if delta else []
    moved = [count for count in found if count is not None]
    return sum(moved) / max(delta.seconds, 1e-3) if delta and moved else None


def _software(card: Card, direction: str, delta: Delta, before: Look, now: Look) -> float | None:
    """The share of the bytes of its hw connections that the card did not do, 0 to 1; None: too few to tell.

    Above the truth by what TCP carried before the keys, below it by packet headers that a driver counts.
    """
    old, done = before.sockets(), delta.get(BYTES[direction])
    mine = [
        line.socket
        for line in now.listing.lines
        if (line.space.inode, line.socket.device) == (card.space, card.nic.dev)
        and line.socket.conf(direction) == "hw"
    ]
    total = sum(_gone(old.get(o.cookie), o, direction, again=True) or 0 for o in mine)
    if done is None or total < TELLING:
        return None
    # sockets and counters are read one after the other: each has its own time
    seconds = _seconds(before, now).get(card.space, 1.0) / max(delta.seconds, 1e-3)
    return min(1.0, max(0.0, 1 - done * seconds / total))


def cards_table(before: Look | None, now: Look, columns: int) -> list[str]:
    """The cards as a table, with an empty line after it; nothing as long as there are no rates."""
    found = rates(before, now)
    columns_of = ("DEVICE", "WAY", "HELD", "BYTES/s", "SOFTWARE", *(head for head, *_ in RATES))
    rows = [
        {
            "DEVICE": row["dev"],
            "WAY": row["direction"],
            "HELD": "-" if row["on_card"] is None else str(row["on_card"]),
            "BYTES/s": size(row["bytes_per_s"]),
            **{head: "-" if row[key] is None else f"{row[key]:.0f}" for head, key, *_ in RATES},
            "SOFTWARE": "-" if (share := row["software_share"]) is None else f"{share:.0%}",
        }
        for row in found
    ]
    return [*table(rows, columns_of, columns), ""] if rows else []
