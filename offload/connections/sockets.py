"""Which kernel-TLS sockets does this machine have, as inet_diag shows them, and whose are they?"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

from offload.errors import RigError
from offload.host.base import Completed, Host, Process
from offload.paths import PACKAGE

READER = PACKAGE / "connections/sockets_reader.py"
PYTHON = ("/usr/bin/python3", "-I", "-S", "-")  # the program comes by stdin: no message shows all of it
VERSIONS = {0x0303: "1.2", 0x0304: "1.3"}
# include/uapi/linux/tls.h
CIPHERS = {
    51: "aes-gcm-128",
    52: "aes-gcm-256",
    53: "aes-ccm-128",
    54: "chacha20-poly1305",
    55: "sm4-gcm",
    56: "sm4-ccm",
    57: "aria-gcm-128",
    58: "aria-gcm-256",
}
CONFS = {0: "none", 1: "none", 2: "sw", 3: "hw", 4: "hw-record"}  # TLS_CONF_*
STATES = {
    1: "established",
    4: "fin-wait-1",
    5: "fin-wait-2",
    8: "close-wait",
    9: "last-ack",
    11: "closing",
}
ROW = (str, int, str, *[int] * 16, str)  # a socket as the reader has it: addresses, ports, numbers, device
FOREVER = 1e11  # seconds: no process is so old


class Owner(NamedTuple):
    """A process that has a socket: `age` in seconds since it started, `others` more processes have it too."""

    pid: int
    name: str
    age: float
    others: int


class Socket(NamedTuple):
    """One kernel-TLS connection. Bytes are those of the TCP stream, None where the kernel does not say.

    `tx`, `rx`: none, sw or hw *when its keys were installed*. `device`: where its route leads now, '' if
    nowhere, '?' if unknown. `cookie` names it as long as it lives. `owner` is None for one of the kernel
    itself, one that its process has closed, and one whose process may not be seen.
    """

    local: str
    local_port: int
    peer: str
    peer_port: int
    state: str
    uid: int
    inode: int
    cookie: int
    version: str
    cipher: str
    tx: str
    rx: str
    zerocopy: bool
    sent: int | None
    sent_again: int | None
    received: int | None
    device: str
    owner: Owner | None

    def conf(self, direction: str) -> str:
        """The kernel's word for `tx` or `rx`."""
        return self.tx if direction == "tx" else self.rx


@dataclass(frozen=True)
class Space:
    """A network namespace: its number, names of `ip netns`, the way in; `error`: why it was not looked at.

    `tls_stat` is None where kernel TLS is not loaded; `at`: when its sockets were read, in seconds of the
    host's monotonic clock.
    """

    inode: int
    names: tuple[str, ...]
    path: str
    here: bool
    error: str
    sockets: tuple[Socket, ...]
    tls_stat: Mapping[str, int] | None
    notes: tuple[str, ...]
    at: float

    def title(self) -> str:
        """Return what a person may call it."""
        name = " ".join(self.names) or f"of process {self.path.split('/')[2]}"
        return f"{name} (this one)" if self.here and self.names else "this one" if self.here else name

    def unseen(self) -> int:
        """How many directions the kernel counts beyond those of the sockets that it showed."""
        stat = self.tls_stat or {}
        kinds = [f"TlsCurr{direction}{by}" for direction in ("Tx", "Rx") for by in ("Sw", "Device")]
        shown = sum((one.tx != "none") + (one.rx != "none") for one in self.sockets)
        return max(0, sum(stat.get(kind, 0) for kind in kinds) - shown)

    def host(self, outside: Host) -> Host:
        """A host whose commands run in this namespace."""
        return outside if self.here else Inside(outside, self.path, self.title())


@dataclass(frozen=True)
class Found:
    """Every namespace that could be looked at, ours first; `notes` say what could not be seen.

    `at`: when, in seconds of the host's monotonic clock.
    """

    at: float
    spaces: tuple[Space, ...]
    notes: tuple[str, ...]
    root: bool

    def sockets(self) -> tuple[Socket, ...]:
        """All of them."""
        return tuple(one for space in self.spaces for one in space.sockets)


