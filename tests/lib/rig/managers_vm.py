"""A VM with a disk and a simulated card, whose first process is Debian's systemd: it can reboot."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from offload.card.nic import features
from offload.card.profile import FEATURES
from offload.cmd import wait_until
from offload.debian.kernels import Kernel
from offload.errors import RigError
from offload.host.base import Completed
from offload.host.local import LocalHost
from offload.host.vm import VmHost
from offload.paths import ROOT
from offload.suite.bench.cards.module import build_nicsim
from offload.suite.bench.vm import boot, rundir
from offload.suite.bench.vm.card import parameter
from offload.suite.bench.vm.console import Console
from offload.suite.bench.vm.initramfs import build, init_script, module_order
from offload.suite.bench.vm.kvm import accelerator
from offload.suite.bench.vm.qemu import Machine, command, find
from offload.suite.bench.vm.topology import MODULE, MODULES

DEV, CABLE = "nicsim0", ("nicsim1", "nswire0", "nswire1")
CARD = f"personality={parameter('connectx-6-dx,connectx-6-dx')}"
SOON = 300.0  # seconds; nothing takes more than 20 on an idle machine
DISK, DISK_SIZE = ("virtio_blk", "ext4"), 256 << 20
SUM = "crc32c_generic"  # a soft dependency of ext4 in 6.1 and 6.12; later ones have it in them
LINES = 40  # of the kernel's log, in which systemd says what it does
# What the lab's init does, but: a layer with the managers' programs, and what is written stays on a disk.
CHANGES = {
    "$b mount -t tmpfs -o mode=755 rw /rw\n": "$b mkdir /programs\n"
    "$b mount -t 9p -o ro,msize=512000,cache=loose,$nine programs /programs\n$b mount -t ext4 /dev/vda /rw\n",
    "$b mkdir /rw/up /rw/work\n": "$b mkdir -p /rw/up /rw/work\n",
    "lowerdir=/lower,": "lowerdir=/programs:/lower,",
}
# Then systemd: udev as Debian has it, though for network devices only, the agent, and what is enabled later.
# What else this host would start is left out, and so are limits that an emulated processor would not keep.
PREPARE = """\
if [ ! -e /rw/prepared ]; then
  cd /new/usr/lib/systemd
  for w in multi-user sockets timers graphical local-fs sysinit; do $b rm -rf system/$w.target.wants; done
  cd /new/etc/systemd/system
  $b rm -rf /new/.dockerenv /new/etc/fstab /new/usr/lib/systemd/system-generators *.wants
  $b mkdir -p sysinit.target.wants systemd-udevd.service.d systemd-udev-trigger.service.d ../system.conf.d
  for u in systemd-udevd systemd-udev-trigger; do
    $b ln -s /usr/lib/systemd/system/$u.service sysinit.target.wants
  done
  $b ln -s ../agent.service sysinit.target.wants
  echo 0123456789abcdef0123456789abcdef >/new/etc/machine-id
  printf '%%s\\n' '[Manager]' DefaultTimeoutStartSec=600 >../system.conf.d/slow.conf
  printf '%%s\\n' '[Service]' WatchdogSec=0 >systemd-udevd.service.d/slow.conf
  printf '%%s\\n' '[Service]' ExecStart= 'ExecStart=udevadm trigger --action=add --subsystem-match=net' \\
    >systemd-udev-trigger.service.d/net.conf
  printf '%%s\\n' '[Unit]' DefaultDependencies=no '[Service]' \\
    'Environment=PYTHONPATH=/run/lab/python PYTHONDONTWRITEBYTECODE=1 TMPDIR=%(temp)s' \\
    'ExecStart=%(python)s -S -s -c "from offload.suite.bench.vm.guest.agent import main; main([])"' \\
    >agent.service
  $b mkdir -p /new/etc/NetworkManager
  printf '%%s\\n' '[main]' plugins=keyfile auth-polkit=false 'no-auto-default=*' '[keyfile]' \\
    unmanaged-devices=except:interface-name:%(dev)s '[device]' match-device=interface-name:%(dev)s \\
    managed=1 >/new/etc/NetworkManager/NetworkManager.conf
  : >/rw/prepared
