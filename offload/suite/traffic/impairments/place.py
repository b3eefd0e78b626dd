"""Where frames may be impaired: on the wire, between two ports, never on an end; and what is restored
after."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from offload.cmd import wait_until
from offload.errors import CommandFailed, ConfigError, NoDevice, NoPermission, Refused, RigError
from offload.host.base import Bench, Host
from offload.host.tools import tool

STATUS = "/proc/self/status"
NET_ADMIN, NET_RAW = 12, 13  # include/uapi/linux/capability.h
# what merges frames before anybody sees them, by ethtool's name for setting and for showing it
MERGES = {"gro": "generic-receive-offload", "lro": "large-receive-offload", "rx-gro-hw": "rx-gro-hw"}
# files of brport/ in sysfs that can be set
SETTINGS = (
    "path_cost",
    "priority",
    "hairpin_mode",
    "learning",
    "unicast_flood",
    "broadcast_flood",
    "multicast_flood",
    "multicast_fast_leave",
    "multicast_router",
    "multicast_to_unicast",
    "bpdu_guard",
    "root_block",
    "proxyarp",
    "proxyarp_wifi",
    "neigh_suppress",
    "isolated",
    "group_fwd_mask",
    "backup_port",
)
LEAST_MTU = 576  # RFC 791, section 3.1, Total Length
FORWARDS_AFTER = 40.0  # seconds: a port with spanning tree listens and learns for 15 s each
ORPHANS = (
    "there netem takes each packet from its socket (skb_orphan_partial, net/core/sock.c), and the kernel "
    "then drops what the card was to encrypt, or does not offload"
)


@dataclass(frozen=True)
class Found:
    """What there was: the bridge of both ports ('' for none), what merged frames per port, files of sysfs."""

    bridge: str
    merging: Mapping[str, tuple[str, ...]]
    files: Mapping[str, str]


def wire_of(bench: Bench, ports: Sequence[str]) -> Host:
    """The host on which these wire ports are.

    Refused if one is an end of the bench (saying why) or nobody can stand on the wire; ConfigError for a
    port that is not of the wire.
    """
    if bench.wire is None:
        raise Refused(
            "this bench's wire has no capture point", "name a host and its two ports between the cards"
        )
    for port in ports:
        for who, side in (("DUT", bench.dut), ("peer", bench.peer)):
            same = bench.wire.name == side.host.name or port not in bench.wire_ports
            if same and port == side.dev:
                raise Refused(
                    f"{port} is the {who}'s own port: {ORPHANS}",
                    f"inject impairments on the wire: {' or '.join(bench.wire_ports) or 'none here'}",
                )
        if port not in bench.wire_ports:
            raise ConfigError(
                f"{port!r} is not a port of the wire", f"there are: {', '.join(bench.wire_ports)}"
            )
    return bench.wire


def links(host: Host, ports: Sequence[str]) -> dict[str, dict[str, Any]]:
    """`ip -j -d link` of these ports. NoDevice if one is missing, RigError if one is down."""
    done = tool(host, ["ip", "-j", "-d", "address", "show"])
    try:
        rows = {row["ifname"]: row for row in json.loads(done.checked().text) if row.get("ifname")}
    except (ValueError, TypeError, KeyError, AttributeError):
        raise CommandFailed(list(done.argv), done.rc, done.stdout, b"no list of interfaces") from None
    for port in ports:
        if port not in rows:
            raise NoDevice(f"the wire has no interface {port!r}", f"{host.name} has: {', '.join(rows)}")
        if "UP" not in rows[port].get("flags", []):
            raise RigError(f"{port} is down: it carries no traffic", f"ip link set {port} up")
    return rows


def check_no_end(rows: Mapping[str, dict[str, Any]], ports: Sequence[str]) -> None:
    """Refused for a port with an address of its own: it is somebody's end, whatever the bench says."""
    for port in ports:
        own = [a["local"] for a in rows[port].get("addr_info", []) if a.get("scope") == "global"]
        if own:
            raise Refused(f"{port} has the address {own[0]}: it is an endpoint, not the wire; {ORPHANS}")


def read_files(host: Host, paths: Sequence[str]) -> dict[str, str]:
    """The lines of small files, by path; those that cannot be read are left out. One command for all."""
    found: dict[str, str] = {}
    for line in host.run(["grep", "-sH", "", *paths], check=False).text.splitlines():
        path, _, text = line.partition(":")
        found[path] = f"{found[path]}\n{text}" if path in found else text
    return found


def check_rights(host: Host, status: str, *wanted: int) -> None:
    """NoPermission if commands on the host lack these capabilities; `status` is their /proc/self/status."""
    match = re.search(r"^CapEff:\s*([0-9a-f]+)$", status, re.M)
    have = int(match[1], 16) if match else 0
    if any(not have >> bit & 1 for bit in wanted):
        raise NoPermission(f"impairments on {host.name} need CAP_NET_ADMIN and CAP_NET_RAW", "run it as root")


