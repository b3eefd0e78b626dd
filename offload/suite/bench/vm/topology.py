"""DUT, wire and peer: three network namespaces of one VM, and the cable between them."""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from offload.errors import CommandFailed, ConfigError, RigError
from offload.host.base import Host
from offload.host.vm import Agent, VmHost
from offload.suite.bench.vm import cards
from offload.suite.bench.vm.initramfs import SHARES

KINDS = ("nicsim", "veth", cards.KIND)
MODULE, PEER_MODULE = "/run/lab/nicsim.ko", "/run/lab/nicsim_peer.ko"
NAMESPACES = ("dut", "wire", "peer")
PATIENT = ("target", "10s", "interval", "20s")


@dataclass(frozen=True)
class Ends:
    """Interface names: DUT, peer, and the two ports on the wire."""

    dut: str
    peer: str
    wire: tuple[str, str]


ENDS = {
    "nicsim": Ends("nicsim0", "nicsim1", ("nswire0", "nswire1")),
    "veth": Ends("veth0", "veth1", ("vw0", "vw1")),
    cards.KIND: Ends(cards.PORTS[0], cards.PORTS[1], (cards.PORTS[2], cards.PORTS[3])),
}
ADDRESSES = {"dut": ("192.0.2.1", "fd00:2::1"), "peer": ("192.0.2.2", "fd00:2::2")}
# modules that the kernel would otherwise load through modprobe over 9p, a second each under TCG
MODULES = {
    "nicsim": ("bridge", "sch_netem", "tls", "aesni_intel", "gcm", "ctr", "ccm"),
    "veth": ("bridge", "sch_netem", "veth"),
    # without ghash the kernel's TLS falls back to software, and says nothing
    cards.KIND: (
        "mlxfw",
        "psample",
        "pci_hyperv_intf",
        "bridge",
        "sch_netem",
        "tls",
        "aesni_intel",
        "gcm",
        "ctr",
        "ccm",
        "ghash_generic",
    ),
}


def check_kind(kind: str) -> None:
    """ConfigError for a bench that does not exist."""
    if kind not in KINDS:
        raise ConfigError(f"no bench of kind {kind!r}", f"choose one of {' and '.join(KINDS)}")


def check_personality(personality: str) -> str:
    """The names of one card or two ("dut,peer"), profiles or files of one: one name is for both."""
    names = personality.split(",")
    if not 1 <= len(names) <= 2 or not all(re.fullmatch(r"[A-Za-z0-9-]+|.+\.yaml", n) for n in names):
        raise ConfigError(f"personality {personality!r}", "one name, or two as DUT,PEER")
    return ",".join((names * 2)[:2])


def links(kind: str) -> list[str]:
    """`ip -batch` lines that make the namespaces, put the ports into them and plug the cable in."""
    ends = ENDS[kind]
    lines = ["link set lo up", *(f"netns add {name}" for name in NAMESPACES)]
    if kind == "veth":
        lines += [
            f"link add {a} type veth peer name {b}"
            for a, b in zip((ends.dut, ends.peer), ends.wire, strict=True)
        ]
    places = ((ends.dut, "dut"), (ends.peer, "peer"), (ends.wire[0], "wire"), (ends.wire[1], "wire"))
    return lines + [f"link set {dev} netns {name}" for dev, name in places]


def inside(kind: str, name: str) -> list[str]:
    """`ip -batch` lines to run inside a namespace."""
    ends, lines = ENDS[kind], ["link set lo up"]
    if name == "wire":
        # no spanning tree and no forward delay: the cable carries from the first frame on
        lines += ["link add br0 type bridge stp_state 0 forward_delay 0 mcast_snooping 0"]
        lines += [f"link set {port} master br0 up" for port in ends.wire]
        return [*lines, "link set br0 up"]
    dev = ends.dut if name == "dut" else ends.peer
    v4, v6 = ADDRESSES[name]
    # nodad: without it the address is tentative for seconds and cannot be bound
    lines += [f"address add {v4}/24 dev {dev}", f"address add {v6}/64 dev {dev} nodad"]
    return [*lines, f"link set {dev} up"]


def batch(lines: list[str]) -> bytes:
    """Input for `ip -batch -`."""
    return ("\n".join(lines) + "\n").encode()


def build_bench(root: VmHost, kind: str, pair: str, cpus: int) -> None:
    """Make namespaces, ports, cable and addresses; then `cpus` of the CPUs work.

    RigError or CommandFailed in plain words if it fails.
    """
    names = []
    if kind == "nicsim":
        load_module(root, pair)
    elif kind == cards.KIND:
        names = cards.load(root, cpus)
    root.run(["ip", "-batch", "-"], input=batch([*names, *links(kind)]))
    for name in NAMESPACES:
        root.run(["ip", "-n", name, "-batch", "-"], input=batch(inside(kind, name)))


def enter_root(agent: Agent, root: VmHost) -> None:
    """Mount the shares, make them the guest's root, and let the agent take over the namespaces."""
    said = root.run(["/busybox", "sh", SHARES], check=False)
    if said.rc != 0 or said.text.strip():
        raise RigError(f"the lab's shares cannot be mounted: {said.text.strip() or said.stderr.decode()}")
    agent.call("root", path="/new", now=time.time())
    agent.call("namespaces", names=list(NAMESPACES))


def settle(kind: str, dut: Host, wire: Host, peer: Host) -> None:
    """Commands for the ports, once programs run.

    Captures see frames as they were on the cable. The queues keep what waits: CoDel drops packets after 5 ms,
    which is little under emulation, and the card would get the blame.
    """
    ends = ENDS[kind]
    for port in ends.wire if kind == cards.KIND else ():
        wire.run(["ethtool", "-K", port, "gro", "off"])
    ports = [(dut, ends.dut), (peer, ends.peer), *((wire, port) for port in ends.wire)]
    for host, port in ports if kind == "nicsim" else ():
        host.run(["tc", "qdisc", "replace", "dev", port, "root", "fq_codel", *PATIENT])


def load_module(root: Host, personality: str) -> None:
    """Load the simulated NIC, told by card.py; RigError with the kernel's words if it does not take it.

    Where the DUT's card is a patched one, the peer's is of a module of its own.
    """
    both = [["insmod", MODULE, f"personality={personality}"]]
    if root.run(["/busybox", "test", "-e", PEER_MODULE], check=False).rc == 0:
        both = [[*both[0], "adapter=0"], ["insmod", PEER_MODULE, *both[0][2:], "adapter=1"]]
    try:
        for one in both:
            root.run(one, timeout=60)
    except CommandFailed as exc:
        raise RigError(
            f"the kernel does not accept nicsim: {exc.stderr.decode('utf-8', 'replace').strip()}"
        ) from exc
