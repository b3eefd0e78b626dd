"""One process from outside: its program, TLS libraries and sockets, as /proc shows them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from offload.doctor.reasons import plain
from offload.doctor.versions import dots, numbers
from offload.errors import ConfigError
from offload.host.base import Completed, Host

# what a file of /proc/PID/maps is, and the text in it that tells its version
FILES = {
    r"libssl\.so": ("OpenSSL", "OpenSSL [0-9]+[.][0-9.]+"),
    r"libgnutls\.so": ("GnuTLS", "GnuTLS [0-9]+[.][0-9.]+"),
    r"libs2n\.so": ("s2n-tls", ""),
    r"libssl3\.so": ("NSS", ""),
    r"libmbedtls\.so": ("Mbed TLS", ""),
    r"libjvm\.so": ("Java", ""),
}
PATTERN = r"/.*/lib(ssl3?|gnutls|s2n|mbedtls|jvm)\.so[^/]*"
GO = "Go"
GNUTLS_CONFIG = "/etc/gnutls/config"
TCP_ROW = re.compile(r"\s*\d+: [0-9A-F]+:([0-9A-F]{4}) [0-9A-F]+:[0-9A-F]{4} 01 (?:\S+ +){5}(\d+) ")
MOST = 100_000  # sockets


@dataclass(frozen=True)
class Library:
    """A TLS library in a process's memory; `replaced`: its file has been removed or renewed since."""

    name: str
    version: tuple[int, ...]
    path: str
    replaced: bool = False

    def __str__(self) -> str:
        return f"{self.name} {dots(self.version)}".strip()


@dataclass(frozen=True)
class Process:
    """A process: `inodes` are those of its sockets, `tcp` has the local port of each established TCP one.

    `hidden`: what this user may not see of it, or ''. `gnutls`: GnuTLS's configuration has ktls = true.
    """

    pid: int
    name: str
    exe: str
    libraries: tuple[Library, ...]
    inodes: frozenset[int]
    tcp: dict[int, int]
    hidden: str
    gnutls: bool

    @property
    def title(self) -> str:
        """`nginx[1234]`."""
        return f"{self.name}[{self.pid}]"


def look(host: Host, pid: int) -> Process:
    """A process. ConfigError if there is none with this number."""
    comm = host.run(["cat", f"/proc/{pid}/comm"], check=False)
    if comm.rc != 0:
        raise ConfigError(f"--pid: no process {pid} on this host", "ps -e lists them")
    exe = host.run(["readlink", f"/proc/{pid}/exe"], check=False)
    maps = host.run(["grep", "-aoE", PATTERN, f"/proc/{pid}/maps"], check=False, timeout=20)
    links = ["find", f"/proc/{pid}/fd", "-lname", "socket:*", "-printf", "%l\n"]
    sockets = host.run(links, check=False, timeout=60)
    rows = host.run(["cat", f"/proc/{pid}/net/tcp", f"/proc/{pid}/net/tcp6"], check=False, timeout=60)
    inodes = frozenset(int(n) for n in re.findall(r"socket:\[(\d{1,18})\]", sockets.text)[:MOST])
    found = [(int(port, 16), int(inode)) for port, inode in map(_row, rows.text.splitlines()) if inode]
    return Process(
        pid,
        plain(comm.text),
        plain(exe.text),
        _libraries(host, pid, maps),
        inodes,
        {inode: port for port, inode in found if inode in inodes},
        _hidden(maps, sockets),
        any(library.name == "GnuTLS" for library in _named(maps)) and _gnutls_says(host, pid),
    )


def _row(line: str) -> tuple[str, str]:
    """Local port (hexadecimal) and inode of an established connection in /proc/net/tcp; ('0', '')."""
    found = TCP_ROW.match(line)
    return (found[1], found[2]) if found else ("0", "")


def _hidden(maps: Completed, sockets: Completed) -> str:
    """Name what could not be read: its memory map, its open files."""
    what = [
        name
        for name, done in (("memory map", maps), ("open files", sockets))
        if b"ermission denied" in done.stderr
    ]
    return " and ".join(what)


def _named(maps: Completed) -> list[Library]:
    """The TLS libraries that the map names, each file once, without their versions."""
    found = []
    for line in dict.fromkeys(maps.text.splitlines()[:1000]):
        path, replaced = line.removesuffix(" (deleted)"), line.endswith(" (deleted)")
        file = path.rpartition("/")[2]
        for pattern, (name, _) in FILES.items():
            if re.match(pattern, file):
                found.append(Library(name, (), plain(path), replaced))
    return found


def _libraries(host: Host, pid: int, maps: Completed) -> tuple[Library, ...]:
    """Every TLS library in its memory; Go's own, which is part of the program."""
    found = _named(maps)
    if not found:
        go = host.run(["grep", "-aqm1", "Go buildinf:", f"/proc/{pid}/exe"], check=False, timeout=60)
        return (Library(GO, (), f"/proc/{pid}/exe"),) if go.rc == 0 else ()
    texts = dict(FILES.values())
    return tuple(_versioned(host, pid, one, texts[one.name]) for one in found)


def _versioned(host: Host, pid: int, one: Library, text: str) -> Library:
    """A library with its version, which its file tells; a libssl.so that is no OpenSSL loses that name."""
    if not text or one.replaced:
        return one
    path = f"/proc/{pid}/root{one.path}"  # as the process sees it: it may be in a container
    said = host.run(["grep", "-aom1", "-E", text, path], check=False, timeout=20)
    if said.rc == 1 and one.name == "OpenSSL":
        return Library("libssl.so, which is not OpenSSL's", (), one.path)
    return Library(one.name, numbers(said.text), one.path)


def _gnutls_says(host: Host, pid: int) -> bool:
    """Whether GnuTLS's configuration switches kernel TLS on, for every program that reads it."""
    argv = [
        "grep",
        "-iE",
        r"^[[:space:]]*ktls[[:space:]]*=[[:space:]]*true",
        f"/proc/{pid}/root{GNUTLS_CONFIG}",
    ]
    return host.run(argv, check=False, timeout=20).rc == 0
