"""A machine made of fake_tools.py: cards in a state file, its programs, a private journal.

Our own code calls the programs as functions and runs in this process, which costs a tenth. They are processes
on PATH for a child of the test, and when a call is to be killed or interrupted.
"""

from __future__ import annotations

import copy
import io
import json
import os
import signal
from collections.abc import Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from offload.cli import main as cli
from offload.host.base import Completed
from offload.host.local import LocalHost
from offload.switch import enable, persist, restore, status
from tests.unit.switch import fake_tools
from tests.unit.switch.fake_server import Tools

PROGRAMS = ("ethtool", "ip", "modprobe", "rmmod", "test")
IN_HERE = ("fail", "ignore")  # faults of a program that harm nobody else
LOADED = (cli, enable, restore, persist, status)  # here, not in each child: a third of its time


def feature(active: bool = False, fixed: bool = False, requested: bool | None = None) -> dict[str, bool]:
    """One feature as `ethtool --json -k` has it."""
    return {"active": active, "fixed": fixed, "requested": active if requested is None else requested}


def card(driver: str, firmware: str, bus: str, tx: dict[str, bool], rx: dict[str, bool], **more: Any) -> Any:
    """One interface of the fake machine."""
    features = {
        "rx-checksumming": feature(True),
        "tx-checksum-ip-generic": feature(True),
        "tls-hw-tx-offload": tx,
        "tls-hw-rx-offload": rx,
    }
    return {"ifindex": 7, "driver": driver, "firmware": firmware, "bus": bus, "features": features, **more}


MLX5 = card("mlx5_core", "22.35.1012", "0000:04:00.0", feature(True), feature(False))
T6 = card("cxgb4", "1.27.1.0", "0000:05:00.4", feature(False), feature(False, True), ifindex=8)
PLAYED = card("nicsim", "sim/connectx-6-dx", "sim:0", feature(True), feature(False), ifindex=9)


class FakeMachine:
    """The state file, and the command; with a fault that kills it runs in a child process."""

    def __init__(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.state_file, self.journal = tmp_path / "state.json", tmp_path / "journal"
        self.out = tmp_path / "out"
        tools = tmp_path / "bin"
        tools.mkdir()
        self.tools = Tools(tools, self.state_file, PROGRAMS)
        monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
        monkeypatch.setenv("KTLS_OFFLOAD_STATE", str(self.journal))
        self.files: dict[str, bytes] = {}
        self._files(monkeypatch)
        self._programs(monkeypatch)
        depends = {"ch_ktls": ["tls", "ch_ktls"]}
        self.set(devices={"eth0": MLX5, "cx0": T6, "sim0": PLAYED}, modules=["cxgb4"], depends=depends)

    def _files(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Files that a host reads: a fake sysfs and kernel configuration; the rest is this machine's."""
        for bus, ids in {"0000:04:00.0": ("15b3", "101d"), "0000:05:00.4": ("1425", "6407")}.items():
            for name, value in (("vendor", ids[0]), ("device", ids[1])):
                self.files[f"/sys/bus/pci/devices/{bus}/{name}"] = f"0x{value}\n".encode()
        real = LocalHost.read

        def read(host: LocalHost, path: str) -> bytes:
            if path in self.files:
                return self.files[path]
            if path.startswith(("/boot/", "/lib/modules/", "/proc/config", "/sys/bus/")):
                raise FileNotFoundError(path)
            return real(host, path)

        monkeypatch.setattr(LocalHost, "read", read)

    def _programs(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Call the programs as functions, unless one is to kill or to outlive its caller."""
        real = LocalHost.run

        def run(host: LocalHost, argv: Sequence[str], *, check: bool = True, **more: Any) -> Completed:
            if argv[0] not in PROGRAMS or self.harmful():
                return real(host, argv, check=check, **more)
            out, err = io.StringIO(), io.StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                code = fake_tools.main(self.state_file, argv[0], list(argv[1:]), os.getpid())
            said = (text.getvalue().encode() for text in (out, err))
            done = Completed(tuple(argv), code, *said, 0.0, host.name)
            return done.checked() if check else done

        monkeypatch.setattr(LocalHost, "run", run)

    def harmful(self) -> bool:
        """Whether a program is to kill or interrupt who called it."""
        return self.state().get("fault", {}).get("kind", "fail") not in IN_HERE

    def kernel_config(self, text: str) -> None:
        """What /boot/config-RELEASE of the fake machine says."""
        self.files[f"/boot/config-{os.uname().release}"] = text.encode()

    def set(self, **keys: Any) -> None:
        """Change keys of the state."""
        state = json.loads(self.state_file.read_text()) if self.state_file.exists() else {}
        self.state_file.write_text(json.dumps({**state, **copy.deepcopy(keys)}))

    def state(self) -> dict[str, Any]:
        return json.loads(self.state_file.read_text())  # type: ignore[no-any-return]

    def machine(self) -> Any:
        """What a person would want back: features and modules."""
        state = self.state()
        return {d: n["features"] for d, n in state["devices"].items()}, sorted(state["modules"])

    def change(self, dev: str, name: str, **keys: bool) -> None:
        """Change one feature behind everybody's back."""
        devices = self.state()["devices"]
        devices[dev]["features"][name].update(keys)
        self.set(devices=devices)

    def call(self, *argv: str, patch: Any = None) -> int:
        """`ktls-offload ARGV`: its exit code, or minus the signal that killed it."""
        if not patch and not self.harmful():
            with self.out.open("w") as out, redirect_stdout(out), redirect_stderr(out):
                code = cli.main(list(argv))
            self.said = self.out.read_text()
            return code
        pid = os.fork()
        if pid == 0:
            try:
                for number in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(number, signal.default_int_handler)
                fd = os.open(self.out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
                os.dup2(fd, 1), os.dup2(fd, 2)
                os._exit(_child(list(argv), patch))
            finally:
                os._exit(99)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        self.said = self.out.read_text()
        return code


def _child(argv: list[str], patch: Any) -> int:
    """The command with its own standard streams."""
    import sys

    sys.stdout, sys.stderr = os.fdopen(1, "w", closefd=False), os.fdopen(2, "w", closefd=False)
    if patch:
        patch()
    code = cli.main(argv)
    sys.stdout.flush(), sys.stderr.flush()
    return code