fi
cd /
$b insmod /lab/nicsim.ko %(card)s
exec $b switch_root /new /lib/systemd/systemd --unit=multi-user.target --show-status=false --log-target=kmsg
"""


class Computer:
    """One VM after the other on the same disk; `host` is the one that runs."""

    host: VmHost

    def __init__(self, kernel: Kernel, programs: Path, disk: Path, say: Callable[[str], None]) -> None:
        self._kernel, self._programs, self._disk, self._say = kernel, programs, disk, say
        self._qemu = find(say)
        self._accel = accelerator(kernel, self._qemu, say)[0]
        self._child: subprocess.Popen[bytes] | None = None
        with disk.open("wb") as file:
            file.truncate(DISK_SIZE)
        LocalHost().run(["/sbin/mke2fs", "-q", "-t", "ext4", str(disk)])

    def boot(self) -> None:
        """Switch it on; it is up when systemd has nothing left to start."""
        self._run_dir = rundir.create(None)
        folder = self._run_dir.path
        (folder / "out").mkdir()
        files = {"nicsim.ko": build_nicsim(self._kernel, self._say).read_bytes()}
        (folder / "initrd").write_bytes(build(self._modules(), files, self._init()))
        self._child = self._started(folder)
        self._console = Console(folder / "console.log")
        self._client = boot.await_agent(self._child, self._run_dir, SOON)
        self.host = VmHost(self._client, "the VM")
        self.wait(self._up, "systemd to have started everything")

    def _started(self, folder: Path) -> subprocess.Popen[bytes]:
        """Run QEMU; it dies with the thread that called this."""
        argv = command(Machine(self._kernel, self._qemu, self._accel, cpus=1, memory=1024), folder)
        argv += [
            "-fsdev",
            f"local,id=programs,path={self._programs},security_model=none,readonly=on",
            "-device",
            "virtio-9p-pci,fsdev=programs,mount_tag=programs",
            "-drive",
            f"file={self._disk},format=raw,if=virtio,cache=writeback",
        ]
        with (folder / "qemu.log").open("wb") as log:
            return subprocess.Popen(
                ["setpriv", "--pdeathsig", "KILL", *argv],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, **self._qemu.env},
                pass_fds=[self._run_dir.lock],
                start_new_session=True,
            )

    def _modules(self) -> list[Path]:
        """Return what init loads."""
        names = [*boot.BASIC, *MODULES["nicsim"], *DISK]
        known = (self._kernel.modules / "modules.dep").read_text()
        return module_order(self._kernel.modules, [*([SUM] if SUM in known else []), *names])

    def _init(self) -> str:
        """The script that ends in systemd."""
        script = init_script(self._kernel.modules, boot.visible(), boot.interpreter())
        head, mark, _ = script.partition("export PYTHONPATH=")
        assert mark, script
        for old, new in CHANGES.items():
            assert head.count(old) == 1, (old, head)
            head = head.replace(old, new)
        words = {"python": boot.interpreter(), "temp": tempfile.gettempdir(), "card": CARD, "dev": DEV}
        return head + PREPARE % words

    def _up(self) -> bool:
        return self.run("systemctl", "is-system-running", check=False).text.strip() in ("running", "degraded")

    def comes_on(self) -> None:
        """Wait until both directions are on."""
        self.wait(lambda: all(self.on().values()), f"{DEV} on in both directions")

    def wait(self, ready: Callable[[], bool], what: str) -> None:
        """Wait for something; RigError with what systemd says, if it does not come."""
        try:
            wait_until(ready, SOON, what, every=0.3)
        except RigError as late:
            raise RigError(f"{late}\n{self.says()}") from None

    def says(self) -> str:
        """Return what systemd has still to do, what failed, and the end of the kernel's log, where it
        writes."""
        said = [self.run("systemctl", what, check=False).text for what in ("list-jobs", "--failed")]
        return "\n".join([*said, *self.run("dmesg", check=False).text.splitlines()[-LINES:]])

    def run(self, *argv: str, check: bool = True) -> Completed:
        """Run a program in it."""
        return self.host.run(argv, check=check, timeout=SOON)

    def command(self, *words: str) -> str:
        """`ktls-offload WORDS` as a person would; what it said. It must succeed."""
        argv = ["sh", "-c", 'cd "$0" && "$@"', str(ROOT), sys.executable, "-m", "offload", *words]
        return self.run(*argv).text

    def reboot(self) -> None:
        """Let systemd reboot it: all ends, and a new machine finds the disk as it was left."""
        assert self._child
        self.run("systemctl", "--no-block", "reboot")
        try:
            self._child.wait(SOON)
        except subprocess.TimeoutExpired:
            raise RigError(f"systemd does not reboot\n{self._console.tail(LINES)}") from None
        self.end()
        self.boot()

    def end(self) -> None:
        """Pull the plug: nothing is asked, nothing is written any more. RigError if the kernel complained."""
        if self._child is None:
            return
        boot.stop(self._child)
        self._child = None
        self._client.close()
        faults = self._console.faults()
        self._run_dir.release()
        if faults:
            raise RigError(f"the kernel's console says: {faults}")

    def unplug(self) -> None:
        """Unload the driver: the card is gone."""
        self.run("rmmod", "nicsim")

    def plug(self) -> None:
        """Load the driver: a new card, as a driver starts it."""
        self.run("insmod", MODULE, CARD)

    def seen(self) -> None:
        """Wait until udev and systemd have dealt with all that came and went."""
        self.run("udevadm", "settle")
        self.wait(lambda: not self._jobs(), "systemd to have nothing to do")

    def _jobs(self) -> str:
        return self.run("systemctl", "list-jobs", "--no-legend").text.strip()

    def link(self, state: str) -> None:
        """Take the card's link up or down."""
        self.run("ip", "link", "set", DEV, state)

    def cable(self, state: str) -> None:
        """Plug the cable in (`up`) or pull it (`down`), at all of its ends but the card's."""
        for dev in CABLE:
            self.run("ip", "link", "set", dev, state)

    def on(self) -> dict[str, bool]:
        """Which directions of the card are on."""
        found = features(self.host, DEV)
        return {direction: found[name].active for direction, name in FEATURES.items()}


@contextmanager
def computer(kernel: Kernel, programs: Path, disk: Path, say: Callable[[str], None]) -> Iterator[Computer]:
    """A VM that has been booted, gone afterwards."""
    made = Computer(kernel, programs, disk, say)
    try:
        made.boot()
        yield made
    finally:
        made.end()
