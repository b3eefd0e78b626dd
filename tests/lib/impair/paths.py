"""Other paths for the DUT's packets than straight through its card: made for a test, gone after it."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from offload.cmd import wait_until
from offload.host.base import Bench, Host, Side
from tests.lib.impair.queue import queue_kept
from tests.lib.rig.rig import in_lab

OURS, THEIRS = "198.51.100.1", "198.51.100.2"  # RFC 5737: of no bench
OURS6, THEIRS6 = "2001:db8:7::1", "2001:db8:7::2"  # RFC 3849
VLAN = 7


@dataclass
class OtherPath:
    """A device of the DUT that leads to the peer without its card; `carries`: what goes in arrives."""

    bench: Bench
    dev: str
    carries: bool

    def take(self) -> None:
        """Move the route to the peer here; the DUT's address stays what it is."""
        self._ip("replace", "src", self.bench.dut.v4)

    def leave(self) -> None:
        """Move the route back to the card."""
        self._ip("del")

    def _ip(self, do: str, *more: str) -> None:
        to = f"{self.bench.peer.v4}/32"
        self.bench.dut.host.run(["ip", "route", do, to, "dev", self.dev, *more], check=do != "del")


@dataclass(frozen=True)
class Bond:
    """A bond of the DUT's port and another one; `other`: the peer's end of that one's cable."""

    bench: Bench
    other: str

    def fail_over(self) -> None:
        """Take the card's port down; the peer answers by the other cable."""
        self.bench.dut.host.run(["ip", "link", "set", self.bench.dut.dev, "down"])
        self.bench.peer.host.run(["ip", "route", "replace", f"{OURS}/32", "dev", self.other])


@contextmanager
def second_path(bench: Bench) -> Iterator[OtherPath]:
    """Make a second path to the peer: a second cable in a lab; on a real bench one that ends nowhere.

    No bridge in the cable: veth leaves the socket at the packet (skb_scrub_packet() since 4.19), and so the
    next device on the same machine would have it encrypted once more (docs/reference/lifecycle.md).
    """
    dut, inner, outer = bench.dut.host, "kway0", "kway1"
    with ExitStack() as undo:
        if in_lab(bench):
            made(undo, dut, inner, "type", "veth", "peer", "name", outer)
            mac = _link(dut, outer)["address"]
            dut.run(["ip", "link", "set", outer, "netns", bench.peer.host.name])
            bench.peer.host.run(["ip", "link", "set", outer, "up"])
        else:
            made(undo, dut, inner, "type", "dummy")
            mac = _link(bench.peer.host, bench.peer.dev)["address"]
        dut.run(["ip", "link", "set", inner, "up"])
        yield _path(undo, OtherPath(bench, inner, in_lab(bench)), mac)


@contextmanager
def path_on_top(bench: Bench) -> Iterator[OtherPath]:
    """Make a VLAN on both ends' ports: a path that leads through another device to the same card."""
    with vlan(bench), ExitStack() as undo:
        mac = _link(bench.peer.host, "kvlan")["address"]
        yield _path(undo, OtherPath(bench, "kvlan", True), mac)


def _path(undo: ExitStack, path: OtherPath, mac: str) -> OtherPath:
    """The path, with the peer's address known on it: no ARP of ours there, so it answers to the card."""
    peer = path.bench.peer.v4
    path.bench.dut.host.run(["ip", "neigh", "add", peer, "lladdr", mac, "dev", path.dev, "nud", "permanent"])
    undo.callback(path.leave)
    return path


@contextmanager
def vlan(bench: Bench) -> Iterator[None]:
    """Make a VLAN on both ends' ports, with the addresses OURS and THEIRS of both families."""
    with ExitStack() as undo:
        for side, v4, v6 in ((bench.dut, OURS, OURS6), (bench.peer, THEIRS, THEIRS6)):
            made(undo, side.host, "kvlan", "link", side.dev, "type", "vlan", "id", str(VLAN))
            addressed(side.host, "kvlan", v4)
            side.host.run(["ip", "address", "add", f"{v6}/64", "dev", "kvlan", "nodad"])
        yield


@contextmanager
def bridged(bench: Bench) -> Iterator[None]:
    """Put the DUT's port into a bridge that has the address OURS; the peer has THEIRS and its own."""
    dut, peer = bench.dut, bench.peer
    with ExitStack() as undo:
        made(undo, dut.host, "kbridge", "type", "bridge", "stp_state", "0", "forward_delay", "0")
        addressed(dut.host, "kbridge", OURS)
        peer.host.run(["ip", "address", "add", f"{THEIRS}/24", "dev", peer.dev])
        undo.callback(peer.host.run, ["ip", "address", "del", f"{THEIRS}/24", "dev", peer.dev])
        undo.callback(dut.host.run, ["ip", "link", "set", dut.dev, "nomaster"])
        dut.host.run(["ip", "link", "set", dut.dev, "master", "kbridge"])
        yield


