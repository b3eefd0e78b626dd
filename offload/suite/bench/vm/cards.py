"""Cards that the real mlx5_core drives: cx6sim next to QEMU, with four ports, and the driver for them."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable
from pathlib import Path

from offload.card.profile import Profile
from offload.debian.cache import locked
from offload.debian.kernels import SERIES, Kernel
from offload.driver.build import build, lock_of, origin, place
from offload.driver.kinds import kind
from offload.driver.target import find
from offload.errors import ConfigError, RigError
from offload.host.base import Host
from offload.paths import BUILD, ROOT
from offload.suite.bench.cards.silicon import Silicon

PROGRAM = BUILD / "cx6sim"
KIND, PCI = "mlx5", "15b3:101d"
MODULE = "mlx5_core.ko"
PLACE = f"/run/lab/{MODULE}"  # in the guest
WHERE = f"drivers/net/ethernet/mellanox/mlx5/core/{MODULE}"
PORTS = ("cx0", "cx1", "cxw0", "cxw1")  # DUT and peer; cables join them to the two on the wire
DRIVER = "/sys/bus/pci/drivers/mlx5_core"
QUEUES = 2  # of a port, at least: with one, nobody could change their number
PAGE = ROOT / "docs/reference/card-model.md"  # what the cards' firmware does, and how that is known
CONTROL, LOG = "cards", "cards.log"  # in the folder of a lab


def check_profile(profile: Profile) -> None:
    """ConfigError for the profile of a card that these are not."""
    if profile.driver != "mlx5_core" or not any(ids.covers(PCI) for ids in profile.pci):
        raise ConfigError(
            f"cx6sim is a ConnectX-6 Dx ({PCI}), and cannot be tested as {profile.title()}",
            "the simulated card nicsim emulates every profile",
        )


def driver(kernel: Kernel, say: Callable[[str], None]) -> Path:
    """The driver with TLS for a kernel, as `ktls-offload driver build` makes it: built first if need be."""
    if kernel.series not in SERIES:
        raise ConfigError(
            "mlx5_core with TLS is built from Debian's source, and this kernel is your own",
            f"choose one of {', '.join(SERIES)}, or the simulated card nicsim",
        )
    what = kind(KIND)
    tree = place(what, kernel.release, None)
    with locked(lock_of(tree), say):  # somebody may be building it
        there = (tree / WHERE).is_file() and origin(tree) == kernel.version
    if not there:
        say(f"building mlx5_core with TLS for {kernel.release}: once, and it takes minutes")
        build(find(kernel.release), what, None, None, os.cpu_count() or 1, say)
    return tree / WHERE


def behaviors(text: str) -> tuple[int, int]:
    """How many behaviors of the firmware the page of the model lists, and how many of them are guesses."""
    found = [row for row in re.findall(r"^\| .+ \|$", text, re.M) if not row.endswith("| source |")]
    return len(found), sum("**guess**" in row for row in found)


def about(kernel: Kernel, own: str = "") -> dict[str, str]:
    """Say which parts of a lab with these cards are real, and which are not: lines for its reports.

    `own`: what they say of a driver that is not Debian's.
    """
    known, guesses = behaviors(PAGE.read_text("utf-8"))
    source = f"Debian's Linux {kernel.version}, unmodified"
    return {
        "driver under test": own or f"mlx5_core of {source}, built with MLX5_EN_TLS",
        "card": f"simulated by cx6sim; of {known} behaviors of its firmware {guesses} are guesses, and the"
        f" others follow the driver's source ({PAGE.relative_to(ROOT)})",
    }


def devices(folder: Path, memory: int) -> tuple[str, ...]:
    """QEMU's options: memory that cx6sim can map (`memory` in MiB), and each card behind a root port."""
    more = ["-machine", "memory-backend=mem"]
    more += ["-object", f"memory-backend-memfd,id=mem,size={memory}M,share=on"]
    for i in range(len(PORTS)):
        more += ["-device", f"pcie-root-port,id=rp{i},slot={i + 1},chassis={i + 1},addr={0x10 + i:x}.0"]
        socket = f'"socket":{{"type":"unix","path":"{_socket(folder, i)}"}}'
        more += ["-device", f'{{"driver":"vfio-user-pci","bus":"rp{i}","rombar":0,{socket}}}']
    return tuple(more)


def _socket(folder: Path, number: int) -> Path:
    return folder / f"card{number}"


def start(folder: Path, keep: bool) -> subprocess.Popen[str]:
    """Start the cards of a lab; they end with QEMU, or if it never comes. RigError if they do not start."""
    if not PROGRAM.is_file():
        raise RigError(f"{PROGRAM} is not built", "make build")
    guard = [] if keep else ["setpriv", "--pdeathsig", "KILL"]
    sockets = [str(_socket(folder, i)) for i in range(len(PORTS))]
    argv = [str(PROGRAM), "--control", str(folder / CONTROL), *sockets]
    with (folder / LOG).open("wb") as log:
        child = subprocess.Popen(
            [*guard, *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            start_new_session=True,
        )
    assert child.stdout
    with child.stdout:
        if child.stdout.readline() != "ready\n":
            child.wait()
            raise RigError(f"cx6sim does not start: {last_words(folder)}")
    return child


def last_words(folder: Path) -> str:
    """Return what cx6sim said last in a lab."""
    return (folder / LOG).read_text(errors="replace").strip()[-300:]


def dead(folder: Path) -> list[str]:
    """A line if the cards of a lab are there no more: from then on nothing says anything of the driver."""
    try:
        Silicon(folder / CONTROL).truth(0)
    except RigError as exc:
        return [" ".join(f"the simulated cards are gone ({exc}) {last_words(folder)}".split())]
    return []


def load(root: Host, cpus: int) -> list[str]:
    """Load the driver; `ip -batch` lines that give its ports their names. RigError if a port is missing.

    It makes a queue for each CPU (mlx5_irq_table_create, pci_irq.c). Then only `cpus` of them work: under
    emulation a second one costs as much as the first.
    """
    root.run(["insmod", PLACE], timeout=120)
    for number in range(cpus, QUEUES):
        root.run(["/busybox", "sh", "-c", f"echo 0 > /sys/devices/system/cpu/cpu{number}/online"])
    shown = root.run(["/busybox", "sh", "-c", f"for card in {DRIVER}/0*; do ls $card/net; done"]).text.split()
    if len(shown) != len(PORTS):
        raise RigError(f"mlx5_core made {len(shown)} ports of {len(PORTS)} cards: {' '.join(shown)}")
    return [f"link set {old} name {new}" for old, new in zip(shown, PORTS, strict=True)]
