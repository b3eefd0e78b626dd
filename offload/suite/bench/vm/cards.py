"""Cards that the real mlx5_core drives: cx6sim beside QEMU, with four ports, and the driver for them."""

from __future__ import annotations

import subprocess
from pathlib import Path

from offload.debian.cache import cache_root
from offload.debian.kernels import Kernel
from offload.errors import ConfigError, RigError
from offload.host.base import Host
from offload.paths import BUILD

PROGRAM = BUILD / "cx6sim"
KIND = "mlx5"
MODULE = "mlx5_core.ko"
PLACE = f"/run/lab/{MODULE}"  # in the guest
WHERE = f"drivers/net/ethernet/mellanox/mlx5/core/{MODULE}"
PORTS = ("cx0", "cx1", "cxw0", "cxw1")  # DUT and peer; cables join them to the two on the wire
DRIVER = "/sys/bus/pci/drivers/mlx5_core"


def driver(kernel: Kernel) -> Path:
    """The driver with TLS that `ktls-offload driver build` made; ConfigError if there is none."""
    path = cache_root() / "drivers" / f"mlx5-{kernel.release}" / WHERE
    if not path.is_file():
        build = f"ktls-offload driver build mlx5 --kernel {kernel.release}"
        raise ConfigError(f"no mlx5_core with TLS for {kernel.release} here", f"{build} makes it, in minutes")
    return path


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
    argv = [str(PROGRAM), "--control", str(folder / "cards"), *sockets]
    with (folder / "cards.log").open("wb") as log:
        child = subprocess.Popen(
            [*guard, *argv], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
            start_new_session=True,
        )  # fmt: skip
    assert child.stdout
    with child.stdout:
        if child.stdout.readline() != "ready\n":
            child.wait()
            said = (folder / "cards.log").read_text(errors="replace")[-300:]
            raise RigError(f"cx6sim does not start: {said}")
    return child


def load(root: Host) -> list[str]:
    """Load the driver; `ip -batch` lines that give its ports their names. RigError if a port is missing."""
    root.run(["insmod", PLACE], timeout=120)
    shown = root.run(["/busybox", "sh", "-c", f"for card in {DRIVER}/0*; do ls $card/net; done"]).text.split()
    if len(shown) != len(PORTS):
        raise RigError(f"mlx5_core made {len(shown)} ports of {len(PORTS)} cards: {' '.join(shown)}")
    return [f"link set {old} name {new}" for old, new in zip(shown, PORTS, strict=True)]
