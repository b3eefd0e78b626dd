"""What did the kernels of a bench say between two moments, and does it mean that the rig broke?"""

from __future__ import annotations

import uuid
from collections.abc import Mapping

from offload.host.base import Host
from offload.vm.console import faults

LOST = "the kernel log ran over: what was said is lost"


class Logs:
    """The kernel logs of some machines, by name; a mark is a line written into each of them."""

    def __init__(self, hosts: Mapping[str, Host]) -> None:
        self._hosts = {name: host for name, host in hosts.items() if _readable(host)}
        self.silent = tuple(name for name in hosts if name not in self._hosts)

    def mark(self) -> str:
        """Write a mark into each log; what it was."""
        mark = f"ktls-offload: mark {uuid.uuid4().hex}"
        for host in self._hosts.values():
            host.run(["tee", "/dev/kmsg"], input=f"<6>{mark}\n".encode())
        return mark

    def since(self, mark: str) -> dict[str, str]:
        """What each kernel said since a mark."""
        script = f'f; /{mark}/{{f=1}} END{{if (!f) print "WARNING: {LOST}"}}'
        return {
            name: host.run(["sh", "-c", f"dmesg | awk '{script}'"]).text for name, host in self._hosts.items()
        }

    def faults(self, mark: str) -> list[str]:
        """Lines since a mark that mean a broken rig, with the machine's name before each."""
        said = self.since(mark).items()
        return [f"{name}: {line}" for name, text in said for line in faults(text)]


def _readable(host: Host) -> bool:
    """Say whether there is a log to read and to write in: not in most containers."""
    return host.run(["sh", "-c", "dmesg >/dev/null && test -w /dev/kmsg"], check=False).rc == 0
