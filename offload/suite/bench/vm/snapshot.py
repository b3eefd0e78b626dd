"""Labs that have booted, kept as QEMU's migration streams: one that would be the same begins there."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import socket
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from offload.cmd import wait_until
from offload.debian.cache import cache_root, locked
from offload.errors import RigError
from offload.paths import PACKAGE
from offload.suite.bench.vm.made import contents
from offload.suite.bench.vm.qemu import Qemu

FIRST = (8, 2)  # QEMU from here on reads and writes a stream in a file by itself
KEPT = 6  # the last used ones, of some 130 MiB each
LIMIT = 60.0  # seconds to write one
ROOM = 400 << 20  # bytes
BENCH = ("topology.py", "snapshot.py")  # what is done between the boot and the snapshot
CLOCK = re.compile(r" tsc_early_khz=\d+")  # measured again at each boot, for the kernel's use only
Say = Callable[[str], None]


def possible(qemu: Qemu, accel: str) -> bool:
    """Whether this QEMU can; under KVM a boot is short, and the processor's clock is the host's."""
    version = tuple(int(part) for part in qemu.version.split(".")[:2])
    return accel == "tcg" and version >= FIRST and os.environ.get("LAB_SNAPSHOT", "") != "off"


def key(qemu: Qemu, argv: Sequence[str], folder: Path, vmlinux: Path, initrd: bytes, pair: str) -> str:
    """Names what decides all of a VM up to the snapshot: another byte in any of it, another name."""
    program = Path(shutil.which(qemu.program) or qemu.program)
    stats = [path.stat() for path in (vmlinux, program)]
    said = [CLOCK.sub("", word).replace(str(folder), "").replace(folder.name, "") for word in argv]
    state = hashlib.sha256(initrd)
    known = [f"{one.st_ino} {one.st_size} {one.st_ctime_ns}" for one in stats]
    # of this boot of the host only: a guest that has measured its clock is for the same processor
    known += [qemu.version, pair, Path("/proc/sys/kernel/random/boot_id").read_text()]
    for word in (*said, *known, contents(PACKAGE / "suite/bench/vm" / name for name in BENCH)):
        state.update(b"\0" + word.encode())
    return state.hexdigest()[:24]


def folder_of(name: str) -> Path:
    """Where the snapshot of this key lies, or would."""
    return cache_root() / "snapshots" / name


def begin(name: str, console: Path) -> list[str]:
    """QEMU's options to begin at a snapshot, with its console so far; none if there is no such snapshot."""
    kept = folder_of(name)
    with suppress(OSError):
        shutil.copyfile(kept / "console.log", console)
        os.utime(kept)  # the last used go last
        return ["-incoming", f"file:{kept / 'state'}"]
    return []


def forget(name: str) -> None:
    """Remove a snapshot that did not work."""
    shutil.rmtree(folder_of(name), ignore_errors=True)


def save(name: str, monitor: Path, console: Path, say: Say) -> None:
    """Keep a VM as it is now, through QEMU's monitor; it goes on. A problem is reported, and the lab goes
    on."""
    base = cache_root() / "snapshots"
    try:
        with locked(base / ".lock"), _Monitor(monitor) as qemu:
            if folder_of(name).exists() or shutil.disk_usage(base).free < ROOM:
                return
            temp = base / f".new-{os.getpid()}-{name}"
            try:
                temp.mkdir(mode=0o700)
                qemu.write(temp / "state")
                shutil.copyfile(console, temp / "console.log")
                temp.rename(folder_of(name))
            finally:
                shutil.rmtree(temp, ignore_errors=True)
            _tidy(base)
    except (RigError, OSError, ValueError) as exc:
        say(f"no snapshot of this lab: {exc}")


def _tidy(base: Path) -> None:
    """Remove all but the last used, and what a killed run left."""
    folders = sorted(base.glob("[!.]*"), key=lambda path: path.stat().st_mtime)
    for old in [*folders[:-KEPT], *base.glob(".new-*")]:
        shutil.rmtree(old, ignore_errors=True)


class _Monitor:
    """QEMU's machine protocol, as far as this needs it."""

    def __init__(self, path: Path) -> None:
        self._sock = socket.socket(socket.AF_UNIX)
        self._sock.settimeout(LIMIT)
        self._sock.connect(str(path))
        self._lines = self._sock.makefile("rb")

    def __enter__(self) -> _Monitor:
        self._lines.readline()  # the greeting
        self._ask("qmp_capabilities")
        return self

    def __exit__(self, *_: object) -> None:
        self._lines.close()
        self._sock.close()

    def _ask(self, what: str, **arguments: object) -> dict[str, object]:
        """A command's answer; RigError with QEMU's words."""
        self._sock.sendall(json.dumps({"execute": what, "arguments": arguments}).encode() + b"\n")
        while line := self._lines.readline():
            answer = json.loads(line)
            if "error" in answer:
                raise RigError(f"QEMU refuses {what}: {answer['error'].get('desc')}")
            if "return" in answer:
                return dict(answer["return"])
        raise RigError(f"QEMU does not answer {what}")

    def write(self, path: Path) -> None:
        """Write the VM to a file, and let it go on. Do not stop it before: a VM that begins there would be
        stopped, too."""
        try:
            self._ask("migrate-set-parameters", **{"max-bandwidth": 0})
            self._ask("migrate", uri=f"file:{path}")
            wait_until(self._written, LIMIT, "QEMU to write the snapshot", every=0.02)
        finally:
            self._ask("cont")

    def _written(self) -> bool:
        status = self._ask("query-migrate").get("status")
        if status in ("failed", "cancelled"):
            raise RigError(f"QEMU: the snapshot is {status}")
        return status == "completed"
