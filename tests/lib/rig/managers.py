"""A house of namespaces for Debian's real systemd, udev, ifupdown and NetworkManager; it can reboot."""

from __future__ import annotations

import fcntl
import json
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from offload.card.profile import FEATURES
from offload.cmd import wait_until
from offload.host.base import Completed
from offload.host.local import LocalHost
from tests.unit.switch.fake_bench import PLAYED

DEV, PROJECT = "sim0", Path(__file__).parents[3]
SOON = 60.0  # seconds; it takes one on an idle machine
UNUSED = ("doc", "man", "locale", "bash-completion", "hwdb.d")
TOOLS = PROJECT / "tests/unit/switch/fake_tools.py"
# under a lock: udev, a manager and a test may ask the card at the same time
TOOL = '#!/bin/sh\nFAKE_STATE={state} exec flock {state}.lock /usr/bin/python3 -SE {tools} {name} "$@"\n'
# The root is this machine's, with the managers' programs below and a layer above that keeps what is written.
# What is global is read-only or left alone: /proc/sys, devices (a /dev of its own), services of this machine.
BOOT = """\
set -e
mount --make-rprivate /
mkdir -p {top}/up {top}/work {top}/root
mount -t overlay overlay -o lowerdir={top}/programs:/,upperdir={top}/up,workdir={top}/work {top}/root
cd {top}/root
mount -t proc proc proc
mount --bind proc/sys proc/sys
mount -o remount,bind,ro proc/sys
mount -t sysfs sysfs sys
mkdir -p sys/fs/cgroup
mount -t cgroup2 cgroup2 sys/fs/cgroup
mount -t tmpfs -o mode=755 run run
mount -t tmpfs -o mode=755 dev dev
mkdir dev/shm && mount -t tmpfs shm dev/shm
for node in null zero full random urandom tty; do touch dev/$node; mount --bind /dev/$node dev/$node; done
for seen in {seen}; do mkdir -p .$seen; mount --rbind $seen .$seen; done
mkdir -p run/network run/udev run/dbus var/lib/NetworkManager etc/network/interfaces.d
: >run/udev/control  # without it, and without a devtmpfs, systemd does not listen to udev (sd-device-monitor)
rm -rf etc/fstab usr/lib/systemd/system/sysinit.target.wants usr/lib/systemd/system-generators
[ -e {top}/booted ] || rm -rf etc/systemd/system/*.wants
touch {top}/booted
printf '%s\\n' '[Unit]' 'DefaultDependencies=no' 'Wants=systemd-udevd.service systemd-udev-trigger.service' \\
  >usr/lib/systemd/system/house.target
printf '%s\\n' '[Unit]' 'DefaultDependencies=no' 'After=systemd-udevd.service' '[Service]' 'Type=oneshot' \\
  'ExecStart=udevadm trigger --action=add --subsystem-match=net' 'RemainAfterExit=yes' \\
  >usr/lib/systemd/system/systemd-udev-trigger.service
printf '%s\\n' '[main]' 'plugins=keyfile' 'auth-polkit=false' 'no-auto-default=*' '[device]' \\
  'match-device=interface-name:{dev}' 'managed=1' \\
  >etc/NetworkManager/NetworkManager.conf
[ ! -e {top}/card ] || ip link add {dev} type veth peer name {dev}p
exec env -i container=other PATH={path} SYSTEMD_LOG_TARGET=null \\
  chroot . /lib/systemd/systemd --unit=house.target --show-status=false
"""


