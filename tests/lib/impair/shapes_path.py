"""The path between DUT and peer for the length of a test: its MTU and what TCP offers; put back as found."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from offload.cmd import wait_until
from offload.errors import ConfigError, NoDevice, Refused
from offload.host.base import Bench, Host
from offload.host.tools import tool

IPV6 = 1280  # bytes: an MTU below that ends IPv6 (RFC 8200 section 5)


@dataclass(frozen=True)
class Port:
    """A port of the path as it was found: MTU, its limits, and IPv6 addresses, which a small MTU takes."""

    host: Host
    dev: str
    mtu: int
    least: int
    most: int
    addresses: tuple[str, ...]


def port_of(host: Host, dev: str) -> Port:
    """Look at a port. NoDevice if it is not there."""
    done = tool(host, ["ip", "-j", "-d", "address", "show", "dev", dev])
    if done.rc != 0:
        raise NoDevice(f"{host.name} has no interface {dev!r}", "every port between DUT and peer is needed")
    row = json.loads(done.text)[0]
    own = [a for a in row["addr_info"] if a["family"] == "inet6" and a["scope"] == "global"]
    addresses = tuple(f"{a['local']}/{a['prefixlen']}" for a in own)
    return Port(host, dev, row["mtu"], row.get("min_mtu", 68), row.get("max_mtu") or 65535, addresses)


def path_of(bench: Bench, mtu: int) -> list[Port]:
    """Look at every port between DUT and peer; an error in one sentence if one cannot have this MTU.

    Refused where nobody can stand on the wire: what is between the ends might be smaller. NoDevice for a port
    that is missing, ConfigError for an MTU outside a port's limits.
    """
    if bench.wire is None:
        raise Refused("this bench's wire has no capture point", "its MTU is not ours to choose")
    ends = [(bench.wire, port) for port in bench.wire_ports]
    ends += [(side.host, side.dev) for side in (bench.dut, bench.peer)]
    ports = [port_of(*end) for end in ends]
    for port in ports:
        if not port.least <= mtu <= port.most:
            what = "below the minimum" if mtu < port.least else "above the maximum"
            limits = f"{port.least} to {port.most}"
            raise ConfigError(
                f"MTU {mtu} is {what} of {port.dev} on {port.host.name}", f"{limits} are possible"
            )
    return ports


def give(port: Port, mtu: int) -> None:
    """Set the MTU of a port, and wait until it carries again: some cards go down for it."""
    port.host.run(["ip", "link", "set", port.dev, "mtu", str(mtu)])
    carrier = ["cat", f"/sys/class/net/{port.dev}/carrier"]
    wait_until(lambda: port.host.run(carrier).text == "1\n", 60, f"{port.dev} to carry frames again")


def put_back(port: Port) -> None:
    """Make a port what it was. Below 1280 the kernel took its IPv6 addresses (addrconf_notify)."""
    had = int(port.host.run(["cat", f"/sys/class/net/{port.dev}/mtu"]).text)
    give(port, port.mtu)
    if had >= IPV6 or not port.addresses:
        return
    there = port_of(port.host, port.dev).addresses
    for address in port.addresses:
        if address not in there:
            port.host.run(["ip", "-6", "address", "add", address, "dev", port.dev, "nodad"])


@contextmanager
def path_mtu(bench: Bench, mtu: int) -> Iterator[None]:
    """Give every port between DUT and peer this MTU; what was found comes back. Errors as `path_of`."""
    with ExitStack() as undo:
        for port in path_of(bench, mtu):
            undo.callback(put_back, port)
            give(port, mtu)
        yield


@contextmanager
def tcp_settings(bench: Bench, **wanted: int) -> Iterator[None]:
    """Give net.ipv4.tcp_* (sack, ecn, min_tso_segs, ...) of both ends these values; those found come back.

    ConfigError for one that the kernel does not have.
    """
    names = [f"net.ipv4.tcp_{name}" for name in wanted]
    hosts = [side.host for side in (bench.dut, bench.peer)]
    found = [tool(host, ["sysctl", "-n", *names]) for host in hosts]
    for done in found:
        if done.rc != 0 or len(done.text.split()) != len(names):
            raise ConfigError(f"no such settings: {' '.join(names)}", "sack, timestamps, ecn, min_tso_segs")
    with ExitStack() as undo:
        for host, done in zip(hosts, found, strict=True):
            pairs = zip(names, done.text.split(), strict=True)
            undo.callback(host.run, ["sysctl", "-qw", *(f"{name}={value}" for name, value in pairs)])
            values = zip(names, wanted.values(), strict=True)
            host.run(["sysctl", "-qw", *(f"{name}={value}" for name, value in values)])
        yield