def survey(bench: Bench) -> Found:
    """Return what is between the two wire ports now; an error in one sentence if wirebox cannot take its
    place."""
    if bench.wire is not None and len(set(bench.wire_ports)) != 2:
        raise ConfigError(f"the wire has {len(bench.wire_ports)} ports", "a wire needs exactly two ports")
    ports = bench.wire_ports
    host = wire_of(bench, ports)
    rows = links(host, ports)
    check_no_end(rows, ports)
    mtus = {port: rows[port].get("mtu") for port in ports}
    if len(set(mtus.values())) != 1:
        shown = " and ".join(f"{port} {mtu}" for port, mtu in mtus.items())
        raise ConfigError(f"the ports of the wire have different MTUs: {shown}", "make them equal")
    if any(type(mtu) is int and mtu < LEAST_MTU for mtu in mtus.values()):
        raise ConfigError(
            f"the wire has an MTU of {mtus[ports[0]]}", f"at least {LEAST_MTU}, which every host must accept"
        )
    bridge = _bridge(rows, ports)
    filters = f"/sys/class/net/{bridge}/bridge/vlan_filtering"
    files = read_files(host, [STATUS, filters, *(path for port in ports for path in _settings(port))])
    check_rights(host, files.get(STATUS, ""), NET_ADMIN, NET_RAW)
    if files.get(filters) == "1":
        raise Refused(
            f"bridge {bridge} filters VLANs: it would lose its table",
            "use a bridge without VLAN filtering",
        )
    return Found(bridge, {port: _merging(host, port) for port in ports}, files)


def _bridge(rows: Mapping[str, dict[str, Any]], ports: Sequence[str]) -> str:
    """The bridge of both ports. Refused if it is more than the cable between them."""
    masters = {port: str(rows[port].get("master", "")) for port in ports}
    bridge = masters[ports[0]]
    if len(set(masters.values())) != 1:
        shown = " and ".join(f"{port} in {master or 'none'}" for port, master in masters.items())
        raise ConfigError(f"the ports of the wire are not in one bridge: {shown}")
    if not bridge:
        return ""
    if rows.get(bridge, {}).get("linkinfo", {}).get("info_kind") != "bridge":
        raise ConfigError(f"{ports[0]} and {ports[1]} belong to {bridge}, which is not a bridge")
    others = [name for name, row in rows.items() if row.get("master") == bridge and name not in ports]
    if others:
        raise Refused(
            f"bridge {bridge} has more ports ({', '.join(others)}): they would lose their connection"
        )
    return bridge


def _merging(host: Host, port: str) -> tuple[str, ...]:
    """The words of what merges frames on a port and can be switched off. RigError if LRO cannot."""
    text = tool(host, ["ethtool", "-k", port]).checked().text
    found = {word: re.search(rf"^\s*{name}: on( \[fixed\])?", text, re.M) for word, name in MERGES.items()}
    fixed = [word for word, match in found.items() if match and match[1]]
    if "lro" in fixed:
        raise RigError(
            f"{port} merges frames (LRO) and cannot stop: its frames differ from those on the cable"
        )
    return tuple(word for word, match in found.items() if match and word not in fixed)


def _settings(port: str) -> list[str]:
    """The files of a bridge port's settings and state."""
    return [f"/sys/class/net/{port}/brport/{name}" for name in (*SETTINGS, "state")]


def stop_merging(host: Host, found: Found) -> None:
    """Switch off what merges frames; put_back switches it on again."""
    _switch(host, found, "off")


def _switch(host: Host, found: Found, how: str) -> None:
    for port, words in found.merging.items():
        if words:
            host.run(["ethtool", "-K", port, *(part for word in words for part in (word, how))])


def put_back(host: Host, ports: Sequence[str], found: Found) -> None:
    """Make bridge and ports what they were; harmless if they are. RigError if one does not follow."""
    _switch(host, found, "on")
    if not found.bridge:
        return
    for port in ports:
        joined = ["test", "-e", f"/sys/class/net/{found.bridge}/brif/{port}"]
        if host.run(joined, check=False).rc != 0:
            host.run(["ip", "link", "set", port, "master", found.bridge])
    files = [path for port in ports for path in _settings(port)]
    now = read_files(host, files)
    for path in files:
        if path in found.files and now.get(path) != found.files[path] and not path.endswith("/state"):
            host.run(["tee", path], input=f"{found.files[path]}\n".encode())
    states = [path for path in files if path.endswith("/state")]
    if any(now.get(path) != found.files.get(path) for path in states):
        _await_states(host, {path: found.files.get(path, "") for path in states})


def _await_states(host: Host, wanted: dict[str, str]) -> None:
    """Wait until the ports carry frames in their bridge as they did."""
    wait_until(lambda: read_files(host, list(wanted)) == wanted, FORWARDS_AFTER, "the bridge to carry frames")
