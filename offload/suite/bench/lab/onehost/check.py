"""May these two ports of this machine become a bench? Asked before anything is changed."""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from offload.card.nic import links, seen
from offload.errors import ConfigError, NoPermission, Refused
from offload.host.base import Host
from offload.host.tools import tool
from offload.suite.bench.lab.cables import routes
from offload.suite.bench.lab.model import ONE_HOST, ONE_WIRE

SPACES = Path("/run/netns")  # of iproute2
IPV6 = "/proc/sys/net/ipv6/conf/{}/disable_ipv6"
NETWORKS = tuple(ipaddress.ip_network(text) for text in ("192.0.2.0/24", "fd00:2::/64"))


def root() -> None:
    """NoPermission unless we are root."""
    if os.geteuid() != 0:
        raise NoPermission("only root may move a port into a network namespace", "run it as root")


def ports(host: Host, wanted: Sequence[str]) -> tuple[str, ...]:
    """The ports by their own names, the DUT's first. ConfigError, NoDevice or Refused if it cannot be."""
    rows = links(host)
    names = tuple(seen(host, name, rows).dev for name in wanted)
    if twice := next((name for name in names if names.count(name) > 1), ""):
        raise ConfigError(
            f"{twice} is named twice", "a bench needs different ports: `ip -br link` lists them"
        )
    used = routes(host)
    for dev in names:
        _port(dev, rows)
        if dev in used:
            raise Refused(f"{dev} is needed to reach this host: {used[dev]}", "take another port")
    _spare(host, names)
    for dev in names[1:]:
        _movable(host, dev)
    _room(host, names)
    return names


def _port(dev: str, rows: Mapping[str, dict[str, Any]]) -> None:
    """Refused for what is no port of a card, or is part of something else."""
    row, kind = rows[dev], rows[dev].get("linkinfo", {}).get("info_kind", "")
    if row.get("link_type") != "ether" or kind not in ("", "veth"):
        raise Refused(f"{dev} is not a port of a card: its kind is {kind or row.get('link_type')}")
    if "master" in row:
        hint = f"ip link set {dev} nomaster"
        raise Refused(f"{dev} belongs to {row['master']}, which would lose it", hint)
    above = [name for name, other in rows.items() if other.get("link") == dev and _stacked(other)]
    if above:
        raise Refused(f"{', '.join(above)} is stacked on {dev}", f"ip link del {above[0]}")


def _stacked(row: Mapping[str, Any]) -> bool:
    """Say whether an interface lies upon its `link`; that of a veth is its other end."""
    return bool(row.get("linkinfo", {}).get("info_kind", "") != "veth")


def _spare(host: Host, names: Sequence[str]) -> None:
    """Refused if a TCP connection of this host uses one of the ports, as an ssh session does."""
    found = json.loads(host.run(["ip", "-j", "address", "show"]).text or "[]")
    have = {a["local"]: row["ifname"] for row in found for a in row.get("addr_info", []) if "local" in a}
    for line in host.run(["ss", "-Htn", "state", "established"], check=False).text.splitlines():
        local, other = line.split()[-2:]
        address = local.rpartition(":")[0].strip("[]").partition("%")[0].removeprefix("::ffff:")
        if (dev := have.get(address)) in names:
            hint = "close it, or use another port"
            raise Refused(f"{dev} carries a TCP connection, {local} to {other}", hint)


def _movable(host: Host, far: str) -> None:
    """Refused for a port that has what a move takes and nobody puts back."""
    rows = json.loads(tool(host, ["tc", "-j", "qdisc", "show", "dev", far]).text or "[]")
    if own := [str(row.get("kind")) for row in rows if row.get("handle") not in ("0:", None)]:
        raise Refused(
            f"{far} has its own queueing discipline ({', '.join(own)}), which a move would lose",
            f"tc qdisc del dev {far} root (or ingress, clsact); add it again when the port is back",
        )
    for route in json.loads(tool(host, ["ip", "-j", "route", "show", "table", "all"]).text or "[]"):
        if any(hop.get("dev") == far for hop in route.get("nexthops", [])):
            hint = f"ip route del {route.get('dst')}; add it again when the port is back"
            raise Refused(f"{far} has a multipath route, which a move would lose", hint)
    near = json.loads(tool(host, ["ip", "-j", "neigh", "show", "dev", far, "nud", "permanent"]).text or "[]")
    if near:
        hint = f"ip neigh flush dev {far} nud permanent; add them again when the port is back"
        raise Refused(f"{far} has {len(near)} permanent neighbors, which a move would lose", hint)


def _room(host: Host, names: Sequence[str]) -> None:
    """Refused if a namespace or the addresses of the bench are taken, or IPv6 is off at an end."""
    for space in (ONE_HOST, ONE_WIRE):
        if (SPACES / space).exists():
            raise Refused(f"network namespace {space} already exists", f"ip netns del {space}")
    for row in json.loads(host.run(["ip", "-j", "address", "show"]).text or "[]"):
        for address in (a.get("local", "") for a in row.get("addr_info", [])):
            if row["ifname"] not in names and any(_within(address, net) for net in NETWORKS):
                hint = "the bench uses 192.0.2.0/24 and fd00:2::/64: remove that address"
                raise Refused(f"{row['ifname']} has {address}", hint)
    for dev in names[:2]:
        if _without_ipv6(dev):
            raise Refused(f"IPv6 is off on {dev}", f"sysctl -w net.ipv6.conf.{dev}.disable_ipv6=0")


def _without_ipv6(dev: str) -> bool:
    """Say whether an interface can have no IPv6 address."""
    try:
        return Path(IPV6.format(dev)).read_text().strip() != "0"
    except OSError:
        return True


def _within(address: str, network: ipaddress.IPv4Network | ipaddress.IPv6Network) -> bool:
    found = ipaddress.ip_address(address)
    return found.version == network.version and found in network
