"""What did the kernels of a bench say between two moments, and does it mean that the rig broke?"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress

from offload.cmd import wait_until
from offload.errors import OffloadError, RigError
from offload.host.base import Host
from offload.paths import PACKAGE
from offload.suite.bench.lab.kmsg import END, READY
from offload.suite.bench.vm.console import faults

SOURCE = PACKAGE / "suite/bench/lab/kmsg.py"
PYTHON = ("/usr/bin/python3", "-I", "-S", "-c")
LOOK = 1.0  # seconds that one question for an answer waits
ANSWER = f"\n{END}\n".encode()
SLOW = 120.0  # seconds: an emulated host on a busy machine
BOOT = "/proc/sys/kernel/random/boot_id"


class Log:
    """One kernel's log, followed by a program there: commands for each test cost more than a short test."""

    def __init__(self, name: str, host: Host) -> None:
        self.name, self._process = name, host.start([*PYTHON, SOURCE.read_text()])
        self._taken = 0

    def readable(self) -> bool:
        """Wait until it is followed; False if it may not be, as in most containers."""
        ready, found = f"{READY}\n".encode(), [False]

        def begun() -> bool:
            found[0] = self._process.news(LOOK)[0].startswith(ready)
            return found[0] or not self._process.running()

        wait_until(begun, SLOW, f"the kernel log of {self.name}")
        self._taken = len(ready)
        return found[0]

    def news(self) -> list[str]:
        """The lines since the last time. RigError if nobody follows it any more.

        A line may follow the answer at once, unasked: it belongs to the next one.
        """
        self._process.stdin(b"\n")
        said = b""

        def answered() -> bool:
            nonlocal said
            said = b"\n" + self._process.news(LOOK)[0][self._taken :]
            if ANSWER not in said and not self._process.running():
                why = self._process.output()[1].decode("utf-8", "replace").strip()[-300:]
                raise RigError(f"the kernel log of {self.name} is no longer followed: {why or 'killed'}")
            return ANSWER in said

        wait_until(answered, SLOW, f"the kernel log of {self.name}", every=0.01)
        lines = said.partition(ANSWER)[0]
        self._taken += len(lines) + len(ANSWER) - 1  # the line end that was put before it
        return lines.decode("utf-8", "replace").split("\n")[1:]

    def close(self) -> None:
        """Follow it no longer; harmless if the machine is gone."""
        with suppress(OffloadError, OSError):
            self._process.kill()


class Logs:
    """The kernel logs of some machines, by name; a mark is how many lines had been said.

    Machines of one kernel (namespaces, containers) have one log, under the name of the first. `boots`: the
    kernel that each machine runs, by its boot id.
    """

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        self.boots = {name: host.read(BOOT) for name, host in hosts.items()}
        kernels: dict[bytes, tuple[str, Host]] = {}
        for name, host in hosts.items():
            kernels.setdefault(self.boots[name], (name, host))
        self._all = [Log(name, host) for name, host in kernels.values()]
        self._logs = [log for log in self._all if log.readable()]
        self.silent = tuple(log.name for log in self._all if log not in self._logs)
        self._said: list[tuple[str, str]] = []

    def mark(self) -> int:
        """Now: all messages so far are before it."""
        for log in self._logs:
            self._said += [(log.name, line) for line in log.news()]
        return len(self._said)

    def since(self, mark: int) -> dict[str, str]:
        """Return what each kernel said since a mark."""
        self.mark()
        said = self._said[mark:]
        return {
            log.name: "".join(f"{line}\n" for name, line in said if name == log.name) for log in self._logs
        }

    def faults(self, mark: int) -> list[str]:
        """Lines since a mark that mean a broken rig, with the machine's name before each."""
        said = self.since(mark).items()
        return [f"{name}: {line}" for name, text in said for line in faults(text)]

    def close(self) -> None:
        """Follow none of them any longer."""
        for log in self._all:
            log.close()