class House:
    """Namespaces with process 1 of their own. The card is played (fake_tools) on a veth, which udev sees."""

    def __init__(self, top: Path, programs: Path) -> None:
        self._top, self._here = top, LocalHost()
        self._state = top / "state.json"
        # a copy: one layer of a root may not lie below another
        shutil.copytree(programs, top / "programs", symlinks=True, ignore=shutil.ignore_patterns(*UNUSED))
        (top / "bin").mkdir()
        for name in ("ethtool", "ip"):
            tool = top / "bin" / name
            tool.write_text(TOOL.format(state=self._state, tools=TOOLS, name=name))
            tool.chmod(0o755)
        self._child: subprocess.Popen[bytes] | None = None
        self._path = f"{top}/bin:/usr/sbin:/usr/bin:/sbin:/bin"

    def boot(self) -> None:
        """Start process 1, and wait until it has started what it starts."""
        seen = [str(self._top), str(PROJECT), sys.prefix]
        words = {"top": self._top, "seen": shlex.join(seen), "dev": DEV}
        argv = [
            "unshare",
            "--mount",
            "--pid",
            "--net",
            "--uts",
            "--ipc",
            "--cgroup",
            "--fork",
            "--kill-child",
        ]
        script = BOOT.format(**words, path=self._path.partition(":")[2])
        with (self._top / "boot.log").open("ab") as log:
            self._child = subprocess.Popen(
                [*argv, "sh", "-c", script], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        wait_until(self._ready, SOON, f"systemd ({self._top}/boot.log)", every=0.1)

    def _ready(self) -> bool:
        assert self._child is not None
        assert self._child.poll() is None, (self._top / "boot.log").read_text()
        return self.run("systemctl", "is-active", "systemd-udev-trigger", check=False).rc == 0

    def end(self) -> None:
        """Pull the plug: every process of the house ends, nothing is asked."""
        if self._child:
            self._child.kill()
            self._child.wait()
            self._child = None

    def reboot(self) -> None:
        """End it and boot again: the files are as they were, the card is as its driver starts it."""
        self.end()
        self._new_card()
        self.boot()

    def run(self, *argv: str, check: bool = True) -> Completed:
        """Run a program in the house."""
        assert self._child is not None
        children = Path(f"/proc/{self._child.pid}/task/{self._child.pid}/children").read_text().split()
        inside = ["nsenter", "-t", *children[:1], "-m", "-p", "-n", "-i", "-u", "-C", "-r", "-w", "--"]
        env = ["env", "-i", f"PATH={self._path}", f"KTLS_OFFLOAD_STATE={self._top}/journal", "PYTHONPATH=."]
        return self._here.run(
            [*inside, *env, "sh", "-c", f'cd {PROJECT}; exec "$@"', "sh", *argv], check=check
        )

    def command(self, *words: str) -> str:
        """`ktls-offload WORDS`; what it said. It must succeed."""
        return self.run(sys.executable, "-m", "offload", *words).text

    def _new_card(self) -> None:
        with self._alone():
            self._state.write_text(json.dumps({"devices": {DEV: PLAYED}, "modules": [], "depends": {}}))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep the programs of the card away from its state: who writes it empties it first."""
        with Path(f"{self._state}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def plug(self) -> None:
        """Load the driver: the card appears, receive off. It is there at boot from now on."""
        self._new_card()
        (self._top / "card").touch()
        self.run("/sbin/ip", "link", "add", DEV, "type", "veth", "peer", "name", f"{DEV}p")

    def unplug(self) -> None:
        """Unload the driver: the card is gone."""
        self.run("/sbin/ip", "link", "del", DEV)
        (self._top / "card").unlink()

    def link(self, state: str) -> None:
        """Take the link up or down, at both ends of its cable."""
        for dev in (DEV, f"{DEV}p"):
            self.run("/sbin/ip", "link", "set", dev, state)

    def on(self) -> dict[str, bool]:
        """Which directions of the card are on."""
        with self._alone():
            features: Any = json.loads(self._state.read_text())["devices"][DEV]["features"]
        return {direction: features[name]["active"] for direction, name in FEATURES.items()}

    def switch_off(self) -> None:
        """Switch both directions off behind everybody's back."""
        for name in FEATURES.values():
            self.run(f"{self._top}/bin/ethtool", "-K", DEV, name, "off")
        assert not any(self.on().values())

    def comes_on(self) -> None:
        """Wait until both directions are on."""
        wait_until(lambda: all(self.on().values()), SOON, f"{DEV} on in both directions", every=0.1)


@contextmanager
def house(programs: Path) -> Iterator[House]:
    """A house with a card in it, gone afterwards. Its files are in memory: no disk is waited for."""
    with tempfile.TemporaryDirectory(prefix="ktls-house-", dir="/dev/shm") as folder:
        made = House(Path(folder), programs)
        try:
            made.boot()
            made.plug()
            yield made
        finally:
            made.end()


def missing() -> str:
    """Why no house can be built here, or ''."""
    test = "mount -t tmpfs none /mnt && mount -t cgroup2 none /mnt && mount -t sysfs none /mnt"
    argv = ["unshare", "--mount", "--pid", "--net", "--cgroup", "--fork", "sh", "-c", test]
    done = LocalHost().run(argv, check=False)
    return "" if done.rc == 0 else f"namespaces of its own: {done.stderr.decode().strip()[:200]}"
