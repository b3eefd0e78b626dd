"""Many connections that stand in the middle of their payload at one moment, are seen there, and go on."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace

from offload.card.profile import Cell
from offload.host.base import Host
from offload.suite.traffic import stunnel
from offload.suite.traffic.drive import Sending, send, take
from tests.lib.flow.flow import Flow, Traffic

CHANNELS = 8  # QEMU's multifd is commonly run with 2 to 8
PATIENCE = 300  # seconds: an emulated guest on a busy machine takes 10 for a handshake, and the first waits
CONF = re.compile(r"\btxconf: (\w+)")


@dataclass(frozen=True)
class Together:
    """What came of them: each by its port, all with the counters of all; `shown`: by ss, in the middle."""

    flows: dict[int, Flow]
    shown: list[str]


def at_once(traffic: Traffic, cell: Cell, plans: Sequence[Sending]) -> Together:
    """Send each payload from the DUT to a stunnel on the peer, all at once: a port of its own each.

    Each stops before its last write; ss looks at all; then they go on together.
    """
    before, pump, far, services = traffic.rig.counters(), traffic.peer.pump, {}, []
    plans = [replace(plan, gate=len(plan.sizes) - 1) for plan in plans]
    with ExitStack() as undo:
        for _ in plans:
            port, (listener, plain) = traffic.rig.next_port(), pump.listen()
            undo.callback(pump.close, listener)
            services.append(stunnel.Service(f"channel{port}", f":::{port}", f"127.0.0.1:{plain}"))
            far[port] = pump.accept(listener, take(), timeout=PATIENCE)
        undo.enter_context(traffic.peer_stunnel(services))
        near = {}
        for port, plan in zip(far, plans, strict=True):  # one handshake at a time: eight at once take minutes
            argv = traffic.argv(cell, port, timeout=PATIENCE)
            near[port] = traffic.dut.pump.handoff(argv, send(plan), timeout=PATIENCE)
            near[port].at_gate(PATIENCE)
        shown = confs(traffic.dut.side.host, list(far))
        for transfer in near.values():
            transfer.go()
        ends = {port: (near[port].report(PATIENCE), far[port].report(PATIENCE)) for port in far}
    moved = traffic.rig.counters() - before
    return Together({port: Flow(*pair, moved) for port, pair in ends.items()}, shown)


def confs(host: Host, ports: Sequence[int]) -> list[str]:
    """Return who encrypts what goes to these ports now, a word per connection: hw, sw, `hw zc`
    (zero-copy), none."""
    return shown(host, " or ".join(f"dport = :{port}" for port in ports))


def serving(host: Host, port: int) -> list[str]:
    """The same of every connection of a server on this port."""
    return shown(host, f"sport = :{port}")


def shown(host: Host, which: str) -> list[str]:
    """Return what ss shows of the established connections that a filter names."""
    text = host.run(["ss", "-HtineO", "state", "established", f"( {which} )"]).text
    each = [(CONF.search(line), line) for line in text.splitlines() if line.strip()]
    return [conf[1] + " zc" * ("zc_ro_tx" in line) if conf else "none" for conf, line in each]