class Inside:
    """A network namespace of a host, entered by `nsenter`; files are the host's."""

    def __init__(self, outside: Host, path: str, name: str) -> None:
        self.name, self._outside, self._path = name, outside, path

    def _argv(self, argv: Sequence[str]) -> list[str]:
        return ["nsenter", f"--net={self._path}", "--", *argv]

    def run(
        self,
        argv: Sequence[str],
        *,
        input: bytes = b"",
        timeout: float = 60.0,
        check: bool = True,
        env: Mapping[str, str] | None = None,
    ) -> Completed:
        """Run to the end; see Host.run."""
        return self._outside.run(self._argv(argv), input=input, timeout=timeout, check=check, env=env)

    def start(self, argv: Sequence[str], *, env: Mapping[str, str] | None = None) -> Process:
        """Start in the background; see Host.start."""
        return self._outside.start(self._argv(argv), env=env)

    def read(self, path: str) -> bytes:
        """Return a file's bytes."""
        return self._outside.read(path)

    def write(self, path: str, data: bytes, mode: int = 0o600) -> None:
        """Create or replace a file."""
        self._outside.write(path, data, mode)


def gather(host: Host, *, everywhere: bool = True) -> Found:
    """Look at every namespace, or at the host's own only. RigError if the reader fails."""
    which = "all" if everywhere else "here"
    done = host.run([*PYTHON, which], input=READER.read_bytes(), check=False, timeout=120)
    try:
        return understood(json.loads(done.stdout))
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, ArithmeticError, RecursionError):
        said = done.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2][:300]
        raise RigError(
            f"the sockets of {host.name} could not be read: exit {done.rc}: {said or 'no answer'}",
            "python3 is needed there",
        ) from None


def understood(said: Mapping[str, Any]) -> Found:
    """The reader's answer as values; an exception of the list in `gather` if it is none."""
    at = float(said["at"])
    owners = {int(inode): _owner(*row) for inode, row in said["owners"].items()}
    spaces = tuple(_space({"at": at, **row}, owners) for row in said["spaces"])
    return Found(at, spaces, tuple(plain(note) for note in said["notes"]), said["root"] is True)


def _owner(pid: int, name: str, age: float, count: int) -> Owner:
    """Return who has a socket."""
    if not 0 <= age < FOREVER or pid < 0 or count < 1:
        raise ValueError(" no such process")
    return Owner(int(pid), plain(name), float(age), int(count) - 1)


def _space(row: Mapping[str, Any], owners: Mapping[int, Owner]) -> Space:
    """One namespace of the reader's answer."""
    stat = row["tls_stat"]
    if not re.fullmatch(r"/(proc|run)/[^/]+/.+", row["path"], re.DOTALL):
        raise ValueError("cannot enter a namespace")
    return Space(
        int(row["inode"]),
        tuple(plain(name) for name in row["names"]),
        row["path"],
        row["here"] is True,
        plain(row["error"]),
        tuple(_socket(one, owners) for one in row["sockets"]),
        None if stat is None else {plain(name): abs(int(count)) for name, count in stat.items()},
        tuple(plain(note) for note in row["notes"]),
        float(row["at"]),
    )


def _socket(row: Sequence[Any], owners: Mapping[int, Owner]) -> Socket:
    """One socket of the reader's row; ValueError if it is not one."""
    if tuple(map(type, row)) != ROW or min(row[1], row[3], *row[4:16]) < 0 or max(row[1], row[3]) >> 16:
        raise ValueError("no socket is so")
    (
        local,
        sport,
        peer,
        dport,
        _,
        _,
        _,
        state,
        uid,
        inode,
        cookie,
        version,
        cipher,
        tx,
        rx,
        zerocopy,
        sent,
        again,
        received,
        device,
    ) = row
    return Socket(
        plain(local),
        sport,
        plain(peer),
        dport,
        STATES.get(state) or f"state {state}",
        uid,
        inode,
        cookie,
        *_kind(version, cipher, tx, rx, zerocopy),
        None if sent < 0 else sent,
        None if again < 0 else again,
        None if received < 0 else received,
        plain(device),
        owners.get(inode),
    )


@lru_cache(256)
def _kind(version: int, cipher: int, tx: int, rx: int, zerocopy: int) -> tuple[str, str, str, str, bool]:
    """The words for what kernel TLS does with a socket."""
    return (
        VERSIONS.get(version, "-" if version == 0 else f"0x{version:04x}"),
        CIPHERS.get(cipher, "-" if cipher == 0 else f"cipher {cipher}"),
        CONFS.get(tx, f"conf {tx}"),
        CONFS.get(rx, f"conf {rx}"),
        zerocopy == 1,
    )


@lru_cache(1024)
def plain(text: str) -> str:
    """A name that somebody else chose, safe for a terminal."""
    if text.isprintable() and len(text) <= 200:
        return text
    return "".join(c if c.isprintable() else "?" for c in text)[:200]
