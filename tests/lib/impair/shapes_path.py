"""The path between DUT and peer for the length of a test: its MTU and what TCP offers; put back as found."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from ipaddress import IPv6Address
from weakref import WeakKeyDictionary

from offload.cmd import wait_until
from offload.errors import ConfigError, NoDevice, Refused
from offload.host.base import Bench, Host
from offload.host.tools import tool
from offload.suite.traffic.learned import forgotten
from tests.lib.impair.link import reachable

IF_INET6 = "/proc/net/if_inet6"  # each line: address, index, prefix length, scope, flags, name (all in hex)
GLOBAL = "00"  # IPV6_ADDR_ANY, as if6_seq_show prints it (net/ipv6/addrconf.c)
LIMITS: WeakKeyDictionary[Host, dict[str, tuple[int, int]]] = WeakKeyDictionary()
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
    done = tool(host, ["cat", f"/sys/class/net/{dev}/mtu"])
    if done.rc != 0:
        raise NoDevice(f"{host.name} has no interface {dev!r}", "every port between DUT and peer is needed")
    return Port(host, dev, int(done.text), *limits(host, dev), addresses(host, dev))


def limits(host: Host, dev: str) -> tuple[int, int]:
    """The least and the greatest MTU that a driver takes: asked once, for they stay."""
    known = LIMITS.setdefault(host, {})
    if dev not in known:
        row = json.loads(tool(host, ["ip", "-j", "-d", "link", "show", "dev", dev]).checked().text)[0]
        known[dev] = row.get("min_mtu", 68), row.get("max_mtu") or 65535
    return known[dev]


def addresses(host: Host, dev: str) -> tuple[str, ...]:
    """The global IPv6 addresses of a port, with prefix length."""
    rows = [line.split() for line in host.run(["cat", IF_INET6], check=False).text.splitlines()]
    own = [(IPv6Address(int(row[0], 16)), int(row[2], 16)) for row in rows if row[3::2] == [GLOBAL, dev]]
    return tuple(f"{address}/{length}" for address, length in own)


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


@contextmanager
def port_mtu(port: Port, mtu: int) -> Iterator[None]:
    """Give one port an MTU; the one found comes back.

    Below 1280 the kernel takes IPv6 from it (addrconf_notify), whose addresses and routes come back, too.
    """
    with ExitStack() as undo:
        if mtu < IPV6 and port.addresses:
            undo.enter_context(reachable(port.host, port.dev))
        undo.callback(give, port, port.mtu)
        give(port, mtu)
        yield


def nothing_to_forget() -> None:
    """A larger MTU teaches the kernels nothing."""


@contextmanager
def path_mtu(bench: Bench, mtu: int) -> Iterator[Callable[[], None]]:
    """Give every port between DUT and peer this MTU; what was found comes back. Errors as `path_of`.

    An old connection may send a packet of its former size first: what that teaches the kernels is forgotten
    at the end of the block, and when the block asks for it.
    """
    ports = path_of(bench, mtu)
    with ExitStack() as undo:
        smaller = mtu < min(port.mtu for port in ports)
        forget = undo.enter_context(forgotten(bench.dut, bench.peer)) if smaller else nothing_to_forget
        for port in ports:
            undo.enter_context(port_mtu(port, mtu))
        yield forget


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
