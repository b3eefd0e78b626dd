"""sshd in each namespace of a lab, on a management port of its own: the lab as a rack of three hosts.

Each port is a virtio-net card on QEMU's user network (restrict=on: nothing leaves it), forwarded from a TCP
port of this machine's loopback. The keys are made for this lab, and lie in its folder, which is its owner's.
"""

from __future__ import annotations

import shutil
import socket
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from offload.cmd import run, wait_until
from offload.errors import CommandFailed, RigError
from offload.host.base import Bench, Host
from offload.suite.bench.vm.topology import NAMESPACES

PROGRAM = "/usr/sbin/sshd"
MODULES = ("virtio_net",)
DEVICE = "mgmt0"
SLOW = 300.0  # seconds: an emulated guest on a busy machine
CONFIG = """\
Port 22
HostKey /run/lab/ssh-{name}/host
AuthorizedKeysFile /run/lab/ssh-{name}/user.pub
PidFile none
UsePAM no
UseDNS no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
# bash reads ~/.bashrc below sshd (shell.c, run_startup_files), which may be anyone's; not as an inner shell
SetEnv SHLVL=1
"""
LAB = """\
  {name}:
    resources:
      NetworkService: {{address: 127.0.0.1, username: root, port: {port}}}
      OffloadHost: {{hostkeys: ["{key}"]}}
      {more}
    drivers:
      - SSHDriver: {{keyfile: user}}
"""


def free_ports() -> tuple[int, ...]:
    """A TCP port of the loopback for each namespace. RigError if there is no sshd to listen behind them."""
    if not Path(PROGRAM).exists():
        raise RigError("sshd is not installed", "apt install openssh-server")
    socks = [socket.create_server(("127.0.0.1", 0)) for _ in NAMESPACES]
    try:
        return tuple(int(sock.getsockname()[1]) for sock in socks)
    finally:
        for sock in socks:
            sock.close()


def mac(number: int) -> str:
    """The address by which a management card is known in the guest: one that is administered locally."""
    return f"52:54:00:6b:74:{number:02x}"


def devices(ports: Sequence[int]) -> list[str]:
    """QEMU's options for the management cards."""
    argv = []
    for number, port in enumerate(ports):
        net = f"user,id=mgmt{number},restrict=on,hostfwd=tcp:127.0.0.1:{port}-:22"
        argv += ["-netdev", net, "-device", f"virtio-net-pci,netdev=mgmt{number},mac={mac(number)},romfile="]
    return argv


def serve(root: Host, bench: Bench, ports: Sequence[int], folder: Path, card: str) -> Path:
    """Move the cards into their namespaces, start sshd there, and write the lab file: its path.

    `card`: the profile of the DUT's.
    """
    place = folder / "ssh"
    place.mkdir(mode=0o700)
    _key(place / "user")
    root.run(["mkdir", "-p", "/run/sshd"])  # Debian's privilege separation folder
    rows = root.run(["sh", "-c", "cd /sys/class/net && grep -H . */address"]).text.splitlines()
    names = {address: path.split("/")[0] for path, _, address in (row.partition(":") for row in rows)}
    hosts = {"dut": bench.dut.host, "wire": bench.wire, "peer": bench.peer.host}
    text = ["targets:\n"]
    for number, (name, port) in enumerate(zip(NAMESPACES, ports, strict=True)):
        host = hosts[name]
        assert host is not None
        lines = f"link set {names[mac(number)]} netns {name} name {DEVICE}\n"
        root.run(["ip", "-batch", "-"], input=lines.encode())
        host.run(["ip", "address", "add", "10.0.2.15/24", "dev", DEVICE])
        host.run(["ip", "link", "set", DEVICE, "up"])
        text.append(_start(host, name, port, place, _nic(name, bench, card)))
    file = place / "lab.yaml"
    file.write_text("".join(text))
    return file


def _key(path: Path) -> str:
    """Make a key pair; the public one."""
    if not shutil.which("ssh-keygen"):
        raise RigError("ssh-keygen is not installed", "apt install openssh-client")
    argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(path)]
    rc, out, err, _ = run(argv)
    if rc:
        raise CommandFailed(argv, rc, out, err)
    return path.with_name(f"{path.name}.pub").read_text().strip()


def _start(host: Host, name: str, port: int, place: Path, nic: str) -> str:
    """Run sshd in one namespace; its target in the lab file."""
    key, there = _key(place / f"host-{name}"), f"/run/lab/ssh-{name}"
    host.write(f"{there}/host", (place / f"host-{name}").read_bytes(), 0o600)
    (place / f"host-{name}").unlink()
    host.write(f"{there}/user.pub", (place / "user.pub").read_bytes(), 0o600)
    host.write(f"{there}/config", CONFIG.format(name=name).encode(), 0o600)
    # by a shell: as a child of process 1 sshd takes itself for a daemon already (its daemonized()), and stays
    host.run(["sh", "-c", f"{PROGRAM} -f {there}/config; exit $?"], timeout=SLOW)
    wait_until(partial(_listens, host), SLOW, f"sshd in {name}")
    return LAB.format(name=name, port=port, key=key, more=nic)


def _nic(name: str, bench: Bench, card: str) -> str:
    """The resource of a role."""
    if name == "wire":
        return f"OffloadWire: {{ports: [{', '.join(bench.wire_ports)}]}}"
    side = bench.dut if name == "dut" else bench.peer
    profile = f"profile: {card}, " if name == "dut" else ""
    return f'OffloadNic: {{ifname: {side.dev}, {profile}v4: {side.v4}, v6: "{side.v6}"}}'


def _listens(host: Host) -> bool:
    """Say whether somebody listens on port 22: asked of the kernel, a greeting costs the guest a process."""
    rows = [host.read(f"/proc/net/{name}").decode().splitlines()[1:] for name in ("tcp", "tcp6")]
    return any(row.split()[1].endswith(":0016") and row.split()[3] == "0A" for row in sum(rows, []))
