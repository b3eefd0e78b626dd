"""A real sshd with keys of its own: on an address of the loopback here, or inside a host of a bench."""

from __future__ import annotations

import errno
import os
import secrets
import shutil
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from offload.cmd import run, wait_until
from offload.host.base import Process
from offload.host.local import LocalHost
from offload.host.ssh import Login

PROGRAM = "/usr/sbin/sshd"  # sshd wants to be called by its whole path: it runs itself again
PRIVSEP = Path("/run/sshd")  # Debian's privilege separation folder; systemd makes it, a test has no systemd
CONFIG = """\
Port {port}
ListenAddress {address}
HostKey {folder}/host
AuthorizedKeysFile {folder}/user.pub
PidFile none
UsePAM no
StrictModes no
PasswordAuthentication no
KbdInteractiveAuthentication no
PermitRootLogin prohibit-password
# bash reads ~/.bashrc below sshd (shell.c, run_startup_files), which may be anyone's; not as an inner shell
SetEnv SHLVL=1
"""


def missing() -> str:
    """Return what a test with sshd lacks here; empty if nothing."""
    if os.geteuid() != 0:
        return "needs root"
    lacking = [name for name in ("ssh", "ssh-keygen", "setpriv") if not shutil.which(name)]
    return (
        f"needs {', '.join(lacking)}" if lacking else "" if Path(PROGRAM).exists() else "needs openssh-server"
    )


@dataclass
class Server:
    """An sshd that runs: how to log in, and the process, to be ended by a test that wants it gone."""

    login: Login
    process: Process


def keys(folder: Path, name: str) -> str:
    """Make a key pair; return the public one, without its comment."""
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "", "-f", str(folder / name)])
    return (folder / f"{name}.pub").read_text().strip()


def free_port(address: str = "127.0.0.1") -> int:
    """A TCP port that nobody uses, below those that the kernel gives to whoever asks for any."""
    while True:
        port = 10_000 + secrets.randbelow(20_000)
        with socket.socket() as sock:
            try:
                sock.bind((address, port))
            except OSError as exc:
                if exc.errno != errno.EADDRINUSE:
                    raise
            else:
                return port


@contextmanager
def serving(folder: Path, name: str, address: str, port: int = 0) -> Iterator[Server]:
    """Run one on an address of this machine's loopback until the block ends."""
    folder.mkdir(parents=True, exist_ok=True)
    port = port or free_port(address)
    login = Login(name, address, (keys(folder, "host"),), port=port, keyfile=str(folder / "user"))
    keys(folder, "user")
    made = not PRIVSEP.exists()
    PRIVSEP.mkdir(mode=0o755, exist_ok=True)
    (folder / "config").write_text(CONFIG.format(port=port, address=address, folder=folder))
    process = LocalHost().start([PROGRAM, "-D", "-e", "-f", str(folder / "config")])
    try:
        wait_until(lambda: b"Server listening" in process.output()[1], 120, "sshd to listen")
        yield Server(login, process)
    finally:
        process.kill(15)
        if made:
            PRIVSEP.rmdir()
