"""The workload `stream`: long connections between two pumps, the far one behind an unmodified stunnel."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass

from offload.suite.measure.arms import SIDES, Moved, NoFigure
from offload.suite.measure.plan import CIPHER, VERSION, WRITE, Setting
from offload.suite.measure.testbed import Testbed
from offload.suite.measure.window import Window
from offload.suite.traffic import handoff, stunnel
from offload.suite.traffic.drive import Transfer, drain, flood

PATIENCE = 60.0  # seconds for one step: an emulated guest with many connections
UNSENT = 128 << 10  # bytes that a sender has waiting: an emulated bench takes seconds for megabytes
SLOW, LEAST = 60, 32 << 10  # seconds that such a bench is given to move this many bytes
RAMP = 0.4  # seconds before the window: buffers fill, a card finds its records


@dataclass(frozen=True)
class Lane:
    """Where connections of one direction go: the peer's ports (stunnel, plain), listeners; our stunnel's."""

    tls: int
    behind: int
    bare: int
    plain: int
    entry: int


@dataclass(frozen=True)
class Pair:
    """Both ends of a connection, and which way its payload goes as the DUT sees it."""

    near: Transfer
    far: Transfer
    side: str


class Stream:
    """Makes the connections of an arm, loads them, and takes them down."""

    HOW = "write"  # how what is sent is given to the kernel, but for zero-copy

    def __init__(self, testbed: Testbed) -> None:
        self.testbed = testbed
        self._lanes: dict[str, Lane] = {}
        self._entries: set[str] = set()

    def missing(self, arm: str, setting: Setting) -> str:
        """Why an arm cannot run here, or ''."""
        if self.testbed.peer is None:
            return "this needs both ends: name the peer as netns:NAME"
        host = self.testbed.dut.host
        if arm in ("sw", "hw", "hw-zc") and host.run(["test", "-x", handoff.PROGRAM], check=False).rc:
            return "build/ktls-handoff is not built (in a checkout: make build)"
        hosts = [self.testbed.peer.host, *([host] if arm == "user" else [])]
        lacks = arm != "plain" and any(h.run(["which", stunnel.PROGRAM], check=False).rc for h in hosts)
        return "stunnel4 is not installed" if lacks else ""

    def run(self, arm: str, setting: Setting, seconds: float, window: Window) -> Moved:
        """One turn. NoFigure if a connection failed or payload was lost."""
        with ExitStack() as undo:
            sides = SIDES[setting.direction]
            pairs = [self._pair(arm, side, setting) for side in sides for _ in range(setting.streams)]
            for pair in pairs:
                undo.callback(pair.near.give_up)
                undo.callback(pair.far.give_up)
            kinds = tuple(self._kind(pair) for pair in pairs)
            for pair in pairs:
                pair.far.opened()
            window.wait(RAMP)
            moved = self._loaded(pairs, seconds, window)
            self._end(pairs)
            undo.pop_all()
        return Moved(*moved, kinds=kinds if arm != "user" else ())

    def _loaded(self, pairs: list[Pair], seconds: float, window: Window) -> tuple[int, int, int, float]:
        """Bytes by direction in the window, at the ends that receive; connections; seconds by their clock."""
        takers = {
            "tx": (self.testbed.end("peer").pump, [p.far for p in pairs if p.side == "tx"]),
            "rx": (self.testbed.end("dut").pump, [p.near for p in pairs if p.side == "rx"]),
        }
        busy = {side: taker for side, taker in takers.items() if taker[1]}
        window.begin()
        before = {side: pump.count(them) for side, (pump, them) in busy.items()}
        window.wait(seconds)
        after = {side: pump.count(them) for side, (pump, them) in busy.items()}
        for _ in range(SLOW if self.testbed.emulated else 0):
            if all(after[side].taken - before[side].taken >= LEAST for side in busy):
                break
            window.wait(1.0)
            after = {side: pump.count(them) for side, (pump, them) in busy.items()}
        window.end()
        moved = {side: after[side].taken - before[side].taken for side in busy}
        spent = max(after[side].at - before[side].at for side in busy)
        return moved.get("tx", 0), moved.get("rx", 0), len(pairs), spent

    def _end(self, pairs: list[Pair]) -> None:
        """Tell the takers to compare again, the senders to stop; then nothing may be missing.

        Which taker has which sender's bytes is not known: a listener takes them as they come.
        """
        for pair in pairs:
            (pair.far if pair.side == "tx" else pair.near).go()
        for pair in pairs:
            (pair.near if pair.side == "tx" else pair.far).go()
        ends = [(pair.near.report(), pair.far.report(), pair.side) for pair in pairs]
        for side in ("tx", "rx"):
            sent = [near if side == "tx" else far for near, far, which in ends if which == side]
            taken = [far if side == "tx" else near for near, far, which in ends if which == side]
            out, into = sum(end.sent.bytes for end in sent), sum(end.taken.bytes for end in taken)
            wrong = next((end.error for end in (*taken, *sent) if end.error), "")
            if wrong or out != into:
                raise NoFigure(
                    f"{out} bytes were sent ({side}), {into} arrived: {wrong or 'no error was seen'}"
                )

    def _pair(self, arm: str, side: str, setting: Setting) -> Pair:
        """Begin a connection of an arm."""
        lane, near, far = self._lane(side), self.testbed.end("dut").pump, self.testbed.end("peer").pump
        how = "zerocopy" if arm == "hw-zc" and side == "tx" else self.HOW
        unsent = UNSENT if self.testbed.emulated else 0
        send, take = flood(side, setting.size or WRITE, how, unsent), drain(side)
        ours, theirs = (send, take) if side == "tx" else (take, send)
        listener = lane.plain if arm == "plain" else lane.behind
        other = far.accept(listener, theirs, timeout=PATIENCE)
        if arm == "plain":
            return Pair(near.connect(self.testbed.address, lane.bare, ours, timeout=PATIENCE), other, side)
        if arm == "user":
            self._stunnel(side)
            return Pair(near.connect("127.0.0.1", lane.entry, ours, timeout=PATIENCE), other, side)
        ca, want = self.testbed.end("dut").at.ca, "tx" if side == "tx" else "both"
        argv = handoff.connect(
            self.testbed.address, lane.tls, ca, version=VERSION, cipher=CIPHER, want=want, timeout=PATIENCE
        )
        return Pair(near.handoff(argv, ours, timeout=PATIENCE), other, side)

    def _kind(self, pair: Pair) -> str:
        """Return what the DUT's socket is for this direction, as inet_diag said when it was handed over."""
        line = pair.near.opened()
        return "none" if line is None else line.tx if pair.side == "tx" else line.rx

    def _lane(self, side: str) -> Lane:
        """Listeners on the peer, and stunnel before one of them; made when first asked for."""
        if side not in self._lanes:
            peer, port, entry = self.testbed.end("peer"), self.testbed.next_port(), self.testbed.next_port()
            (behind, inner), (plain, bare) = peer.pump.listen(), peer.pump.listen(host=self.testbed.address)
            service = stunnel.Service("sink", f"{self.testbed.address}:{port}", f"127.0.0.1:{inner}")
            self.testbed.undo.callback(peer.pump.close, behind)
            self.testbed.undo.callback(peer.pump.close, plain)
            running = stunnel.running(peer.side.host, [service], peer.at, name=f"stunnel-{port}")
            self.testbed.undo.enter_context(running)
            self._lanes[side] = Lane(port, behind, bare, plain, entry)
        return self._lanes[side]

    def _stunnel(self, side: str) -> None:
        """The DUT's own stunnel, for the arm in user space; started when first asked for."""
        if side in self._entries:
            return
        end, lane = self.testbed.end("dut"), self._lanes[side]
        service = stunnel.Service(
            "user",
            f"127.0.0.1:{lane.entry}",
            f"{self.testbed.address}:{lane.tls}",
            client=True,
            version=VERSION,
            ciphers=handoff.CIPHERS[VERSION, CIPHER],
        )
        running = stunnel.running(end.side.host, [service], end.at, name=f"stunnel-{lane.entry}")
        self.testbed.undo.enter_context(running)
        self._entries.add(side)


class File(Stream):
    """The same from a file, by sendfile in every arm; `user` has stunnel in between, which cannot."""

    HOW = "sendfile"
