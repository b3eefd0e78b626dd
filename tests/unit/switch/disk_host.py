"""A machine whose every fact is a file below a folder: killed processes and several at once can share it.

Its programs are functions here, so that hundreds of calls take seconds. A file is replaced as a whole, as a
kernel's state is; `step` is called before and after each program, and between the halves of each write.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from offload.host.base import Completed, Process
from tests.unit.switch.fake_bench import feature

FOLDERS = (
    "etc/systemd/system",
    "etc/network/if-up.d",
    "etc/NetworkManager/dispatcher.d",
    "run/systemd/system",
)
UNITS = "etc/systemd/system"


def nothing() -> None:
    """A step of somebody whom nobody kills."""


class DiskHost:
    """A ConnectX-6 Dx for each name of `devs`, transmit on and receive off, and a systemd that obeys."""

    name = "disk"

    def __init__(self, root: Path, step: Callable[[], None] = nothing) -> None:
        self.root, self.step = root, step

    @staticmethod
    def make(root: Path, *devs: str) -> DiskHost:
        """A new machine."""
        for folder in FOLDERS:
            (root / folder).mkdir(parents=True)
        host = DiskHost(root)
        for number, dev in enumerate(devs, 7):
            tls = {"tls-hw-tx-offload": feature(True), "tls-hw-rx-offload": feature(False)}
            sums = {"rx-checksumming": feature(True), "tx-checksum-ip-generic": feature(True)}
            host.put(dev, {"ifindex": number, "features": {**tls, **sums}})
        return host

    def put(self, dev: str, nic: Any) -> None:
        """Replace what a device is, as a whole."""
        fresh = self.root / f"{dev}.{os.getpid()}.new"
        fresh.write_text(json.dumps(nic))
        fresh.replace(self.root / f"{dev}.nic")

    def nics(self) -> dict[str, Any]:
        """Every device."""
        return {p.stem: json.loads(p.read_text()) for p in sorted(self.root.glob("*.nic"))}

    def files(self) -> dict[str, str]:
        """Every file and link below /etc, whole or half: text, or where it points."""
        found = sorted((self.root / "etc").rglob("*"))
        shown = {
            p: f"-> {p.readlink()}" if p.is_symlink() else p.read_text() for p in found if not p.is_dir()
        }
        return {f"/{p.relative_to(self.root)}": text for p, text in shown.items()}

    def run(self, argv: Sequence[str], *, check: bool = True, **_: Any) -> Completed:
        """Play a program."""
        self.step()
        rc, out = getattr(self, f"_{argv[0]}")(*argv[1:])
        self.step()
        done = Completed(tuple(argv), rc, out.encode(), b"" if rc == 0 else b"no", 0.0)
        return done.checked() if check else done

    def start(self, argv: Sequence[str], **_: Any) -> Process:
        """Nothing here runs in the background."""
        raise NotImplementedError(argv)

    def read(self, path: str) -> bytes:
        """A file of this machine, or of its kernel."""
        known = {"/proc/sys/kernel/random/boot_id": b"boot\n"}
        ids = {"vendor": b"0x15b3\n", "device": b"0x101d\n"}
        if path.startswith("/sys/bus/pci/devices/"):
            return ids[path.rpartition("/")[2]]
        return known[path] if path in known else self._own(path).read_bytes()

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Write in two halves."""
        target = self._own(path)
        target.write_bytes(data[: len(data) // 2])
        self.step()
        target.write_bytes(data)
        target.chmod(mode)

    def _own(self, path: str) -> Path:
        return self.root / path.lstrip("/")

    def _ip(self, *_: str) -> tuple[int, str]:
        bare = {"flags": ["UP"], "operstate": "UP", "link_type": "ether"}
        rows = [
            {"ifname": d, "ifindex": n["ifindex"], **bare, **n.get("link", {})}
            for d, n in self.nics().items()
        ]
        return 0, json.dumps(rows)

    def _ethtool(self, *words: str) -> tuple[int, str]:
        what, dev, *rest = [w for w in words if w != "--json"]
        nic = self.nics()[dev]
        if what == "-i":
            return 0, "driver: mlx5_core\nfirmware-version: 22.35\nbus-info: 0000:04:00.0\n"
        if what == "-k":
            return 0, json.dumps([{"ifname": dev, **nic["features"]}])
        nic["features"][rest[0]] = feature(rest[1] == "on")
        self.put(dev, nic)
        return 0, ""

    def _sh(self, *words: str) -> tuple[int, str]:
        return 0, f"/usr/sbin/{words[1].split()[-1]}\n"

    def _test(self, _: str, path: str) -> tuple[int, str]:
        return int(not self._own(path).is_dir()), ""

    def _uname(self, _: str) -> tuple[int, str]:
        return 0, "6.1.0\n"

    def _readlink(self, _: str) -> tuple[int, str]:
        return 0, "net:[1]\n"

    def _mv(self, _: str, old: str, new: str) -> tuple[int, str]:
        self._own(old).replace(self._own(new))
        return 0, ""

    def _sync(self, *paths: str) -> tuple[int, str]:
        there = [self._own(path).exists() for path in paths]
        return int(not all(there)), ""

    def _rm(self, _: str, *paths: str) -> tuple[int, str]:
        for path in paths:
            self._own(path).unlink(missing_ok=True)
        return 0, ""

    def _nmcli(self, *_: str) -> tuple[int, str]:
        return 8, ""

    def _ifquery(self, *_: str) -> tuple[int, str]:
        return 1, ""

    def _systemctl(self, verb: str, *words: str) -> tuple[int, str]:
        """Link a unit to its device, as `systemctl enable` does, and unlink it."""
        if verb == "daemon-reload":
            return 0, ""
        unit = self._own(f"/{UNITS}/{words[-1]}")
        if verb == "disable":
            for link in unit.parent.glob(f"*.wants/{unit.name}"):
                link.unlink()
            return 0, ""
        wanted = unit.read_text().partition("WantedBy=")[2].strip()
        (unit.parent / f"{wanted}.wants").mkdir(exist_ok=True)
        link = unit.parent / f"{wanted}.wants" / unit.name
        link.unlink(missing_ok=True)
        link.symlink_to(f"../{unit.name}")
        return 0, ""
