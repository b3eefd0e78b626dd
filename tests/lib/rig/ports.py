"""A host of two cabled ports, or of six: veth in a network namespace, below a /run of the test's own."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from offload.cmd import settles, wait_until

ROOT = Path(__file__).parents[3]
SLOW = 300  # seconds
PORTS = """\
mkdir /run/netns
ip link set lo up
ip link add near0 type veth peer name far0
ip link set near0 up
ip link set far0 mtu 1400 up
ip address add 10.9.0.1/24 brd + dev far0
ip address add 10.9.0.5 peer 10.9.1.5/32 dev far0 label far0:p
ip address add fd00:9::1/64 dev far0 nodad
ip route add 10.10.0.0/16 via 10.9.0.2 dev far0 metric 5 mtu 1300
ip route add 10.11.0.0/16 dev far0 table 77 proto static
ip route add fd00:10::/64 via fd00:9::2 dev far0
sysctl -qw net.ipv4.conf.far0.rp_filter=2 net.ipv6.conf.far0.accept_ra=0
"""
SEEN = """\
ip -d address show
ip -d route show table all | sort
ip -d -6 route show table all | sort
(cd /proc/sys/net && grep -rs '' ipv4/conf ipv4/neigh ipv6/conf ipv6/neigh) | sort
ip netns
"""
# counts the commands that change something, and sends the caller a signal at the one that is asked for
WRAPPER = """\
#!{sh}
case "$*" in
*"link set"*|*"link add"*|*"netns add"*|*"netns del"*|*" replace "*|*" del "*)
    echo >>"$STEPS"
    [ "$(wc -l <"$STEPS")" = "$AT" ] && kill "-$WITH" "$PPID" ;;
esac
exec {ip} "$@"
"""


@dataclass
class Machine:
    """A network namespace and a /run, held by a process."""

    pid: int
    folder: Path

    def run(self, argv: Sequence[str], **env: str) -> subprocess.CompletedProcess[str]:
        words = ["nsenter", f"--net=/proc/{self.pid}/ns/net", f"--mount=/proc/{self.pid}/ns/mnt"]
        words += ["sh", "-c", 'cd "$0" && exec "$@"', str(self.folder), *argv]
        known = {name: value for name, value in os.environ.items() if name != "SSH_CONNECTION"}
        known |= {"PYTHONPATH": str(ROOT), "KTLS_OFFLOAD_STATE": str(self.folder / "state"), **env}
        return subprocess.run(
            words,
            env=known,
            capture_output=True,
            text=True,
            timeout=SLOW,
            stdin=subprocess.DEVNULL,
        )

    def sh(self, script: str) -> str:
        """Run a script; its output."""
        done = self.run(["sh", "-ec", script])
        assert done.returncode == 0, done.stderr
        return done.stdout

    def lab(self, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
        """`ktls-offload lab WORDS`."""
        return self.run([sys.executable, "-m", "offload", "lab", *words], **env)

    def seen(self) -> str:
        """What `ip` and the kernel's settings say, once no address is tentative and no lifetime runs."""
        said: list[str] = []
        wait_until(lambda: said.append(self.sh(SEEN)) or "tentative" not in said[-1], SLOW, "addresses", 0.2)
        return re.sub(r" parentbus \S+ parentdev \S+", "", said[-1])

    def is_as(self, before: str) -> bool:
        """Say whether all is as it was; the kernel notices a carrier with a delay."""
        return settles(lambda: self.seen() == before, 60, every=0.2)

    @property
    def noted(self) -> bool:
        """Whether the journal says that there is a bench."""
        return (self.folder / "state" / "one-host.json").exists()


@contextmanager
def two_ports(folder: Path) -> Iterator[Machine]:
    """A host with two ports and a cable."""
    hold = "mount -t tmpfs none /run && echo ready && exec cat"
    with subprocess.Popen(
        ["unshare", "--net", "--mount", "sh", "-c", hold], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout and child.stdout.readline() == b"ready\n"
        made = Machine(child.pid, folder)
        made.sh(PORTS)
        up = "ip -6 address show up scope link"
        wait_until(lambda: made.sh(up).count("inet6") == 2 == made.sh(up).count(" state UP "), SLOW, "links")
        yield made


def wrapped(machine: Machine, at: int, signal: str) -> dict[str, str]:
    """The environment in which the command that makes change number `at` sends its caller a signal."""
    (machine.folder / "bin").mkdir(exist_ok=True)
    tool, steps = machine.folder / "bin" / "ip", machine.folder / "steps"
    tool.write_text(WRAPPER.format(ip=shutil.which("ip"), sh=shutil.which("sh")))
    tool.chmod(0o755)
    steps.write_text("")
    path = f"{tool.parent}:{os.environ['PATH']}"
    return {"PATH": path, "STEPS": str(steps), "AT": str(at), "WITH": signal}


def cabled_over_a_wire(machine: Machine) -> list[str]:
    """Two more cables: what to type to have a port of each as the wire."""
    for end in ("dut", "peer"):
        machine.sh(f"ip link add {end}0 type veth peer name {end}w")
        machine.sh(f"ip link set {end}0 up; ip link set {end}w up")
    up = "ip -6 address show up scope link"
    wait_until(
        lambda: machine.sh(up).count("inet6") == 6 == machine.sh(up).count(" state UP "), SLOW, "links"
    )
    return ["dut0", "peer0", "--wire", "dutw", "peerw"]
