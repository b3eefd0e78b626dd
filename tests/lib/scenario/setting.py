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
from tests.lib.scenario.connections import BUFFER, Ask, Line, option
from tests.lib.scenario.frames import Headers
from tests.lib.scenario.space import Scenario

EF = 0xB8  # expedited forwarding (RFC 3246) as a traffic class
IP_TOS, IP_OPTIONS = 1, 4  # include/uapi/linux/in.h
IPV6_DSTOPTS, IPV6_TCLASS, IPV6_AUTOFLOWLABEL = 59, 67, 70  # include/uapi/linux/in6.h
SOL_TLS, TLS_TX_ZEROCOPY_RO = 282, 3  # include/uapi/linux/tls.h
SO_TXREHASH = 74  # include/uapi/asm-generic/socket.h, since Linux 5.18
PATIENCE = 30  # seconds without a byte: a connection that is dead, not one that TCP is still mending
TSO = 44  # segments of 1500 bytes in a packet of 64 KiB
NOPS = "01010101"  # four options that do nothing (RFC 791 section 3.1)
PADDING = "010400000000"  # an option of six bytes that does nothing (RFC 8200 section 4.2)
OPTIONS = {"v4-options": bytes.fromhex(NOPS), "v6-extension": bytes.fromhex(f"0600{PADDING}")}  # TCP is next
EXTENSION = f"0000{PADDING}"
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
    """An option of sockets, and what a header then has; `far`: set at the peer's end, too."""

    level: int
    name: int
    value: int | str
    far: bool = True


UNLABELED = Socket(IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 0)
SOCKETS = {
    "v4-tos": (Socket(IPPROTO_IP, IP_TOS, EF),),
    "v4-options": (Socket(IPPROTO_IP, IP_OPTIONS, NOPS),),
    "v6": (UNLABELED,),
    "v6-tclass": (UNLABELED, Socket(IPPROTO_IPV6, IPV6_TCLASS, EF)),
    "v6-flow-label": (Socket(IPPROTO_IPV6, IPV6_AUTOFLOWLABEL, 1),),
    "v6-extension": (UNLABELED, Socket(IPPROTO_IPV6, IPV6_DSTOPTS, EXTENSION, far=False)),
}
PLAIN = {  # what takes back all of these from an old connection, by version
    4: (Socket(IPPROTO_IP, IP_TOS, 0), Socket(IPPROTO_IP, IP_OPTIONS, "")),
    6: (UNLABELED, Socket(IPPROTO_IPV6, IPV6_TCLASS, 0), Socket(IPPROTO_IPV6, IPV6_DSTOPTS, "", far=False)),
}


def prepare(undo: ExitStack, rig: Rig, scenario: Scenario) -> None:
    """Make TCP and the ports what the scenario says; put back when `undo` ends."""
    wanted = tcp(scenario)
    if scenario["place"] == "hundreds-in-tso":
        wanted |= {"min_tso_segs": TSO, "slow_start_after_idle": 0}  # the window stays while it writes
    if wanted:
        undo.enter_context(path.tcp_settings(rig.bench, **wanted))
    if rig.kind == "veth":  # frames on this cable are as TCP made them: let it make what a card would send
        for side in (rig.bench.dut, rig.bench.peer):
            off(undo, side, CABLE)
    elif scenario["tso"] == "off":
        off(undo, rig.bench.dut, TSO_PARTS)


def tcp(scenario: Scenario) -> dict[str, int]:
    """The settings of TCP (net.ipv4.tcp_*) that its ends must have when they open a connection."""
    return SETTINGS[scenario["tcp"]] | ({"ecn": 1} if scenario["trouble"] == "ce-mark" else {})


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


def sockets(scenario: Scenario, lines: Sequence[Line]) -> list[Ask]:
    """Return what gives the sockets buffers of one size, one queue for life, and their options of IP.

    A timeout gives a connection another hash (sk_rethink_txhash in tcp_write_timeout), and so another queue
    of fq_codel. What is sent then overtakes older packets, and the order on the wire is not the card's.
    """
    asks = [*buffers(lines), *(option(lines, SOL_SOCKET, SO_TXREHASH, 0, far=far) for far in (False, True))]
    old, zerocopy = scenario["age"] == "old", scenario["call"] == "zerocopy"
    before = PLAIN[version(scenario["ip"])] if old else ()
    for wanted in (*before, *SOCKETS.get(scenario["ip"], ())):
        for far in (False, True)[: 1 + wanted.far]:
            asks.append(option(lines, wanted.level, wanted.name, wanted.value, far=far))
    if zerocopy or old:
        asks.append(option(lines, SOL_TLS, TLS_TX_ZEROCOPY_RO, int(zerocopy)))
    return asks


def listening(scenario: Scenario) -> tuple[tuple[int, int, str], ...]:
    """The options of the peer's listener, for connections that inherit them: level, name, value in hex.

    A socket that has been accepted does not count an extension header in its segments, and its packets
    become too long for the path (ipv6_update_options, net/ipv6/ipv6_sockglue.c).
    """
    return ((IPPROTO_IPV6, IPV6_DSTOPTS, EXTENSION),) if scenario["ip"] == "v6-extension" else ()


def version(ip: str) -> int:
    """The version of IP of one of its conditions."""
    return 6 if ip.startswith("v6") else 4


def buffers(lines: Sequence[Line]) -> list[Ask]:
    """Return what gives both ends buffers that do not grow, so that a sender must wait for who takes."""
    patience = struct.pack("ll", PATIENCE, 0).hex()
    sizes = {SO_SNDBUF: BUFFER, SO_RCVBUF: 2 * BUFFER, SO_RCVTIMEO: patience, SO_SNDTIMEO: patience}
    return [
        option(lines, SOL_SOCKET, name, value, far=far)
        for far in (False, True)
        for name, value in sizes.items()
    ]


def losing(scenario: Scenario) -> bool:
    """Whether frames may be lost between card and wire: a port that is set again drops what it holds."""
    return scenario["event"] not in QUIET


def headers(scenario: Scenario) -> Headers:
    """Return what the headers of the data between both ends must be."""
    ip = scenario["ip"]
    options = OPTIONS.get(ip, b"")
    tos = EF if ip in ("v4-tos", "v6-tclass") else 0
    stamps, marked = scenario["tcp"] != "bare", scenario["trouble"] == "ce-mark"
    more = {"ecn": marked, "numbered": scenario["event"] not in REQUEUED}
    return Headers(tos, options, label=ip == "v6-flow-label", stamps=stamps, **more)
