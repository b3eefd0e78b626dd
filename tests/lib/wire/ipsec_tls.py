"""Kernel TLS inside ESP: what is on the wire, what arrives, and what a card does that cannot read it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from offload.cmd import settles
from offload.errata.match import AFFECTED, kernel, load, standing
from offload.host.base import Host
from tests.lib.life.life import KIB, Life, Pair
from tests.lib.rig.rig import Rig
from tests.lib.wire import ipsec

SIZE = 4 * KIB
ERRATUM = "tls-below-esp"
# of `ss -tinH`: queues, own port, and of the line below it retransmissions in all
ROW = re.compile(r"^\S+ +(\d+) +(\d+) +\S+:(\d+) +\S+ *\n(?:\s.*?\bretrans:\d+/(\d+))?", re.M)
# A packet whose number belongs to no record. ESP's stands where TCP's would (RFC 4303 section 2).
UNREAD = ("tx_tls_drop_no_sync_data", "tx_tls_skip_no_sync_data")


def whole(rig: Rig, life: Life, evidence: dict[str, Any]) -> None:
    """Move payload both ways by software TLS in ESP without a cipher: whole, and none of it in plaintext."""
    with ipsec.watching(rig) as seen, ipsec.esp_between(rig, "null"):
        (pair,) = life.open()
        pair.moves("tls in esp", SIZE)
        life.close([pair])
    clear = [seen.clear(ipsec.canary(f"tls in esp {direction}", SIZE)) for direction in ("out", "back")]
    evidence["ipsec"] = {"packets": len(seen.of(ipsec.ESP)), "clear": clear}
    assert seen.of(ipsec.ESP), "nothing was in ESP"
    assert max(clear) == 0, f"{clear} of the payload is on the wire in plaintext"


@contextmanager
def no_esp_for(rig: Rig, port: int) -> Iterator[None]:
    """Policies without a template, at both ends, for the connection with this port of the DUT's."""
    dut, peer = rig.bench.dut, rig.bench.peer
    there = f"src {dut.v4}/32 dst {peer.v4}/32 proto 6 sport {port}"
    back = f"src {peer.v4}/32 dst {dut.v4}/32 proto 6 dport {port}"
    policies = [(dut, there, "out"), (dut, back, "in"), (peer, there, "in"), (peer, back, "out")]
    with ExitStack() as undo:
        for side, selector, to in policies:
            words = [*selector.split(), "dir", to]
            side.host.run(["ip", "xfrm", "policy", "add", *words, "priority", "1"])
            undo.callback(side.host.run, ["ip", "xfrm", "policy", "delete", *words])
        yield


def taken(pair: Pair) -> dict[str, Any]:
    """Return what the peer gets; TCP doubles its patience with each vain attempt, and so does this."""
    for _ in range(3):
        there = pair.far.take(SIZE)
        if there["error"] != "EAGAIN" or there["bytes"]:
            break
    return there


def sent(rig: Rig, pairs: list[Pair]) -> tuple[dict[str, int], int]:
    """Send until each has all at the peer, or was in vain three times: the card's counters, who is stuck."""
    counted = rig.counters()
    for number, pair in enumerate(pairs):
        pair.near.call("send", seed=f"below {number}", size=SIZE)
    states = _states(rig, pairs)
    settled = settles(lambda: states.update(_states(rig, pairs)) or all(map(_decided, states.values())), 60)
    assert settled, f"neither at the peer nor sent again: {states}"
    moved = (rig.counters() - counted).moved
    counters = {name: moved.get(name, 0) for name in (*UNREAD, "tx_tls_encrypted_bytes")}
    return counters, sum(unacked > 0 for unacked, _ in states.values())


def _decided(state: tuple[int, int]) -> bool:
    unacked, again = state
    return unacked == 0 or again >= 2


def _states(rig: Rig, pairs: list[Pair]) -> dict[int, tuple[int, int]]:
    """By port how much of what was sent the peer has not acknowledged, and how often it was sent again."""
    text = rig.bench.dut.host.run(["ss", "-tinH"]).text
    rows = {int(row[2]): row for row in ROW.findall(text)}
    found = {pair.port: rows.get(pair.port, ("", "0", "", "0")) for pair in pairs}  # not there: it has ended
    return {port: (int(row[1]), int(row[3] or 0)) for port, row in found.items()}


def affected(rig: Rig) -> bool:
    """Whether the erratum says so of the DUT's kernel."""
    host: Host = rig.bench.dut.host
    words = host.run(["uname", "-r", "-v"]).text.split()
    package = next((b for a, b in zip(words, words[1:], strict=False) if a == "Debian"), "")
    erratum = next(e for e in load() if e.id == ERRATUM)
    return standing(erratum, kernel(words[0], package)).word == AFFECTED
