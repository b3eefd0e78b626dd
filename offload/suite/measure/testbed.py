"""Where is measured: the DUT, the other end, what is known of the card, and what the figures depend on."""

from __future__ import annotations

import ipaddress
import json
import platform
import re
import uuid
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Any, Protocol

from offload.card.counters import Snapshot, snapshot, tls_stat
from offload.card.nic import Match, Nic, look, match
from offload.card.profile import Profile, load_all
from offload.errors import ConfigError, OffloadError, RigError
from offload.host.base import Host, Side
from offload.host.local import LocalHost
from offload.host.tools import tool
from offload.suite.measure.arms import SIDES
from offload.suite.measure.cpu.cycles import Counter, counting
from offload.suite.measure.cpu.memory import Memory
from offload.suite.measure.cpu.memory import counting as watching
from offload.suite.measure.cpu.meter import Meter
from offload.suite.measure.switch import Switches, keeping
from offload.suite.measure.window import Ticks
from offload.suite.traffic import certs, drive, nginx, wrk
from offload.suite.traffic.certs import Placed
from offload.switch.journal import Journal
from offload.switch.plan import plan_on

TOOLS = {
    "openssl": (("openssl", "version"), r"OpenSSL (\S+)"),
    "stunnel": (("stunnel4", "-version"), r"stunnel (\S+)"),
    "iperf3": (("iperf3", "--version"), r"iperf (\S+)"),
}


class End(Protocol):
    """One side with what moves payload there."""

    side: Side
    pump: drive.Pump
    at: Placed


@dataclass
class Place:
    """An End of our own."""

    side: Side
    pump: drive.Pump
    at: Placed


@dataclass
class Testbed:
    """A bench to measure on. `peer` None: only its `address` is known, and an iperf3-tls server runs there.

    `shared`: both ends are one host, whose cores count both. `emulated`: its CPUs are (a lab's VM).
    """

    dut: Side
    peer: Side | None
    address: str
    profile: Profile | None
    simulated: bool
    switches: Switches
    undo: ExitStack
    shared: bool = False
    emulated: bool = False
    about: dict[str, Any] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    ends: dict[str, End] = field(default_factory=dict)
    port: int = 6000
    counter: Counter | None = None
    memory: Memory | None = None

    def __post_init__(self) -> None:
        self.meter = Ticks(self.dut.host) if self.emulated else Meter(self.dut.host)

    def count_cycles(self) -> None:
        """Count the DUT's cycles and memory traffic, where it can; else `about` says why not."""
        counter = self.undo.enter_context(counting(self.dut.host))
        self.about["cycles"] = counter.absent or "counted"
        self.counter = None if counter.absent else counter
        memory = self.undo.enter_context(watching(self.dut.host))
        self.about["memory traffic"] = memory.say()
        self.memory = None if memory.absent else memory

    def end(self, which: str) -> End:
        """`dut` or `peer`, with a pump that runs and certificates in place; made when first asked for."""
        if which not in self.ends:
            side = self.dut if which == "dut" else self.peer
            if side is None:
                raise RigError("cannot log in to the peer's host: only its address is known")
            folder = f"/run/ktls-offload-{uuid.uuid4().hex[:8]}-{which}"
            self.undo.callback(side.host.run, ["rm", "-rf", folder], check=False)
            at = self.undo.enter_context(certs.placed(self.certs(), side.host, folder))
            self.ends[which] = Place(side, self.undo.enter_context(drive.running(side.host, folder)), at)
        return self.ends[which]

    def certs(self) -> certs.Certs:
        """One CA and one certificate for both ends."""
        if not hasattr(self, "_certs"):
            self._certs = certs.make([self.dut.v4, self.address])
        return self._certs

    def next_port(self) -> int:
        """A TCP port that nothing of this run has used."""
        self.port += 1
        return self.port

    def counters(self) -> Snapshot:
        """The DUT's counters now."""
        return snapshot(self.dut.host, self.dut.dev, self.profile)

    def carried(self) -> dict[str, int]:
        """Bytes that the DUT's interface has sent and received so far."""
        done = tool(self.dut.host, ["ip", "-j", "-s", "link", "show", "dev", self.dut.dev])
        try:
            row = json.loads(done.checked().text)[0]["stats64"]
            return {side: int(row[side]["bytes"]) for side in ("tx", "rx")}
        except (ValueError, TypeError, KeyError, IndexError):
            raise RigError(f"ip -s link: no byte counters of {self.dut.dev}") from None

    def without_ktls(self) -> str:
        """Why this kernel has no TLS for sockets, or ''; the module is loaded by the first socket."""
        host = self.dut.host
        if tls_stat(host)[0] is not None or host.run(["modprobe", "--dry-run", "tls"], check=False).rc == 0:
            return ""
        return "this kernel has no kernel TLS (module tls)"

    def unswitchable(self, direction: str) -> str:
        """Why the offload of a direction cannot be switched on here, or ''."""
        host, nic = self.dut.host, look(self.dut.host, self.dut.dev)
        found = Match(self.profile, self.simulated)
        try:
            actions = plan_on(host, nic, found, SIDES[direction])
        except OffloadError as exc:
            return " ".join(str(exc).split())
        modules = [action.what for action in actions if action.kind == "module"]
        return f"module {', '.join(modules)} is not loaded: ktls-offload enable {nic.dev}" if modules else ""

    def add(self, warning: str) -> None:
        """Add a warning to the document, once."""
        if warning and warning not in self.warnings:
            self.warnings.append(warning)


