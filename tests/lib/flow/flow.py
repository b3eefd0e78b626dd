"""One TLS connection between DUT and peer: who is at the far end, what both ends saw, what was counted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

from offload.card.counters import Delta
from offload.card.profile import Cell
from offload.suite.traffic import handoff, openssl, stunnel
from offload.suite.traffic.drive import Report, Sending, Transfer, send, take
from offload.suite.traffic.keylog import KeyLog
from tests.lib.rig.rig import Rig

# Bytes of the DUT's receive buffer: as a new connection has it, and no more later. However slowly the DUT
# reads, no more than this passes the card undecrypted at a resync, and it is small beside proof.RX_START.
WINDOW = 64 * 1024


@dataclass(frozen=True)
class Flow:
    """What a finished connection leaves: both reports and how far the DUT's counters moved."""

    dut: Report
    far: Report
    moved: Delta

    @property
    def line(self) -> handoff.Line:
        """Return what ktls-handoff said when it handed the DUT's socket over."""
        assert self.dut.handoff is not None, self.dut.error
        return self.dut.handoff

    def tls(self) -> dict[str, int]:
        """The TLS counters that moved, for the evidence."""
        return {n: v for n, v in self.moved.nonzero().items() if "tls" in n.lower()}


@dataclass(frozen=True)
class Several:
    """Payload sent part by part on one connection, each part in its own way."""

    parts: tuple[Sending, ...]

    @property
    def total(self) -> int:
        """Bytes in all."""
        return sum(part.total for part in self.parts)

    def content(self) -> bytes:
        """Return what the receiver must see."""
        return b"".join(part.content() for part in self.parts)

    def sha256(self) -> str:
        """Return the SHA-256 of the content, hexadecimal."""
        return hashlib.sha256(self.content()).hexdigest()


