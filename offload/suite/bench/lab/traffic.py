"""`ktls-offload lab traffic`: connections under kernel TLS in a lab that is up, until somebody ends them."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from offload.errors import ConfigError, OffloadError, RigError
from offload.host.base import Host, Side
from offload.suite.bench.vm.lab import Lab
from offload.suite.traffic import certs, handoff, stunnel
from offload.suite.traffic.certs import Placed
from offload.suite.traffic.drive import Pump, Transfer, drain, flood, running

WORDS = {"tx": "transmit", "rx": "receive"}
PORT = 4430  # of the peer's stunnel, as the DUT sees it
OPENING = 120.0  # seconds for a handshake: an emulated guest with many connections
LASTING = 7 * 86400.0  # seconds that a connection may wait: a cable may be out for a while
WRITE, UNSENT = 16384, 128 << 10  # bytes of a write; bytes that wait in a socket, so that all have a turn
EVERY = 5.0  # seconds between two lines
BEHIND = ("nice", "-n", "19")  # the lab has one slow core, and `ls --watch` there needs its share


@dataclass(frozen=True)
class Wish:
    """What to make: connections for each direction, and for how long (0: until somebody ends it)."""

    direction: str
    streams: int
    seconds: float

    def checked(self) -> Wish:
        """Return self. ConfigError if it makes no sense."""
        if not 1 <= self.streams <= 1000:
            raise ConfigError(f"--streams {self.streams}: connections for each direction, 1 to 1000")
        if not 0 <= self.seconds <= LASTING:
            raise ConfigError(f"--seconds {self.seconds:g}: how long; 0 goes on until you end it")
        return self

    def sides(self) -> tuple[str, ...]:
        """The directions as the DUT sees them."""
        return ("tx", "rx") if self.direction == "both" else (self.direction,)


@dataclass(frozen=True)
class Pair:
    """Both ends of a connection; `side`: which way its payload goes, as the DUT sees it."""

    near: Transfer
    far: Transfer
    side: str


class Flow:
    """The connections: made with `open`, looked at with `moved`; `undo` ends what was started."""

    def __init__(self, lab: Lab, undo: ExitStack) -> None:
        dut, peer = lab.bench.dut, lab.bench.peer
        keys = certs.make([dut.v4, peer.v4])
        self.peer, self.pairs = peer, list[Pair]()
        self.near, self.ca = self._end(dut, keys, undo)
        self.far, at = self._end(peer, keys, undo)
        self.listener, inner = self.far.listen()
        service = stunnel.Service("traffic", f"{peer.v4}:{PORT}", f"127.0.0.1:{inner}")
        undo.enter_context(stunnel.running(peer.host, [service], at))

    def _end(self, side: Side, keys: certs.Certs, undo: ExitStack) -> tuple[Pump, Placed]:
        """A pump and certificates on a side."""
        folder = f"/run/ktls-offload-{uuid.uuid4().hex[:8]}"
        undo.callback(side.host.run, ["rm", "-rf", folder], check=False)
        at = undo.enter_context(certs.placed(keys, side.host, folder))
        return undo.enter_context(running(side.host, folder, before=BEHIND)), at

    def open(self, side: str) -> str:
        """Make a connection and load it: what the kernel says of its direction (hw, sw)."""
        send, take = flood(side, WRITE, unsent=UNSENT), drain(side)
        ours, theirs = (send, take) if side == "tx" else (take, send)
        want = "tx" if side == "tx" else "both"
        argv = handoff.connect(
            self.peer.v4, PORT, self.ca.ca, cipher="aes-gcm-128", want=want, timeout=OPENING
        )
        far = self.far.accept(self.listener, theirs, timeout=LASTING)
        pair = Pair(self.near.handoff(argv, ours, timeout=LASTING), far, side)
        line = pair.near.opened(OPENING)
        pair.far.opened(OPENING)
        self.pairs.append(pair)
        return "none" if line is None else line.tx if side == "tx" else line.rx

    def moved(self) -> dict[str, tuple[float, int]]:
        """For each direction when it was counted, and the bytes that have arrived."""
        takers = {
            "tx": (self.far, [p.far for p in self.pairs if p.side == "tx"]),
            "rx": (self.near, [p.near for p in self.pairs if p.side == "rx"]),
        }
        counts = {side: pump.count(them) for side, (pump, them) in takers.items() if them}
        return {side: (count.at, count.taken) for side, count in counts.items()}

    def lost(self) -> list[str]:
        """Why connections have ended since the last call; they are no longer counted."""
        over = [pair for pair in self.pairs if pair.near.over() or pair.far.over()]
        self.pairs = [pair for pair in self.pairs if pair not in over]
        for pair in over:
            pair.near.give_up()
            pair.far.give_up()
        return [f"a connection has ended ({WORDS[pair.side]}): {_why(pair)}" for pair in over]


def _why(pair: Pair) -> str:
    """Return what the end of a connection that ended first says."""
    ended = pair.near if pair.near.over() else pair.far
    return ended.report().error or "the other end closed it"


def make(lab: Lab, wish: Wish, say: Callable[[str], None]) -> None:
    """Make traffic and say how much, until its time is over or Ctrl-C. RigError if the lab cannot."""
    needed(lab.bench.dut.host, lab.bench.peer.host)
    with suppress(KeyboardInterrupt), ExitStack() as undo:
        say(f"lab {lab.name}: connecting ...")
        flow = Flow(lab, undo)
        for side in wish.sides():
            kinds = Counter(flow.open(side) for _ in range(wish.streams))
            summary = ", ".join(f"{count} {kind}" for kind, count in kinds.items())
            say(f"{WORDS[side]}, as the DUT sees it: {summary}")
        say(f"see it: ktls-offload lab shell -n {lab.name} --in dut, and there ktls-offload ls --watch")
        say("Ctrl-C ends it" if not wish.seconds else f"it ends after {wish.seconds:g} s")
        follow(flow, wish.seconds, say)


def needed(dut: Host, peer: Host) -> None:
    """RigError if a program is missing."""
    if dut.run(["test", "-x", handoff.PROGRAM], check=False).rc:
        raise RigError("build/ktls-handoff is not built", "make build")
    if peer.run(["which", stunnel.PROGRAM], check=False).rc:
        raise RigError("stunnel4 is not installed", "apt install stunnel4")


def follow(flow: Flow, seconds: float, say: Callable[[str], None]) -> None:
    """Say how much arrives until the time is over. OffloadError when no connection is left."""
    end, before = time.monotonic() + seconds, flow.moved()
    while not seconds or time.monotonic() < end:
        time.sleep(min(EVERY, max(0.05, end - time.monotonic())) if seconds else EVERY)
        now = flow.moved()
        say(",  ".join(_rate(side, before[side], now[side]) for side in now))
        for line in flow.lost():
            say(line)
        if not flow.pairs:
            raise OffloadError("no connection is left", "ktls-offload lab traffic makes new ones")
        before = flow.moved()


def _rate(side: str, before: tuple[float, int], now: tuple[float, int]) -> str:
    """How much arrived in a second, one way."""
    per_second = max(0, now[1] - before[1]) / max(now[0] - before[0], 1e-3)
    return f"{WORDS[side]} {per_second / (1 << 20):.2f} MiB/s"