@contextmanager
def bonded(bench: Bench, mode: str) -> Iterator[Bond]:
    """Bond the DUT's port with a second cable to the peer, who is at THEIRS then; a lab only.

    `mode`: balance-xor (layer3+4) offloads on one of its ports, active-backup does not (bond_sk_check()).
    """
    dut, peer = bench.dut, bench.peer
    with ExitStack() as undo:
        undo.enter_context(put_back(dut))
        policy = ("xmit_hash_policy", "layer3+4") if mode == "balance-xor" else ()
        made(undo, dut.host, "kbond", "type", "bond", "mode", mode, "miimon", "100", *policy)
        made(undo, dut.host, "kway0", "type", "veth", "peer", "name", "kway1")
        dut.host.run(["ip", "link", "set", "kway1", "netns", peer.host.name])
        mac = _link(peer.host, peer.dev)["address"]
        peer.host.run(["ip", "link", "set", "kway1", "address", mac, "up"])
        for dev in (dut.dev, "kway0"):
            dut.host.run(["ip", "link", "set", dev, "down"])
            undo.callback(dut.host.run, ["ip", "link", "set", dev, "nomaster"])
            dut.host.run(["ip", "link", "set", dev, "master", "kbond"])
            dut.host.run(["ip", "link", "set", dev, "up"])
        addressed(dut.host, "kbond", OURS)
        if mode == "active-backup":
            wait_until(lambda: _sends_by(dut), 60, f"the bond to send through {dut.dev}")
        dut.host.run(["ip", "neigh", "add", THEIRS, "lladdr", mac, "dev", "kbond", "nud", "permanent"])
        peer.host.run(["ip", "address", "add", f"{THEIRS}/24", "dev", peer.dev])
        undo.callback(peer.host.run, ["ip", "address", "del", f"{THEIRS}/24", "dev", peer.dev])
        ours = _link(dut.host, "kbond")["address"]
        for dev in (peer.dev, "kway1"):
            peer.host.run(["ip", "neigh", "replace", OURS, "lladdr", ours, "dev", dev, "nud", "permanent"])
        undo.callback(peer.host.run, ["ip", "neigh", "del", OURS, "dev", peer.dev])
        yield Bond(bench, "kway1")


def _sends_by(dut: Side) -> bool:
    """Make the card's port the active one; the kernel refuses that until the bond knows of its link."""
    words = ["ip", "link", "set", "kbond", "type", "bond", "active_slave", dut.dev]
    return dut.host.run(words, check=False).rc == 0


@contextmanager
def put_back(side: Side) -> Iterator[None]:
    """Put the port back up with the addresses that it has now."""
    rows = json.loads(side.host.run(["ip", "-j", "address", "show", "dev", side.dev]).text)
    known = [a for row in rows for a in row.get("addr_info", []) if a.get("scope") == "global"]
    try:
        yield
    finally:
        side.host.run(["ip", "link", "set", side.dev, "up"])
        for address in known:
            text = f"{address['local']}/{address['prefixlen']}"
            more = ["nodad"] if address["family"] == "inet6" else []
            side.host.run(["ip", "address", "replace", text, "dev", side.dev, *more])


def move_away_and_back(side: Side, pid: int) -> tuple[bool, str]:
    """Move the port to a namespace made for it, and back to that of process `pid`, with its addresses.

    Whether the kernel moved it, and in what words it refused.
    """
    name, host = f"ktls-{uuid.uuid4().hex[:8]}", side.host
    with queue_kept(side), put_back(side):
        host.run(["ip", "netns", "add", name])
        try:
            done = host.run(["ip", "link", "set", side.dev, "netns", name], check=False)
            if done.rc != 0:
                return False, done.stderr.decode("utf-8", "replace").strip()
            host.run(["ip", "-n", name, "link", "set", side.dev, "netns", str(pid)])
        finally:
            host.run(["ip", "netns", "del", name])
    return True, ""


def _link(host: Host, dev: str) -> dict[str, str]:
    found: dict[str, str] = json.loads(host.run(["ip", "-j", "link", "show", "dev", dev]).text)[0]
    return found


def made(undo: ExitStack, host: Host, dev: str, *words: str) -> None:
    """Add a link, and note that it must go."""
    first = words[:2] if words[0] == "link" else ()
    host.run(["ip", "link", "add", *first, "name", dev, *words[len(first) :]])
    undo.callback(host.run, ["ip", "link", "del", dev])


def addressed(host: Host, dev: str, address: str) -> None:
    """Give a device an address and take it up."""
    host.run(["ip", "address", "add", f"{address}/24", "dev", dev])
    host.run(["ip", "link", "set", dev, "up"])
