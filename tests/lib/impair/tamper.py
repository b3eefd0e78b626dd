"""Connections whose payload is altered on its way: above the sending card, or by an attacker on the wire."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from offload.card.profile import Cell
from offload.errors import RigError
from offload.suite.traffic import handoff
from offload.suite.traffic.drive import Sending, send, sending, take
from offload.suite.traffic.mangle import Mangler, Target, mangling
from tests.lib.flow import proof
from tests.lib.flow.flow import Flow, Traffic

# What is sent below a mangler. The first two writes are altered: nothing is in flight before the first, which
# leaves at once, so each begins a packet. The second is more than a first window holds: several packets carry
# it. No other record has their lengths.
SIZES = (1024, 16000, *(15000,) * 8)
FLIPS = ({0: 1, 500: 0xFF, 1023: 0x80}, {7: 0x10, 1000: 1})
# What is sent through an attacker: first enough that a card is in sync, then one record that is altered.
PRIMER, ASK = sending("primer", 1 << 18, 16384), sending("ask", 100)
ONE_FRAME, MANY_FRAMES = 1000, 12_000  # bytes of that record
CONTENT, IN_TAG = {77: 1}, {ONE_FRAME + 11: 1}  # the bit that is altered, by offset from its content


@dataclass(frozen=True)
class Altered:
    """A payload for a mangler: what is sent, and what becomes of it where nothing refuses it."""

    plan: Sending
    targets: tuple[Target, ...]

    @property
    def total(self) -> int:
        """Bytes in all: altering keeps the length."""
        return self.plan.total

    def content(self) -> bytes:
        """Return what arrives."""
        out, rest = b"", self.plan.content()
        for target in self.targets:
            out, rest = out + target.altered(rest[: target.size]), rest[target.size :]
        return out + rest

    def sha256(self) -> str:
        """Return the SHA-256 of what arrives, hexadecimal."""
        return hashlib.sha256(self.content()).hexdigest()

    def places(self) -> list[int]:
        """Return the offsets at which it differs from what was sent."""
        return [
            at
            for at, pair in enumerate(zip(self.plan.content(), self.content(), strict=True))
            if pair[0] != pair[1]
        ]


def sent_altered(traffic: Traffic, cell: Cell, *, family: int = 4) -> tuple[Altered, Flow, int]:
    """Send from the DUT to a sink behind stunnel, altered below kernel TLS; the port comes with it."""
    before, dut, plan = (
        traffic.rig.counters(),
        traffic.rig.bench.dut,
        Sending(f"altered {cell} v{family}", SIZES),
    )
    with traffic.behind_stunnel(take()) as (port, far):
        pairs = zip(SIZES, FLIPS, strict=False)
        targets = tuple(Target(port, size, flips, cell.version, family) for size, flips in pairs)
        with mangling(dut.host, dut.dev, targets) as mangler:
            near = traffic.dut.pump.handoff(traffic.argv(cell, port, family=family), send(plan))
            flow = traffic.ended(near, far, before)
            proof.handed_over(flow, cell)
            _met(mangler)
        return Altered(plan, targets), flow, port


def received_forged(
    traffic: Traffic, cell: Cell, size: int, *, family: int = 4, flips: Mapping[int, int] = CONTENT
) -> tuple[Flow, int]:
    """Receive on the DUT PRIMER and then a record of `size` bytes, of which one bit is altered on the wire.

    The peer's kernel makes the records. It sends the altered one when the DUT has answered: with nothing in
    flight it begins a packet. Returns the port too.
    """
    bench, peer, port = traffic.rig.bench, traffic.peer, traffic.rig.next_port()
    assert bench.wire is not None
    before, last = traffic.rig.counters(), Sending("forged", (size, 5000))
    argv = handoff.accept(traffic.address(family), port, peer.at, version=cell.version, cipher=cell.cipher)
    far = peer.pump.handoff(argv, send(PRIMER), take(ASK.total), send(last))
    far.listening()
    target = Target(port, size, flips, cell.version, family, sends=True)
    with mangling(bench.wire, bench.wire_ports[0], [target], checksum=True) as mangler:
        argv = traffic.argv(cell, port, family=family, want="both")
        near = traffic.dut.pump.handoff(argv, take(PRIMER.total), send(ASK), take(last.total))
        flow = traffic.ended(near, far, before)
        proof.handed_over(flow, cell)
        came = flow.dut.taken.bytes
        assert came >= PRIMER.total, f"{flow.dut.error} after {came} bytes, before anything was altered"
        _met(mangler)
    return flow, port


def refused(flow: Flow) -> None:
    """The DUT took all that came before the altered record, not a byte of that, and said why."""
    more = flow.dut.taken.bytes - PRIMER.total
    assert more == 0, f"{more} bytes of an altered record were delivered"
    assert flow.dut.error.startswith("EBADMSG"), f"the receiver ended with {flow.dut.error or 'no error'}"
    assert flow.dut.took(PRIMER), f"{PRIMER.total} bytes arrived unaltered, and their SHA-256 differs"
    assert proof.count(flow, "TlsDecryptError") >= 1, "the kernel counted no record that it could not decrypt"


def _met(mangler: Mangler) -> None:
    """RigError if a target was never met: then nothing was tried."""
    hits = mangler.hits()
    if not all(hits):
        raise RigError(f"the mangler altered {hits} packets: each record has to be met")
