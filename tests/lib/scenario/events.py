"""What happens to the DUT's port while bytes move: each event comes between two bytes of a payload."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass

from offload.cmd import wait_until
from offload.host.base import Side
from offload.host.tools import tool
from offload.suite.traffic.learned import forgotten
from tests.lib.impair import shapes_path as path
from tests.lib.impair.link import bounce
from tests.lib.labs.turns import TURNS
from tests.lib.life.life import Life
from tests.lib.rig.rig import Rig
from tests.lib.rig.switch import Switch
from tests.lib.scenario.connections import FULL, Burst, Line, arrived, close, move, opened
from tests.lib.scenario.layout import KIB

LONG = 384 * KIB  # with a third of it taken, the rest is more than both ends' buffers hold
THIRD = LONG // 3
SILENCE = {"idle": 10, "idle-minute": 60}  # seconds without data
QUIET = 4096  # bytes of other protocols that may move then
LARGER = 40  # bytes that the MTU wins for a moment
METRIC = "7"  # of a route that nobody else makes: whatever is there stays as it is
SOFTWARE = {"link-down": ("tx", "rx"), "toggle": ("rx",)}  # whose open connections are software's after it


@dataclass
class Stage:
    """What an event may touch, and the connections that it makes."""

    rig: Rig
    life: Life
    offload: Switch
    card: tuple[str, ...]
    undo: ExitStack
    line: Line
    made: list[Line]
    lines: Sequence[Line] = ()  # all that the scenario has

    @property
    def ports(self) -> set[int]:
        """The DUT's ports that are not to be had."""
        return {line.port for line in (self.line, *self.lines, *self.made)}


def toggle(stage: Stage) -> None:
    """Switch the offload off, and on again; without a card there is nothing to switch."""
    if stage.card:
        with ExitStack() as undo:
            undo.callback(stage.offload.set, **dict.fromkeys(stage.card, True))
            stage.offload.set(**dict.fromkeys(stage.card, False))


def mtu(stage: Stage) -> None:
    """Give the port a larger MTU for a moment, or a smaller one where it cannot have, or may not use, more.

    A packet that meets a smaller one teaches the kernel a path MTU, which may keep new connections from the
    card until it is forgotten (offload.suite.traffic.learned). An old connection may have agreed on segments
    larger than the path has now: it would use each byte more, and the wire refuses such frames.
    """
    bench = stage.rig.bench
    port = path.port_of(bench.dut.host, bench.dut.dev)
    larger = port.mtu + LARGER <= port.most and not any(line.old for line in (stage.line, *stage.lines))
    if not larger:
        stage.undo.enter_context(forgotten(bench.dut, bench.peer))
    with path.port_mtu(port, port.mtu + LARGER if larger else port.mtu - LARGER):
        pass


def coalesce(stage: Stage) -> str:
    """Have interrupts come later; as found after the scenario."""
    dut = stage.rig.bench.dut
    found = tool(dut.host, ["ethtool", "-c", dut.dev]).text
    was = {name: value.strip() for name, _, value in (line.partition(":") for line in found.splitlines())}
    if not was.get("rx-usecs", "").isdigit():
        return f"{dut.dev} has no interrupts that could come later"
    stage.undo.callback(dut.host.run, ["ethtool", "-C", dut.dev, "rx-usecs", was["rx-usecs"]])
    later = ["ethtool", "-C", dut.dev, "rx-usecs", str(int(was["rx-usecs"]) + 50)]
    done = tool(dut.host, later)
    return "" if done.rc == 0 else f"{' '.join(later)} ended with {done.rc}"