def local(dev: str, peer: str, undo: ExitStack) -> Testbed:
    """This host's interface as the DUT. `peer`: an address, or netns:NAME on this host.

    NoDevice, ConfigError, NoPermission in words for a person.
    """
    host, journal = LocalHost(), Journal()
    nic = look(host, dev)
    found = match(nic, load_all())
    own = _address(host, nic.dev)
    if not peer:
        raise ConfigError(f"the peer of {nic.dev} is unknown", "--peer ADDRESS or --peer netns:NAME")
    side, address = _peer(peer, own)
    dut = Side(host, nic.dev, str(own.ip), "")
    switches = undo.enter_context(keeping(host, nic.dev, journal))
    testbed = Testbed(
        dut, side, address, found.profile, found.simulated, switches, undo, shared=side is not None
    )
    testbed.about = about(host, nic, {"peer": peer})
    _weaknesses(testbed, nic)
    return testbed


def _address(host: Host, dev: str) -> ipaddress.IPv4Interface:
    """The first IPv4 address of an interface. ConfigError if it has none."""
    for found, name in _addresses(host):
        if name == dev:
            return found
    raise ConfigError(f"{dev} has no IPv4 address", f"ip address add ADDRESS/LENGTH dev {dev}")


def _addresses(host: Host) -> list[tuple[ipaddress.IPv4Interface, str]]:
    """Every IPv4 address of a host with its interface."""
    rows = json.loads(tool(host, ["ip", "-j", "-4", "address", "show"]).checked().text)
    return [
        (ipaddress.IPv4Interface(f"{a['local']}/{a['prefixlen']}"), str(row.get("ifname")))
        for row in rows
        for a in row.get("addr_info", [])
    ]


def _peer(text: str, own: ipaddress.IPv4Interface) -> tuple[Side | None, str]:
    """The far end: a host that we reach, or an address only."""
    kind, colon, name = text.partition(":")
    if kind == "netns" and colon:
        if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", name):
            raise ConfigError(f"--peer {text!r}: {name!r} is not the name of a network namespace")
        host = LocalHost(name)
        if host.run(["true"], check=False).rc:
            raise ConfigError(f"--peer {text!r}: there is no network namespace {name!r}", "ip netns list")
        for found, dev in _addresses(host):
            if found.ip in own.network and found.ip != own.ip:
                return Side(host, dev, str(found.ip), ""), str(found.ip)
        raise ConfigError(
            f"--peer {text!r}: it has no address in {own.network}, the network of the DUT's {own.ip}"
        )
    try:
        return None, str(ipaddress.IPv4Address(text))
    except ValueError:
        raise ConfigError(f"--peer {text!r}", "an IPv4 address, or netns:NAME") from None


def about(host: Host, nic: Nic, more: Mapping[str, str]) -> dict[str, Any]:
    """Return what the figures depend on: kernel, card, interrupts, programs."""
    kernel = host.read("/proc/sys/kernel/osrelease").decode("ascii", "replace").strip()
    card = " ".join(word for word in (nic.driver, nic.version, nic.firmware, nic.pci) if word)
    tools = {name: _version(host, *how) for name, how in TOOLS.items()}
    tools |= {"nginx": nginx.version(host), "wrk": wrk.version(host), "python": platform.python_version()}
    return {"kernel": kernel, "nic": card, "irqs": interrupts(host, nic), **more, "tools": tools}


def _version(host: Host, argv: tuple[str, ...], pattern: str) -> str:
    """A program's version, or none."""
    done = host.run(list(argv), check=False, timeout=20)
    found = re.search(pattern, (done.stdout + done.stderr).decode("utf-8", "replace"))
    return found[1] if found else "none"


def interrupts(host: Host, nic: Nic) -> str:
    """How many interrupts the card has and on which CPUs, as in `8 on CPUs 0-3, 4-7`."""
    rows = host.read("/proc/interrupts").decode("latin-1").splitlines()
    mine = [row.split(":")[0].strip() for row in rows if _names(row, nic)]
    if not mine:
        return "none that name the card"
    script = 'for n; do cat "/proc/irq/$n/smp_affinity_list"; done'
    lists = host.run(["/bin/sh", "-c", script, "sh", *mine], check=False).text.split()
    return f"{len(mine)} on CPUs {', '.join(sorted(set(lists))[:8])}"


def _names(row: str, nic: Nic) -> bool:
    """Whether a line of /proc/interrupts is this card's."""
    return any(word and word in row.split(":", 1)[-1] for word in (nic.dev, nic.bus))


def _weaknesses(testbed: Testbed, nic: Nic) -> None:
    """Warn of what makes figures less than they seem."""
    cores = len(testbed.meter.snapshot().cpus)
    testbed.about["cores"] = str(cores)
    if testbed.shared:
        testbed.add("both ends are on this host: active cores include sender and receiver")
    if cores < 2 + 2 * testbed.shared:
        testbed.add(
            f"{cores} core{'s' * (cores > 1)}: too few to load the link; cores per 100 Gbit/s stay valid"
        )
    if testbed.dut.host.run(["pidof", "irqbalance"], check=False).rc == 0:
        testbed.add("irqbalance runs: it may move the card's interrupts between turns")
    if not nic.up:
        raise ConfigError(f"{nic.dev} is down", f"ip link set {nic.dev} up")


def link_gbits(host: Host, dev: str) -> float:
    """The link's speed in Gbit/s; 0 where the kernel does not say."""
    said = host.run(["cat", f"/sys/class/net/{dev}/speed"], check=False).text.strip()
    return int(said) / 1000 if re.fullmatch(r"[0-9]{1,7}", said) else 0.0
