"""The path and the sockets of a scenario: MTU, TCP's options, TSO, and what is in the IP header."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from socket import IPPROTO_IP, IPPROTO_IPV6, SO_RCVBUF, SO_RCVTIMEO, SO_SNDBUF, SO_SNDTIMEO, SOL_SOCKET

from offload.card.nic import features
from offload.host.base import Side
from tests.lib.impair import shapes_path as path
from tests.lib.rig.rig import Rig
from tests.lib.scenario.connections import BUFFER, Line, option
from tests.lib.scenario.frames import Headers
from tests.lib.scenario.space import Scenario

EF = 0xB8  # expedited forwarding (RFC 3246) as a traffic class
IP_TOS, IP_OPTIONS, IPV6_TCLASS = 1, 4, 67  # include/uapi/linux/in.h, in6.h
PATIENCE = 30  # seconds without a byte: a connection that is dead, not one that TCP is still mending
TSO = 44  # segments of 1500 bytes in a packet of 64 KiB
NOPS = "01010101"  # four options that do nothing (RFC 791 section 3.1)
SETTINGS: dict[str, dict[str, int]] = {
    "bare": {"sack": 0, "timestamps": 0},
    "timestamps": {},
    "sack-live": {"sack": 1, "timestamps": 1},
}
QUIET = (
    "none",
    "other",
    "idle",
    "coalesce",
    "route",
)  # events that lose no packet and leave each context as it is
REQUEUED = ("channels", "mtu")  # the kernel may choose another queue, which is faster or slower
TSO_PARTS = ("tx-tcp",)
CABLE = (*TSO_PARTS, "tx-checksum-", "generic-segmentation")  # what a card does, and a veth leaves undone


@dataclass(frozen=True)
class Socket:
    """An option of the DUT's sockets, and what a header then has."""

    level: int
    name: int
    value: int | str


SOCKETS = {
    "v4-tos": Socket(IPPROTO_IP, IP_TOS, EF),
    "v6-tclass": Socket(IPPROTO_IPV6, IPV6_TCLASS, EF),
    "v4-options": Socket(IPPROTO_IP, IP_OPTIONS, NOPS),
}


def prepare(undo: ExitStack, rig: Rig, scenario: Scenario) -> None:
    """Make the path what the scenario says; put back when `undo` ends."""
    if scenario["mtu"] != "1500":
        undo.enter_context(path.path_mtu(rig.bench, int(scenario["mtu"])))
    wanted = dict(SETTINGS[scenario["tcp"]])
    if scenario["trouble"] == "ce-mark":
        wanted["ecn"] = 1
    if scenario["place"] == "hundreds-in-tso":
        wanted["min_tso_segs"] = TSO
    if wanted:
        undo.enter_context(path.tcp_settings(rig.bench, **wanted))
    if rig.kind == "veth":  # frames on this cable are as TCP made them: let it make what a card would send
        for side in (rig.bench.dut, rig.bench.peer):
            off(undo, side, CABLE)
    elif scenario["tso"] == "off":
        off(undo, rig.bench.dut, TSO_PARTS)


def off(undo: ExitStack, side: Side, parts: Sequence[str]) -> None:
    """Switch off the features with these parts in their names; each that changed is put back."""
    found = {name: one.active for name, one in features(side.host, side.dev).items() if not one.fixed}
    undo.callback(put_back, side, found)
    names = [name for name, active in found.items() if active and any(part in name for part in parts)]
    if names:
        side.host.run(["ethtool", "-K", side.dev, *(word for name in names for word in (name, "off"))])


def put_back(side: Side, found: dict[str, bool]) -> None:
    """Make every feature what it was found to be: the ones that follow others, too."""
    now = features(side.host, side.dev)
    changed = [name for name, active in found.items() if now[name].active != active]
    words = [word for name in changed for word in (name, "on" if found[name] else "off")]
    if words:
        side.host.run(["ethtool", "-K", side.dev, *words])


def sockets(scenario: Scenario, lines: Sequence[Line]) -> None:
    """Give the sockets buffers of one size, and their options of IP."""
    buffers(lines)
    if scenario["ip"] in SOCKETS:
        wanted = SOCKETS[scenario["ip"]]
        option(lines, wanted.level, wanted.name, wanted.value)


def buffers(lines: Sequence[Line]) -> None:
    """Give both ends buffers that do not grow, so that a sender must wait for who takes."""
    for far in (False, True):
        option(lines, SOL_SOCKET, SO_SNDBUF, BUFFER, far=far)
        option(lines, SOL_SOCKET, SO_RCVBUF, 2 * BUFFER, far=far)
        for name in (SO_RCVTIMEO, SO_SNDTIMEO):
            option(lines, SOL_SOCKET, name, struct.pack("ll", PATIENCE, 0).hex(), far=far)


def losing(scenario: Scenario) -> bool:
    """Whether frames may be lost between card and wire: a port that is set again drops what it holds."""
    return scenario["event"] not in QUIET


def headers(scenario: Scenario) -> Headers:
    """Return what the headers of the DUT's data must be."""
    tos = EF if scenario["ip"] in ("v4-tos", "v6-tclass") else 0
    options = bytes.fromhex(NOPS) if scenario["ip"] == "v4-options" else b""
    stamps, marked = scenario["tcp"] != "bare", scenario["trouble"] == "ce-mark"
    numbered = scenario["event"] not in REQUEUED
    return Headers(tos, options, stamps=stamps, ecn=marked, numbered=numbered)