def rings(stage: Stage) -> str:
    """Give the port rings of half the length, and those that it had."""
    most, now = _figures(stage, "-g")
    other = {name: now[name] // 2 for name in ("RX", "TX") if most.get(name, 0) and now.get(name, 0) > 1}
    return _and_back(stage, "-G", other, now) if other else "the rings of the port have one size"


def channels(stage: Stage) -> str:
    """Give the port another number of queues, and the one that it had."""
    most, now = _figures(stage, "-l")
    found = [name for name in ("Combined", "TX", "RX") if most.get(name, 0) > 1 and name in now][:1]
    other = {name: now[name] + (1 if now[name] < most[name] else -1) for name in found}
    return _and_back(stage, "-L", other, now) if other else "the port has one queue"


def _figures(stage: Stage, look: str) -> tuple[dict[str, int], dict[str, int]]:
    """Return what the port can have at most, and what it has, as `ethtool -g` and `-l` say it."""
    text = tool(stage.rig.bench.dut.host, ["ethtool", look, stage.rig.bench.dut.dev]).text
    parts = text.partition("Current hardware settings:")
    rows = [[line.partition(":") for line in part.splitlines()] for part in (parts[0], parts[2])]
    most, now = ({name.strip(): int(n) for name, _, n in part if n.strip().isdigit()} for part in rows)
    return most, now


def _and_back(stage: Stage, change: str, other: dict[str, int], now: dict[str, int]) -> str:
    """Change figures and change them back, and wait until the port carries: what it refused, if anything."""
    dut = stage.rig.bench.dut
    command = ["ethtool", change, dut.dev]
    was = [*command, *(word for name in other for word in (name.lower(), str(now[name])))]
    wanted = [*command, *(word for name, n in other.items() for word in (name.lower(), str(n)))]
    with ExitStack() as undo:
        undo.callback(dut.host.run, was)
        done = tool(dut.host, wanted)
        if done.rc != 0:
            undo.pop_all()  # nothing has changed
            return f"{' '.join(wanted)} ended with {done.rc}"
    wait_until(lambda: _carrier(stage) == "1\n", 60, "the port to carry frames again")
    return ""


def idle(stage: Stage, seconds: float) -> str:
    """Send nothing for so long; why it was not silent, if so."""
    dut = stage.rig.bench.dut
    before = _moved(dut)
    with TURNS[0].silent():
        time.sleep(seconds)
    moved = _moved(dut) - before
    return f"{moved} bytes moved while nothing was to be sent" if moved > QUIET else ""


def _moved(side: Side) -> int:
    """Bytes that a port has sent and received."""
    files = [f"/sys/class/net/{side.dev}/statistics/{direction}_bytes" for direction in ("tx", "rx")]
    return sum(int(line) for line in side.host.run(["cat", *files]).text.split())


def carrier(stage: Stage) -> None:
    """Pull the cable until the port knows it, and put it back."""
    bench = stage.rig.bench
    assert bench.wire is not None
    end = bench.wire_ports[0]
    with ExitStack() as undo:
        undo.callback(bench.wire.run, ["ip", "link", "set", end, "up"])
        bench.wire.run(["ip", "link", "set", end, "down"])
        wait_until(lambda: _carrier(stage) == "0\n", 60, "the port to see that the cable is out")
    wait_until(lambda: _carrier(stage) == "1\n", 60, "the port to see the cable again")


def _carrier(stage: Stage) -> str:
    """1 or 0, or nothing while the driver has the port closed: the kernel then refuses to say."""
    dut = stage.rig.bench.dut
    return dut.host.run(["cat", f"/sys/class/net/{dut.dev}/carrier"], check=False).text


def link_down(stage: Stage) -> None:
    """Take the port down and up."""
    bounce(stage.rig.bench.dut)


def route(stage: Stage) -> str:
    """Give the peer a route of its own, through the same port: every connection looks its way up again.

    It stays until the scenario ends.
    """
    peer = stage.rig.bench.peer
    said = [_routed(stage, *direction) for direction in ((peer.v4, "/32"), (peer.v6, "/128")) if direction[0]]
    return next(filter(None, said), "")


def _routed(stage: Stage, peer: str, length: str) -> str:
    """Add a route to one address of the peer like the one that it has; why it is not taken, if so."""
    dut = stage.rig.bench.dut
    looked = dut.host.run(["ip", "-j", "route", "get", peer], check=False)
    if looked.rc != 0:
        return ""  # no connection goes there: below an MTU of 1280 a port has no IPv6
    now = json.loads(looked.text)[0]
    via = ["via", now["gateway"]] if "gateway" in now else []
    wanted = ["ip", "route", "add", f"{peer}{length}", *via, "dev", dut.dev, "metric", METRIC]
    with ExitStack() as undo:
        undo.callback(dut.host.run, [*wanted[:2], "del", *wanted[3:]], check=False)
        done = tool(dut.host, wanted)
        kept = undo.pop_all()
        if done.rc != 0:
            return f"{' '.join(wanted)} ended with {done.rc}"  # somebody's own route may be in the way
        stage.undo.callback(kept.close)
    taken = dut.host.run(["ip", "route", "get", "fibmatch", peer]).text
    return (
        "" if f"metric {METRIC} " in f"{taken} " else f"the route to {peer} is another one: {taken.strip()}"
    )


def other(stage: Stage) -> None:
    """Open another connection, use it both ways, close it."""
    life = another_life(stage.rig)
    line = opened(life, 1, stage.line.cell, apart=stage.ports)[0]
    stage.made.append(line)
    with ExitStack() as undo:
        undo.callback(life.close, [line.pair], reset=True)
        move([line], ["tx", "rx"], [Burst("another connection", (FULL, 100, FULL))])
        close(life, [line])
        undo.pop_all()


def another_life(rig: Rig) -> Life:
    """Return who opens connections while the ends of a scenario are busy; made once."""
    kept = vars(rig)
    if "another_life" not in kept:
        kept["another_life"] = Life(rig)
        rig.undo.callback(kept["another_life"].stop)
    life: Life = kept["another_life"]
    return life


# each says what it could not do on this port, if anything
EVENTS: dict[str, Callable[[Stage], str | None]] = {
    "toggle": toggle,
    "mtu": mtu,
    "rings": rings,
    "coalesce": coalesce,
    "channels": channels,
    "carrier": carrier,
    "link-down": link_down,
    "route": route,
    "other": other,
}


def between(stage: Stage, event: str, directions: Sequence[str], seed: int) -> str:
    """Make an event when a part of a long payload has come: why it fell between no bytes, if so.

    With both directions the other end sends, too, what fits into its buffer. Every byte must be right.
    """
    if event in SILENCE:
        return _silence(stage, directions, seed, SILENCE[event])
    line, direction = stage.line, directions[0]
    long = Burst(f"{seed} while {event} {direction}", (FULL,) * (LONG // FULL))
    short = Burst(f"{seed} while {event} back", (4000, 4001, 8000))
    source, sink, content = line.source(direction).connections, line.sink(direction), long.content()
    back = [(w, line.send(w, short)) for w in directions[1:]]
    sent = line.send(direction, long)
    arrived(sink.take(THIRD), content[:THIRD], f"{direction} before {event}")
    missed = EVENTS[event](stage) or ""
    if not missed and source.answered(sent):
        missed = f"the sender was done when {event} was"
    arrived(sink.take(LONG - THIRD), content[THIRD:], f"{direction} after {event}")
    source.end(sent)
    for w, asked in back:
        line.whole(w, short, asked, line.sink(w).begin("take", size=short.total))
    return missed


def _silence(stage: Stage, directions: Sequence[str], seed: int, seconds: float) -> str:
    """Be silent between two bursts, the first of which has come whole."""
    move([stage.line], directions, [Burst(f"{seed} before the silence", (FULL,))])
    missed = idle(stage, seconds)
    move([stage.line], directions, [Burst(f"{seed} after the silence", (FULL, FULL))])
    return missed
