"""What is a bench, as frozen values: who is DUT and peer, how they are reached, which port is whose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from offload.host.ssh import Login

ONE_HOST = "ktls-peer"  # the namespace of the far port, where one host is DUT and peer
ONE_WIRE = "ktls-wire"  # that of two more ports of such a host, which are the wire between them


@dataclass(frozen=True)
class Port:
    """A network interface under test: addresses without prefix length; `profile` and `pci` may be empty."""

    ifname: str
    v4: str
    v6: str
    profile: str = ""
    pci: str = ""


@dataclass(frozen=True)
class Target:
    """One role of the bench. `login` None: this machine; `netns`: a network namespace of the machine, or ''.

    `wire`: two ports that form the wire (role wire only). `line`: where it stands in the file.
    """

    role: str
    login: Login | None
    netns: str = ""
    port: Port | None = None
    wire: tuple[str, ...] = ()
    line: int = 0

    @property
    def place(self) -> str:
        """Machine and namespace, for messages and as the name of its journal."""
        login = self.login
        where = f"{login.user}@{login.address}:{login.port}" if login else "here"
        return f"{where}/{self.netns}" if self.netns else where


@dataclass(frozen=True)
class LabFile:
    """A bench: `file` as the person called it; `words`: where another form than ours says a role's key."""

    file: str
    path: Path
    dut: Target
    peer: Target
    wire: Target | None = None
    words: Mapping[tuple[str, str], str] = field(default_factory=dict, compare=False)

    def where(self, target: Target, key: str) -> str:
        """File, line and key of a statement about a role, for messages."""
        own = self.words.get((target.role, key.rpartition(".")[2]))
        return own or f"{self.file}:{target.line}: targets.{target.role}.{key}"

    @property
    def targets(self) -> tuple[Target, ...]:
        """Every role that the bench has."""
        return (self.dut, self.peer, *([self.wire] if self.wire else []))