class Traffic:
    """Connections on a rig. The DUT's end is the kernel's TLS, handed over by ktls-handoff.

    `keys`: where the peer's stunnel logs its session keys, for a tap on the wire.
    """

    keys: KeyLog | None = None

    def __init__(self, rig: Rig) -> None:
        self.rig = rig
        self.dut, self.peer = rig.end("dut"), rig.end("peer")

    def address(self, family: int) -> str:
        """The peer's address."""
        return self.peer.side.v4 if family == 4 else self.peer.side.v6

    @contextmanager
    def behind_stunnel(self, *steps: Mapping[str, Any]) -> Iterator[tuple[int, Transfer]]:
        """Run an unmodified stunnel on the peer, its plain end taking these steps: its port and that end."""
        port, pump = self.rig.next_port(), self.peer.pump
        listener, plain = pump.listen()
        self._listener = listener
        service = stunnel.Service("plain", f":::{port}", f"127.0.0.1:{plain}")
        try:
            with self.peer_stunnel([service]):
                yield port, pump.accept(listener, *steps)
        finally:
            pump.close(listener)

    @contextmanager
    def peer_stunnel(self, services: Sequence[stunnel.Service]) -> Iterator[None]:
        """Have stunnel on the peer, the resident one unless it logs keys; `said` is its log, also after."""
        with ExitStack() as undo:
            if self.keys is None:
                said = undo.enter_context(self.peer.stunnel.serving(services))
            else:
                at, name = self.peer.at, f"stunnel-{self.rig.port}"
                own = stunnel.running(self.peer.side.host, services, at, name=name, env=self.keys.env)
                said = partial(stunnel.log, undo.enter_context(own))
            try:
                yield
            finally:
                self.said = said()

    def again(self, *steps: Mapping[str, Any]) -> Transfer:
        """Return the plain end of one more connection to the stunnel that is up."""
        return self.peer.pump.accept(self._listener, *steps)

    def argv(self, cell: Cell, port: int, *, family: int = 4, want: str = "tx", **more: Any) -> list[str]:
        """Return the command by which the DUT connects."""
        return handoff.connect(
            self.address(family),
            port,
            self.dut.at.ca,
            version=cell.version,
            cipher=cell.cipher,
            want=want,
            **more,
        )

    def sent(self, cell: Cell, plan: Sending | Several, *, family: int = 4) -> Flow:
        """Send from the DUT to a sink behind stunnel."""
        before, steps = self.rig.counters(), [send(p) for p in getattr(plan, "parts", (plan,))]
        with self.behind_stunnel(take()) as (port, far):
            near = self.dut.pump.handoff(self.argv(cell, port, family=family), *steps)
            return self.ended(near, far, before)

    def sent_at_once(self, cell: Cell, plans: Sequence[Sending]) -> dict[int, Flow]:
        """Send each payload from the DUT to a port of its own of one stunnel, all at once: by port.

        The counters in each of them are those of all together.
        """
        before, pump, far, services = self.rig.counters(), self.peer.pump, {}, []
        with ExitStack() as undo:
            for _ in plans:
                port, (listener, plain) = self.rig.next_port(), pump.listen()
                undo.callback(pump.close, listener)
                services.append(stunnel.Service(f"plain{port}", f":::{port}", f"127.0.0.1:{plain}"))
                far[port] = pump.accept(listener, take())
            undo.enter_context(self.peer_stunnel(services))
            near = {
                port: self.dut.pump.handoff(self.argv(cell, port), send(plan))
                for port, plan in zip(far, plans, strict=True)
            }
            ends = {port: (near[port].report(120), far[port].report(120)) for port in far}
        moved = self.rig.counters() - before
        return {port: Flow(*pair, moved) for port, pair in ends.items()}

    def sent_to_openssl(self, cell: Cell, plan: Sending, *, ktls: bool = False) -> Flow:
        """Send from the DUT to `openssl s_server`: user space, or the peer's kernel (and card) with `ktls`.

        Not to stunnel with ENABLE_KTLS: 5.68 gives a kTLS receiver up ("transfer() loop executes not
        transferring any data"), because poll() reports a record that is not complete yet (seen on 6.1).
        """
        before, port = self.rig.counters(), self.rig.next_port()
        env = openssl.environment(self.peer.side.host, self.peer.at, ktls=ktls)
        argv = openssl.server(port, self.peer.at, version=cell.version, cipher=cell.cipher)
        far = self.peer.pump.spawn(argv, take(), env=env, port=port)
        far.listening()
        return self.ended(self.dut.pump.handoff(self.argv(cell, port), send(plan)), far, before)

    def received(self, cell: Cell, plan: Sending, *, family: int = 4) -> Flow:
        """Receive on the DUT from a source behind stunnel."""
        before = self.rig.counters()
        with self.behind_stunnel(send(plan)) as (port, far):
            argv = self.argv(cell, port, family=family, want="both")
            return self.ended(self.dut.pump.handoff(argv, take(buffer=WINDOW)), far, before)

    def received_from_openssl(self, cell: Cell, plan: Sending, *, ktls: bool = False) -> Flow:
        """Receive on the DUT, the server now, from `openssl s_client`: user space, or kernel with `ktls`."""
        before, port = self.rig.counters(), self.rig.next_port()
        ours, theirs = self.dut, self.peer
        near = ours.pump.handoff(
            handoff.accept(ours.side.v4, port, ours.at, version=cell.version, cipher=cell.cipher),
            take(buffer=WINDOW),
        )
        near.listening()
        env = openssl.environment(theirs.side.host, theirs.at, ktls=ktls)
        argv = openssl.client(ours.side.v4, port, theirs.at, version=cell.version, cipher=cell.cipher)
        return self.ended(near, theirs.pump.spawn(argv, send(plan), env=env), before)

    def received_as_written(self, cell: Cell, plan: Sending) -> Flow:
        """Receive on the DUT from the peer's kernel TLS, which makes one record (or more) of each write."""
        before, port = self.rig.counters(), self.rig.next_port()
        side, at = self.peer.side, self.peer.at
        argv = handoff.accept(side.v4, port, at, version=cell.version, cipher=cell.cipher, want="tx")
        far = self.peer.pump.handoff(argv, send(plan))
        far.listening()
        return self.ended(
            self.dut.pump.handoff(self.argv(cell, port, want="both"), take(buffer=WINDOW)), far, before
        )

    def received_by_openssl(self, cell: Cell, plan: Sending) -> Flow:
        """Receive on the DUT with `openssl s_server`, which uses kernel TLS as far as OpenSSL can."""
        before, port, entry = self.rig.counters(), self.rig.next_port(), self.rig.next_port()
        env = openssl.environment(self.dut.side.host, self.dut.at, ktls=True)
        argv = openssl.server(port, self.dut.at, version=cell.version, cipher=cell.cipher)
        near = self.dut.pump.spawn(argv, take(), env=env, port=port)
        near.listening()
        service = stunnel.Service(
            "source", f"127.0.0.1:{entry}", f"{self.dut.side.v4}:{port}", client=True, version=cell.version
        )
        with self.peer_stunnel([service]):
            far = self.peer.pump.connect("127.0.0.1", entry, send(plan))
            return Flow(near.report(120), far.report(120), self.rig.counters() - before)

    def between_openssl(self, cell: Cell, plan: Sending, *, near: bool, far: bool) -> Flow:
        """Send or receive on the DUT with `openssl` at both ends: the kernel's TLS, or OpenSSL's own code."""
        before, port = self.rig.counters(), self.rig.next_port()
        ends = [(self.dut, near), (self.peer, far)]
        (source, first), (sink, second) = ends if cell.direction == "tx" else reversed(ends)
        env = openssl.environment(sink.side.host, sink.at, ktls=second)
        argv = openssl.server(port, sink.at, version=cell.version, cipher=cell.cipher)
        taken = sink.pump.spawn(argv, take(), env=env, port=port)
        taken.listening()
        env = openssl.environment(source.side.host, source.at, ktls=first)
        argv = openssl.client(sink.side.v4, port, source.at, version=cell.version, cipher=cell.cipher)
        given = source.pump.spawn(argv, send(plan), env=env)
        reports = [given.report(120), taken.report(120)]
        dut, other = reports if cell.direction == "tx" else reversed(reports)
        return Flow(dut, other, self.rig.counters() - before)

    def exchanged(self, cell: Cell, out: Sending, back: Sending) -> Flow:
        """Receive `back` and then send `out` on one connection with a stunnel peer."""
        before = self.rig.counters()
        with self.behind_stunnel(send(back), take()) as (port, far):
            argv = self.argv(cell, port, want="both")
            near = self.dut.pump.handoff(argv, take(back.total, buffer=WINDOW), send(out))
            return self.ended(near, far, before)

    def ended(self, near: Transfer, far: Transfer, before: Any) -> Flow:
        """Wait for both ends, the receiving one decides; then read the counters again."""
        dut = near.report(120)
        if dut.handoff is None or not dut.handoff.ok:
            far.give_up()
        return Flow(dut, far.report(120), self.rig.counters() - before)
